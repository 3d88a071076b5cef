"""What a preset is, once its file is read: a robot's worlds and a learner, with a name."""

from __future__ import annotations

from typing import Annotated, Self, get_origin

from pydantic import Field, model_validator

from sim.config import EnvConfig, Settings
from trainer.config import TrainerConfig, nearest_divisors

TERM_TABLES = tuple(
    name for name, field in EnvConfig.model_fields.items() if get_origin(field.annotation) is dict
)
"""The tables of `env` that hold terms by name."""


class Preset(Settings):
    """A named experiment."""

    name: Annotated[str, Field(pattern=r"^\w[\w.+-]*$")]
    """What its runs are filed under; the file's own name where unset."""
    description: str = ""
    """What it trains, in a line."""
    env: EnvConfig
    """The worlds."""
    trainer: TrainerConfig = TrainerConfig()
    """The learner."""

    @property
    def batch_size(self) -> int:
        """B = N T, the transitions of one rollout."""
        return self.env.num_envs * self.trainer.num_steps_per_env

    @model_validator(mode="after")
    def _mini_batches_divide_the_rollout(self) -> Self:
        count = self.trainer.num_mini_batches
        if self.batch_size % count:
            nearest = " or ".join(map(str, nearest_divisors(self.batch_size, count)))
            raise ValueError(
                f"trainer.num_mini_batches = {count}: {self.batch_size} samples "
                f"(env.num_envs {self.env.num_envs} x trainer.num_steps_per_env "
                f"{self.trainer.num_steps_per_env}) do not divide by {count}; nearest: {nearest}"
            )
        return self

    @model_validator(mode="after")
    def _mini_batches_divide_the_worlds(self) -> Self:
        count = self.trainer.num_mini_batches
        if self.trainer.recurrent and self.env.num_envs % count:
            nearest = " or ".join(map(str, nearest_divisors(self.env.num_envs, count)))
            raise ValueError(
                f"trainer.num_mini_batches = {count}: {self.env.num_envs} worlds (env.num_envs) do "
                f"not divide by {count}, and a recurrent network learns from whole worlds; "
                f"nearest: {nearest}"
            )
        return self

    @model_validator(mode="after")
    def _advantages_have_a_spread(self) -> Self:
        per_mini_batch = self.trainer.normalize_advantage_per_mini_batch
        count = self.batch_size // (self.trainer.num_mini_batches if per_mini_batch else 1)
        if count < 2:
            raise ValueError(
                f"advantages are normalised over {count} sample, which has no spread; "
                f"give the {'mini-batch' if per_mini_batch else 'rollout'} 2 or more (env.num_envs "
                f"{self.env.num_envs}, trainer.num_steps_per_env {self.trainer.num_steps_per_env})"
            )
        return self


def is_term(path: tuple[str, ...]) -> bool:
    """Whether a key names a term, or a group of observation terms."""
    if path[:1] != ("env",) or len(path) < 3 or path[1] not in TERM_TABLES:
        return False
    return len(path) == 3 or (len(path) == 4 and path[1] == "observations")
