"""The two networks: the actor's Gaussian over actions and the critic's value.

State-dict names are RSL-RL's (`mlp.0.weight`, `distribution.std_param`, `obs_normalizer._mean`), so
that its checkpoints can be read.
"""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from trainer.config import ActorConfig, CriticConfig
from trainer.mlp import MLP
from trainer.normalizer import EmpiricalNormalizer

MAX_STD = 1e6
"""The action's standard deviation is kept at or below this (RSL-RL's bound)."""

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
    # The shift is added to the ratio first: rounding noise far below 1e-7 vanishes here, so a
    # policy that has not moved gives 0, and the adaptive learning rate stays.
    return 0.5 * (var_ratio + shift - 1.0 - var_ratio.log()).sum(-1, keepdim=True)


class Sample(NamedTuple):
    """What the actor decides for one step of N worlds."""

    action: Tensor
    """mean + std x noise, [N, A]."""
    log_prob: Tensor
    """Log density of the action, [N, 1]."""
    mean: Tensor
    """[N, A]"""
    std: Tensor
    """[A]: it does not depend on the observation."""


class Gaussian(nn.Module):
    """The learnt standard deviation of each action.

    The parameter is never clamped in a forward pass: there its gradient would be zero and it could
    not come back. Instead `project` moves the parameter itself into its range, after every
    optimizer step and whenever weights are loaded.

    Args:
        num_actions: A.
        init_std: standard deviation at the start.
        std_type: "scalar" learns the standard deviation, "log" its logarithm.
        min_std: lower end of the range; the upper end is `MAX_STD`.
    """

    def __init__(self, num_actions: int, init_std: float, std_type: str, min_std: float) -> None:
        super().__init__()
        self._range = (min_std, MAX_STD)
        if std_type == "log":
            self._range = (math.log(min_std), math.log(MAX_STD))
            self.log_std_param = nn.Parameter(torch.full((num_actions,), math.log(init_std)))
        else:
            self.std_param = nn.Parameter(torch.full((num_actions,), init_std))
        self._is_log = std_type == "log"
        self.register_load_state_dict_post_hook(_project_after_load)  # type: ignore[no-untyped-call]

    @property
    def std(self) -> Tensor:
        """Standard deviation of each action, [A]."""
        return self.log_std_param.exp() if self._is_log else self.std_param

    @torch.no_grad()
    def project(self) -> None:
        """Move the parameter into its range; a parameter inside stays as it is, bit for bit."""
        (self.log_std_param if self._is_log else self.std_param).clamp_(*self._range)


def _project_after_load(module: Gaussian, _incompatible_keys: object) -> None:
    module.project()


class Actor(nn.Module):
    """The policy: observation to a Gaussian over actions.

    Args:
        config: widths, activation, normalisation and noise.
        num_obs: width O of an observation.
        num_actions: width A of an action.
    """

    def __init__(self, config: ActorConfig, num_obs: int, num_actions: int) -> None:
        super().__init__()
        self.obs_normalizer = _normalizer(config.obs_normalization, num_obs)
        self.distribution = Gaussian(num_actions, config.init_std, config.std_type, config.min_std)
        self.mlp = MLP(num_obs, config.hidden_dims, num_actions, config.activation)

    @property
    def std(self) -> Tensor:
        """Standard deviation of each action, [A]."""
        return self.distribution.std

    def mean(self, obs: Tensor) -> Tensor:
        """The action without noise for `obs` [..., O], [..., A]."""
        return cast(Tensor, self.mlp(self.obs_normalizer(obs)))

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean [..., A] and standard deviation [A] of the action for `obs` [..., O]."""
        return self.mean(obs), self.std

    def act(self, obs: Tensor, generator: torch.Generator) -> Sample:
        """Draw an action for each row of `obs` [N, O]; noise comes from `generator` alone."""
        self.project_std()  # a parameter set from outside must not stop a rollout
        mean, std = self(obs)
        noise = torch.randn(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)
        action = mean + std * noise
        return Sample(action, log_prob(action, mean, std), mean, std)

    def project_std(self) -> None:
        """Move the standard deviation's parameter into [min_std, MAX_STD]."""
        self.distribution.project()


class Critic(nn.Module):
    """The value function: observation to the expected discounted return.

    Args:
        config: widths, activation and normalisation.
        num_obs: width O of an observation.
    """

    def __init__(self, config: CriticConfig, num_obs: int) -> None:
        super().__init__()
        self.obs_normalizer = _normalizer(config.obs_normalization, num_obs)
        self.mlp = MLP(num_obs, config.hidden_dims, 1, config.activation)

    def forward(self, obs: Tensor) -> Tensor:
        """Return the value of `obs` [..., O], [..., 1]."""
        return cast(Tensor, self.mlp(self.obs_normalizer(obs)))


def _normalizer(enabled: bool, num_obs: int) -> nn.Module:
    return EmpiricalNormalizer(num_obs) if enabled else nn.Identity()
