"""The learner's settings. Free of torch, so that the menu can read presets at once."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Activation = Literal[
    "elu",
    "selu",
    "relu",
    "celu",
    "leaky_relu",
    "tanh",
    "sigmoid",
    "softplus",
    "gelu",
    "silu",
    "mish",
]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
UnitInterval = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
PositiveInt = Annotated[int, Field(ge=1)]
GroupNames = Annotated[tuple[str, ...], Field(min_length=1)]


def _all_or_some(count: int) -> int:
    if count < -1 or count == 0:
        raise ValueError(f"must be -1, which keeps all, or at least 1, not {count}")
    return count


class Settings(BaseModel):
    """Base of all settings: frozen, no unknown key, docstrings under the fields feed the help."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ActorConfig(Settings):
    """The policy network: observation to the mean of a Gaussian over actions."""

    hidden_dims: tuple[PositiveInt, ...] = (256, 256, 256)
    """Widths of the hidden layers."""
    activation: Activation = "elu"
    """Function between the layers."""
    obs_normalization: bool = False
    """Normalise observations by running mean and standard deviation."""
    init_std: PositiveFloat = 1.0
    """Standard deviation of the action noise at the start."""
    std_type: Literal["scalar", "log"] = "scalar"
    """What is learnt for each action: the standard deviation itself or its logarithm."""
    min_std: PositiveFloat = 1e-6
    """The standard deviation is kept at or above this after every optimizer step."""


class CriticConfig(Settings):
    """The value network: observation to the expected discounted return."""

    hidden_dims: tuple[PositiveInt, ...] = (256, 256, 256)
    """Widths of the hidden layers."""
    activation: Activation = "elu"
    """Function between the layers."""
    obs_normalization: bool = False
    """Normalise observations by running mean and standard deviation."""


class ObsGroups(Settings):
    """The observation groups that each network reads, joined in the order given.

    A network whose set is unset reads the group of its own name, else the group `policy`.
    """

    actor: GroupNames | None = None
    """Groups of the policy network: what the robot itself can sense."""
    critic: GroupNames | None = None
    """Groups of the value network, which may know more: it is needed in training alone."""


class TrainerConfig(Settings):
    """PPO's settings, under RSL-RL's names."""

    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    """Seed of worlds, networks, noise and permutations. Unset: one is drawn, shown and saved."""
    num_iterations: PositiveInt = 1500
    """Iterations of the whole run, those before a resume included."""
    num_steps_per_env: PositiveInt = 24
    """T: steps that each world makes in one rollout."""
    save_interval: PositiveInt = 50
    """Iterations between two checkpoints."""
    keep_checkpoints: Annotated[int, AfterValidator(_all_or_some)] = -1
    """How many of the newest checkpoints stay, beside the best; -1: all."""
    logger: Literal["tensorboard", "wandb", "none"] = "tensorboard"
    """Who else gets the metrics: TensorBoard's event files, these and Weights & Biases, or none."""
    wandb_project: Annotated[str, Field(min_length=1)] = "ppo-tui"
    """The project in Weights & Biases."""
    init_at_random_ep_len: bool = True
    """Start the worlds at random ages, so that they do not all time out on one step."""
    clip_actions: PositiveFloat | None = None
    """Clamp the action sent to the env to +- this; the stored action stays the sample."""
    time_out_bootstrap: Literal["pre_step_value"] = "pre_step_value"
    """Value added at a time limit: gamma times V of the observation before the step (RSL-RL's)."""

    num_learning_epochs: PositiveInt = 5
    """Passes over the rollout in one update."""
    num_mini_batches: PositiveInt = 4
    """Mini-batches in one pass, each with its own optimizer step."""
    learning_rate: PositiveFloat = 1e-3
    """Learning rate at the start; the adaptive schedule moves it."""
    schedule: Literal["adaptive", "fixed"] = "adaptive"
    """adaptive: the KL of every mini-batch moves the learning rate; fixed: it stays."""
    desired_kl: PositiveFloat = 0.01
    """KL divergence that the adaptive schedule aims at."""
    gamma: UnitInterval = 0.99
    """Discount of future reward, for each env step."""
    lam: UnitInterval = 0.95
    """GAE's lambda: how far later evidence flows backward."""
    clip_param: PositiveFloat = 0.2
    """Epsilon: the surrogate gains nothing from a ratio beyond 1 plus or minus this."""
    value_loss_coef: NonNegativeFloat = 1.0
    """Weight of the value loss in the total loss."""
    use_clipped_value_loss: bool = True
    """Clip the new value around the rollout's by clip_param, and take the worse squared error."""
    entropy_coef: NonNegativeFloat = 0.01
    """Weight of the entropy bonus in the total loss."""
    max_grad_norm: PositiveFloat = 1.0
    """Largest gradient norm of actor and of critic, each clipped on its own."""
    normalize_advantage_per_mini_batch: bool = False
    """Normalise advantages over each mini-batch instead of over the whole rollout."""

    obs_groups: ObsGroups = ObsGroups()
    """Which observation groups each network reads."""
    actor: ActorConfig = ActorConfig()
    """The policy network."""
    critic: CriticConfig = CriticConfig()
    """The value network."""

    @model_validator(mode="after")
    def _rates_fit(self) -> Self:
        if self.schedule == "adaptive" and not 1e-5 <= self.learning_rate <= 1e-2:
            raise ValueError(
                f"learning_rate {self.learning_rate:g} lies outside 1e-05 to 0.01, "
                'the range of the adaptive schedule; choose one inside or schedule = "fixed"'
            )
        return self


def nearest_divisors(total: int, wanted: int) -> tuple[int, ...]:
    """Return the one or two divisors of `total` nearest to `wanted` by ratio, in order.

    For a message that refuses `wanted`: 35 samples do not divide by 4; nearest: 5 or 7.
    """
    small = [d for d in range(1, math.isqrt(total) + 1) if total % d == 0]
    divisors = {*small, *(total // d for d in small)}
    return tuple(sorted(sorted(divisors, key=lambda d: abs(math.log(d / wanted)))[:2]))


def require_even_split(num_samples: int, num_mini_batches: int) -> None:
    """Refuse mini-batches that would leave samples out.

    Args:
        num_samples: B = N T, the transitions of one rollout.
        num_mini_batches: mini-batches in one epoch.

    Raises:
        ValueError: B does not divide; the message names the nearest numbers that do.
    """
    if num_samples % num_mini_batches:
        nearest = " or ".join(map(str, nearest_divisors(num_samples, num_mini_batches)))
        raise ValueError(
            f"{num_samples} samples do not divide by {num_mini_batches}; nearest: {nearest}"
        )
