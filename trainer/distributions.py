"""The Gaussian over actions: its densities, and where its standard deviation comes from.

Initial values, types and the range are RSL-RL's. It clamps the standard deviation in the forward
pass, where the gradient of a value outside the range is zero, so that it could not come back; here
the gradient that leads back into the range always arrives.
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import Tensor, nn

from trainer.config import ActorConfig

LEAST_STD = 1e-6
"""No standard deviation lies below this, whatever the range says."""

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def log_prob(action: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Log density of `action` [..., A] under a Gaussian with independent dimensions, [..., 1].

    Args:
        action: the action to score, [..., A].
        mean: [..., A].
        std: [..., A], or [A] where it does not depend on the observation.
    """
    squares = ((action - mean) / std).square().sum(-1, keepdim=True)
    constant = action.shape[-1] * _HALF_LOG_TWO_PI
    return -0.5 * squares - (std.log().sum(-1, keepdim=True) + constant)


def entropy(std: Tensor) -> Tensor:
    """Entropy in nats of a Gaussian with independent dimensions `std` [..., A], [..., 1]."""
    return std.log().sum(-1, keepdim=True) + std.shape[-1] * (0.5 + _HALF_LOG_TWO_PI)


def kl(old_mean: Tensor, old_std: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """KL(old || new) between Gaussians with independent dimensions [..., A], in nats, [..., 1].

    The closed form of ln(σ/σ_old) + (σ_old² + (μ_old - μ)²) / (2σ²) - ½, summed over dimensions.
    """
    var_ratio = (old_std / std).square()
    shift = ((old_mean - mean) / std).square()
    # Small terms are joined last: beside a 1 in float32 a KL below 1e-7 would be lost, which is
    # what a step at the lowest learning rates makes.
    return 0.5 * (shift + (var_ratio - 1.0 - var_ratio.log())).sum(-1, keepdim=True)


class Gaussian(nn.Module):
    """One standard deviation for each action, the same for every observation; learnt or fixed.

    The parameter is never clamped in a forward pass. Instead `project` moves the parameter itself
    into its range, after every optimizer step and whenever weights are loaded.

    Args:
        num_actions: A.
        config: the actor's settings.
    """

    def __init__(self, num_actions: int, config: ActorConfig) -> None:
        super().__init__()
        self.num_outputs = num_actions
        """What the network must put out: the means."""
        self._is_log = config.std_type == "log"
        self._range = _parameter_range(config)
        init = math.log(config.init_std) if self._is_log else config.init_std
        parameter = nn.Parameter(torch.full((num_actions,), init), requires_grad=config.learn_std)
        self.register_parameter("log_std_param" if self._is_log else "std_param", parameter)
        self.register_load_state_dict_post_hook(_project_after_load)  # type: ignore[no-untyped-call]

    @property
    def std(self) -> Tensor:
        """Standard deviation of each action, [A]."""
        return self._parameter.exp() if self._is_log else self._parameter

    def forward(self, output: Tensor) -> tuple[Tensor, Tensor]:
        """Read the network's output [..., A] as means [..., A]; return them with the std [A]."""
        return output, self.std

    def mean(self, output: Tensor) -> Tensor:
        """Read the means [..., A] from the network's output [..., A]."""
        return output

    def initialize(self, head: nn.Linear) -> None:
        """Leave the network's last layer as it is."""

    @torch.no_grad()
    def project(self) -> None:
        """Move the parameter into its range; a parameter inside stays as it is, bit for bit."""
        self._parameter.clamp_(*self._range)

    @property
    def _parameter(self) -> nn.Parameter:
        return cast(nn.Parameter, self.log_std_param if self._is_log else self.std_param)


def _project_after_load(module: Gaussian, _incompatible_keys: object) -> None:
    module.project()


class StateDependentGaussian(nn.Module):
    """A standard deviation that the network puts out beside the mean, for each observation anew.

    At the start it is `init_std` everywhere: its half of the last layer has weights of 0.

    Args:
        num_actions: A.
        config: the actor's settings.
    """

    def __init__(self, num_actions: int, config: ActorConfig) -> None:
        super().__init__()
        self.num_outputs = 2 * num_actions
        """What the network must put out: the means, then the standard deviations (or their
        logarithms)."""
        self._num_actions = num_actions
        self._is_log = config.std_type == "log"
        self._range = _parameter_range(config)
        self._init = math.log(config.init_std + 1e-7) if self._is_log else config.init_std

    def forward(self, output: Tensor) -> tuple[Tensor, Tensor]:
        """Read the network's output [..., 2A]; return means and standard deviations [..., A]."""
        mean, raw = self.mean(output), output[..., self._num_actions :]
        bounded: Tensor = _Bounded.apply(raw, *self._range)  # type: ignore[no-untyped-call]
        return mean, bounded.exp() if self._is_log else bounded

    def mean(self, output: Tensor) -> Tensor:
        """Read the means [..., A] from the network's output [..., 2A]."""
        return output[..., : self._num_actions]

    @torch.no_grad()
    def initialize(self, head: nn.Linear) -> None:
        """Make the network's last layer put out `init_std` for every observation."""
        head.weight[self._num_actions :].zero_()
        head.bias[self._num_actions :].fill_(self._init)

    def project(self) -> None:
        """Do nothing: there is no parameter to move; the forward pass keeps the range."""


class _Bounded(torch.autograd.Function):
    """Clamp into a range; the gradient passes but where a descent would lead further outside."""

    @staticmethod
    def forward(ctx: Any, raw: Tensor, low: float, high: float) -> Tensor:  # noqa: ANN401
        ctx.save_for_backward(raw)
        ctx.range = low, high
        return raw.clamp(low, high)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        (raw,), (low, high), (gradient,) = ctx.saved_tensors, ctx.range, gradients
        outward = ((raw < low) & (gradient > 0)) | ((raw > high) & (gradient < 0))
        return gradient.masked_fill(outward, 0.0), None, None


Distribution = Gaussian | StateDependentGaussian


def make_distribution(num_actions: int, config: ActorConfig) -> Distribution:
    """Make the distribution that the settings ask for."""
    kind = StateDependentGaussian if config.state_dependent_std else Gaussian
    return kind(num_actions, config)


def _parameter_range(config: ActorConfig) -> tuple[float, float]:
    """The range of what stands for the standard deviation: itself, or its logarithm."""
    low, high = max(config.std_range[0], LEAST_STD), config.std_range[1]
    return (math.log(low), math.log(high)) if config.std_type == "log" else (low, high)
