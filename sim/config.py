"""The worlds' settings: which robot, how time runs, and the terms of every manager.

Free of torch and MuJoCo, so that the menu can read presets at once. Terms are named here with
their numbers; the functions behind the names live in `sim.terms`, and `sim.catalog` checks that a
term exists and takes these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sim.settings import (
    FiniteFloat,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    Range,
    Settings,
    UnitInterval,
)
from sim.terrain.config import TerrainConfig

__all__ = [
    "ActionSettings",
    "CommandSettings",
    "CurriculumSettings",
    "EnvConfig",
    "EventSettings",
    "FiniteFloat",
    "NonNegativeFloat",
    "ObservationSettings",
    "PositiveFloat",
    "PositiveInt",
    "Range",
    "RewardSettings",
    "Settings",
    "TermSettings",
    "TerminationSettings",
    "TerrainConfig",
    "UnitInterval",
]


LONGEST_TICK = 0.05
"""Seconds; beyond it stiff contacts and motors gain energy in every tick, and robots explode."""
SHORTEST_TICK = 1e-5
"""Seconds; below it a second of simulated time takes more than 100,000 ticks."""
MOST_STEPS = 1_000_000_000
"""Env steps of an episode; beyond it a counter of them, or the time that they take, has no use."""
LONGEST_STEP = 1.0
"""Seconds; a policy that acts more rarely than this controls nothing that moves."""


class TermSettings(Settings):
    """One term of a manager; keys beside the named ones are the parameters of its function."""

    model_config = ConfigDict(extra="allow")

    term: str | None = None
    """Name of the function; the key of the table where unset."""

    @property
    def params(self) -> dict[str, Any]:
        """Parameters for the function, by name."""
        return dict(self.model_extra or {})


class ActionSettings(TermSettings):
    """How a slice of the action drives the robot."""


class CommandSettings(TermSettings):
    """A goal that is drawn anew from time to time."""


class ObservationSettings(TermSettings):
    """One part of an observation vector: compute, then noise, clip and scale."""

    noise: Range | None = None
    """Uniform noise added to every entry, in the term's unit."""
    clip: Range | None = None
    """Limits applied after the noise."""
    scale: FiniteFloat = 1.0
    """Factor applied last."""


class RewardSettings(TermSettings):
    """One part of the reward: weight x value x step_dt."""

    weight: FiniteFloat
    """Weight; a term of weight 0 is not computed and logs 0."""


class TerminationSettings(TermSettings):
    """A reason to end an episode."""

    time_out: bool = False
    """Whether it is a time limit (its value is bootstrapped) rather than an ending of its own."""


class EventSettings(TermSettings):
    """A change to the worlds at start-up, at a reset, or at intervals."""

    mode: Literal["startup", "reset", "interval"]
    """When it happens."""
    interval_range_s: Range | None = None
    """For mode interval: seconds between two events of one world are drawn from this range."""

    @model_validator(mode="after")
    def _interval_has_a_range(self) -> Self:
        if (self.mode == "interval") != (self.interval_range_s is not None):
            raise ValueError("interval_range_s goes with mode = 'interval', and only with it")
        return self


class CurriculumSettings(TermSettings):
    """A rule that changes difficulty with progress."""


class EnvConfig(Settings):
    """A vectorised environment, wholly described."""

    robot: str = ""
    """Which robot stands in every world; to be left out with an `adapter`."""
    adapter: str | None = None
    """Worlds of another program, such as "gymnasium:CartPole-v1", "mjlab:Mjlab-Cartpole-Balance" or
    "package.module:function", in place of a robot and its terms."""
    adapter_options: Mapping[str, Any] | None = None
    """Keyword arguments for whatever makes the adapter's worlds."""
    task: str | None = None
    """A direct task: a class that brings its own actions, observations, rewards and endings. Unset,
    the tables of terms below are the task."""
    params: Mapping[str, FiniteFloat] | None = None
    """Numbers of the direct task, by name; its own defaults where unset."""
    num_envs: Annotated[int, Field(ge=1, le=1_048_576)] = 4096
    """N: worlds simulated side by side."""
    physics_dt: PositiveFloat = 0.005
    """Seconds of one physics tick; smaller is more exact and costs more ticks."""
    decimation: PositiveInt = 4
    """Physics ticks under one action; the policy acts every physics_dt x decimation seconds."""
    episode_length_s: PositiveFloat = 20.0
    """Seconds after which the time limit cuts an episode."""
    env_spacing: PositiveFloat = 2.5
    """Metres between neighbouring worlds' origins on flat ground."""
    terrain: TerrainConfig | None = None
    """Generated ground; flat where unset."""
    solver_iterations: PositiveInt = 10
    """Upper limit of the constraint solver's iterations in one tick."""
    solver_ls_iterations: PositiveInt = 20
    """Upper limit of the line-search iterations in one solver iteration."""
    num_threads: Annotated[int, Field(ge=0, le=1024)] = 0
    """Threads of the physics on a CPU; 0: one for every core that the process may use."""
    nan_guard: bool = True
    """Whether a world that goes bad (NaN, infinity, absurd speed) ends alone, with reward 0, and
    begins anew; off, the first one ends the run, which names it."""
    actions: dict[str, ActionSettings] = Field(default_factory=dict)
    """Action terms; their widths add up to A."""
    commands: dict[str, CommandSettings] = Field(default_factory=dict)
    """Command terms."""
    observations: dict[str, dict[str, ObservationSettings]] = Field(default_factory=dict)
    """Observation groups, each a table of terms that are concatenated in order."""
    rewards: dict[str, RewardSettings] = Field(default_factory=dict)
    """Reward terms."""
    terminations: dict[str, TerminationSettings] = Field(default_factory=dict)
    """Termination terms."""
    events: dict[str, EventSettings] = Field(default_factory=dict)
    """Event terms."""
    curriculum: dict[str, CurriculumSettings] = Field(default_factory=dict)
    """Curriculum terms."""

    @model_validator(mode="after")
    def _time_scales_are_those_of_robots(self) -> Self:
        if not SHORTEST_TICK <= self.physics_dt <= LONGEST_TICK:
            raise ValueError(
                f"physics_dt = {self.physics_dt:g} s is no physics tick for a robot: allowed are "
                f"{SHORTEST_TICK:g} to {LONGEST_TICK:g} s, usual are 0.002 to 0.01 s"
            )
        if self.step_dt > LONGEST_STEP:
            raise ValueError(
                f"decimation = {self.decimation} lets the policy act once in {self.step_dt:g} s "
                f"(physics_dt {self.physics_dt:g} s): allowed is up to {LONGEST_STEP:g} s, usual "
                "are 0.01 to 0.05 s"
            )
        if self.episode_length_s < self.step_dt * (1 - 1e-6):
            raise ValueError(
                f"episode_length_s = {self.episode_length_s:g} s is shorter than one env step, "
                f"which has {self.step_dt:g} s (physics_dt {self.physics_dt:g} s x decimation "
                f"{self.decimation})"
            )
        if self.episode_length_s / self.step_dt > MOST_STEPS:
            raise ValueError(
                f"episode_length_s = {self.episode_length_s:g} s has more than {MOST_STEPS:,} env "
                f"steps of {self.step_dt:g} s"
            )
        return self

    @property
    def step_dt(self) -> float:
        """Seconds of simulated time in one env step."""
        return self.physics_dt * self.decimation

    @property
    def max_episode_length(self) -> int:
        """Env steps after which the time limit cuts an episode."""
        return math.ceil(round(self.episode_length_s / self.step_dt, 6))
