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
OptimizerName = Literal["adam", "adamw", "sgd", "rmsprop"]
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


class NetworkConfig(Settings):
    """What actor and critic have in common: a perceptron, behind a memory if there is one."""

    hidden_dims: tuple[PositiveInt, ...] = (256, 256, 256)
    """Widths of the hidden layers."""
    activation: Activation = "elu"
    """Function between the layers."""
    obs_normalization: bool = False
    """Normalise observations by running mean and standard deviation."""
    rnn_type: Literal["lstm", "gru"] | None = None
    """Memory before the hidden layers; unset: none, each observation is read for itself."""
    rnn_hidden_dim: PositiveInt = 256
    """Width of the memory's hidden state."""
    rnn_num_layers: PositiveInt = 1
    """Layers of the memory."""


class ActorConfig(NetworkConfig):
    """The policy network: observation to the mean of a Gaussian over actions."""

    init_std: PositiveFloat = 1.0
    """Standard deviation of the action noise at the start."""
    std_type: Literal["scalar", "log"] = "scalar"
    """What is learnt for each action: the standard deviation itself or its logarithm."""
    std_range: tuple[NonNegativeFloat, PositiveFloat] = (1e-6, 1e6)
    """The standard deviation is kept within these, lowest and highest; never below 1e-6."""
    learn_std: bool = True
    """Learn the standard deviation; false: it stays init_std."""
    state_dependent_std: bool = False
    """Let the network put out the standard deviation for each observation, beside the mean."""

    @model_validator(mode="after")
    def _noise_fits(self) -> Self:
        low, high = self.std_range
        if not low < high:
            raise ValueError(f"std_range [{low:g}, {high:g}] must rise")
        if not low <= self.init_std <= high:
            raise ValueError(
                f"init_std {self.init_std:g} lies outside std_range [{low:g}, {high:g}]"
            )
        if self.state_dependent_std and not self.learn_std:
            raise ValueError(
                "state_dependent_std = true learns the standard deviation; "
                "it does not go with learn_std = false"
            )
        return self


class CriticConfig(NetworkConfig):
    """The value network: observation to the expected discounted return."""


class ObsGroups(Settings):
    """The observation groups that each network reads, joined in the order given.

    A network whose set is unset reads the group of its own name, else the group `policy`.
    """

    actor: GroupNames | None = None
    """Groups of the policy network: what the robot itself can sense."""
    critic: GroupNames | None = None
    """Groups of the value network, which may know more: it is needed in training alone."""
    rnd_state: GroupNames | None = None
    """Groups of the networks of trainer.rnd, if that is given."""


class SymmetryConfig(Settings):
    """Learning from the mirror image of a robot whose left and right are alike.

    With neither of the two uses, the mirror loss is only computed and logged.
    """

    use_data_augmentation: bool = False
    """Join the mirror image to every mini-batch."""
    use_mirror_loss: bool = False
    """Add to the loss how far the policy's answer to the mirror image is from its mirrored one."""
    mirror_loss_coeff: NonNegativeFloat = 0.0
    """Weight of that in the total loss."""


class WeightSchedule(Settings):
    """How the weight of the intrinsic reward changes with the env steps of one world."""

    mode: Literal["constant", "step", "linear"]
    """constant: it stays; step: it jumps at final_step; linear: it moves from initial_step on."""
    initial_step: Annotated[int, Field(ge=0)] | None = None
    """For linear: the env step at which it begins to move."""
    final_step: PositiveInt | None = None
    """For step and linear: the env step from which it is final_value."""
    final_value: NonNegativeFloat | None = None
    """For step and linear: its last value, for one env step (weight is for one second)."""

    @model_validator(mode="after")
    def _mode_has_its_numbers(self) -> Self:
        needed = {
            "constant": (),
            "step": ("final_step", "final_value"),
            "linear": ("initial_step", "final_step", "final_value"),
        }[self.mode]
        for name in ("initial_step", "final_step", "final_value"):
            given = getattr(self, name) is not None
            if given and name not in needed:
                raise ValueError(f'{name} does not go with mode = "{self.mode}"')
            if not given and name in needed:
                raise ValueError(f'mode = "{self.mode}" needs {name}')
        if self.mode == "linear" and not (self.initial_step or 0) < (self.final_step or 0):
            raise ValueError(
                f"final_step {self.final_step} must come after initial_step {self.initial_step}"
            )
        return self


def _own_width(width: int) -> int:
    if width < -1 or width == 0:
        raise ValueError(f"must be at least 1, or -1 for the width of the state, not {width}")
    return width


class RndConfig(Settings):
    """Random network distillation: an intrinsic reward for states that are new.

    Its networks read the observation set `rnd_state`.
    """

    num_outputs: PositiveInt = 1
    """Width of the answer that the predictor learns to give."""
    predictor_hidden_dims: tuple[Annotated[int, AfterValidator(_own_width)], ...] = (-1,)
    """Widths of the predictor's hidden layers; -1: the width of the state."""
    target_hidden_dims: tuple[Annotated[int, AfterValidator(_own_width)], ...] = (-1,)
    """Widths of the hidden layers of the target, which never learns; -1: the width of the state."""
    activation: Activation = "elu"
    """Function between the layers."""
    state_normalization: bool = False
    """Normalise states by running mean and standard deviation."""
    reward_normalization: bool = False
    """Divide the reward by the running standard deviation of its discounted sum."""
    weight: NonNegativeFloat = 0.0
    """Weight of the intrinsic reward at the start, for one second."""
    weight_schedule: WeightSchedule | None = None
    """How the weight changes; unset: it stays."""
    learning_rate: PositiveFloat = 1e-3
    """Learning rate of the predictor's own Adam; it stays."""


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
    optimizer: OptimizerName = "adam"
    """Rule of the optimizer step, with torch's settings."""
    learning_rate: NonNegativeFloat = 1e-3
    """Learning rate at the start; the adaptive schedule moves it. 0, with a fixed schedule, learns
    nothing: every ratio must be 1 then, and every KL 0."""
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
    symmetry: SymmetryConfig | None = None
    """Learn from the mirror image too; unset: do not."""
    rnd: RndConfig | None = None
    """Pay for new states; unset: do not."""

    @property
    def recurrent(self) -> bool:
        """Whether a network has a memory: mini-batches are then whole worlds, in order."""
        return self.actor.rnn_type is not None or self.critic.rnn_type is not None

    @model_validator(mode="after")
    def _the_mirror_image_has_no_memory(self) -> Self:
        for name, network in (("actor", self.actor), ("critic", self.critic)):
            if self.symmetry is not None and network.rnn_type is not None:
                raise ValueError(
                    f"symmetry does not go with {name}.rnn_type = {network.rnn_type!r}: "
                    "nobody knows how a memory looks in a mirror"
                )
        return self

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


def require_even_blocks(num_envs: int, num_mini_batches: int) -> None:
    """Refuse mini-batches of whole worlds that would leave worlds out.

    Args:
        num_envs: N.
        num_mini_batches: mini-batches in one epoch, each a block of worlds.

    Raises:
        ValueError: N does not divide; the message names the nearest numbers that do.
    """
    if num_envs % num_mini_batches:
        nearest = " or ".join(map(str, nearest_divisors(num_envs, num_mini_batches)))
        raise ValueError(
            f"{num_envs} worlds do not divide by {num_mini_batches}, and a recurrent network "
            f"learns from whole worlds; nearest: {nearest}"
        )
