"""Commands: goals that are drawn anew from time to time, with metrics of how well they are met."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from sim.config import CommandSettings, Range
from sim.managers.binding import bind
from sim.managers.calling import call, made
from sim.managers.state import Stateful
from sim.sampling import uniform

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv


NEVER = 1e9
"""Seconds until a goal that is held is drawn anew."""


class Axis(NamedTuple):
    """A number of a goal that a person may steer."""

    label: str
    unit: str
    low: float
    """The least that is drawn."""
    high: float
    """The most."""


class Command(Stateful):
    """A command term: `value` [N, k], redrawn when its time is up.

    Time is counted down in float32 seconds, as Isaac Lab does, so that goals change at the same
    steps as there, rounding included: 499 and 999 of an episode for 10 s at 50 Hz (the step that
    resets a world counts as the first of the timer), 120 and 241 for 4 s at 30 Hz (120 subtractions
    leave a rest of 4 s).
    """

    buffers: ClassVar[tuple[str, ...]] = ("value", "time_left", "metric_sums", "metric_steps")
    metric_names: ClassVar[tuple[str, ...]] = ()
    kind: ClassVar[Literal["", "velocity", "pose"]] = ""
    """What a drawing may take the goal for: forward, left (m/s) and turn (rad/s) of the base, or
    position (m) and quaternion wxyz in the base's frame."""
    takes_ranges: ClassVar[bool] = False
    """Whether `set_range` can be called."""
    axes: tuple[Axis, ...] = ()
    """The first columns of `value`, as far as a person may steer them."""

    def __init__(self, env: ManagerBasedEnv, width: int, resampling_time: Range) -> None:
        self.env = env
        self.resampling_time = resampling_time
        self.value = torch.zeros(env.num_envs, width, device=env.device)
        self.time_left = torch.zeros(env.num_envs, device=env.device)
        self.metric_sums = torch.zeros(len(self.metric_names), env.num_envs, device=env.device)
        self.metric_steps = torch.zeros(env.num_envs, device=env.device)

    def draw(self, ids: Tensor) -> None:
        """Draw new goals for these worlds."""
        raise NotImplementedError(f"{type(self).__name__} has no `draw`")

    def set_range(self, name: str, limits: Range) -> None:
        """Draw from another range from now on; `name` is that of the parameter."""
        raise NotImplementedError

    def update(self) -> None:
        """Adjust `value` of all worlds to their present state."""

    def measure(self) -> Tensor:
        """How far the worlds are from their goals now, [metrics, N] in `metric_names`' order.

        A command without metrics need not say.
        """
        if self.metric_names:
            raise NotImplementedError(f"{type(self).__name__} has metrics and no `measure`")
        return self.metric_sums

    def record(self, measured: Tensor) -> None:
        """Take in what a step measured, [metrics, N]; here: for the mean over the episode."""
        self.metric_sums += measured
        self.metric_steps += 1.0

    def resample(self, ids: Tensor) -> None:
        """Draw new goals for these worlds and wind up their timers."""
        self.draw(ids)
        self.time_left[ids] = uniform(self.env.generator, self.resampling_time, len(ids))

    def compute(self) -> None:
        """One env step: measure under the old command, redraw where time is up, update."""
        self.record(self.measure())
        self.time_left -= self.env.step_dt
        ids = (self.time_left <= 0).nonzero().squeeze(1)
        if len(ids):
            self.resample(ids)
        self.update()

    def actual(self) -> Tensor:
        """What the robot does, beside what `axes` tell it, [N, axes]."""
        return self.value[:, :0]

    def put(self, ids: Tensor, values: Tensor) -> None:
        """Set the first columns of these worlds' goals from outside, [K, axes] or [axes]."""
        self.value[ids, : len(self.axes)] = values

    def hold(self) -> None:
        """Draw no new goals but for new episodes."""
        self.resampling_time = (NEVER, NEVER)
        self.time_left.fill_(NEVER)

    def metrics(self, ids: Tensor) -> dict[str, Tensor]:
        """Metrics of the running episodes of these worlds, [K] each: means over their steps."""
        return dict(zip(self.metric_names, self._episode_means(ids).unbind(), strict=True))

    def episode_metrics(self, ids: Tensor) -> dict[str, Tensor]:
        """Mean over these worlds of each metric of their episodes."""
        return {name: values.mean() for name, values in self.metrics(ids).items()}

    def reset(self, ids: Tensor) -> dict[str, Tensor]:
        """Redraw the goals of these worlds; return and zero the metrics of their episodes."""
        metrics = self.episode_metrics(ids)
        self.metric_sums[:, ids] = 0.0
        self.metric_steps[ids] = 0.0
        self.resample(ids)
        return metrics

    def _episode_means(self, ids: Tensor) -> Tensor:
        return self.metric_sums[:, ids] / self.metric_steps[ids].clamp(min=1.0)


class CommandManager:
    """All command terms.

    Attributes:
        terms: The commands by name.
        ranges: For each command what its parts are drawn from, low and high.
    """

    def __init__(self, env: ManagerBasedEnv, settings: Mapping[str, CommandSettings]) -> None:
        bound = {name: bind(env, ("commands", name), term) for name, term in settings.items()}
        self.terms: dict[str, Command] = {
            name: made(("commands", name), term, env, Command) for name, term in bound.items()
        }
        self.ranges = {name: _ranges(term) for name, term in bound.items()}

    def value(self, name: str) -> Tensor:
        """The command in force, [N, k]."""
        return self.terms[name].value

    def set_range(self, name: str, part: str, limits: Range) -> None:
        """Draw a part of a command from another range from now on."""
        self.terms[name].set_range(part, limits)
        self.ranges[name] = {**self.ranges[name], part: limits}

    def compute(self) -> None:
        """Advance all commands by one env step."""
        for name, term in self.terms.items():
            call(("commands", name), term.compute)

    def reset(self, ids: Tensor) -> dict[str, float | Tensor]:
        """Redraw the commands of these worlds; return the log of their episodes."""
        return {
            f"Metrics/{name}/{metric}": value
            for name, term in self.terms.items()
            for metric, value in call(("commands", name), term.reset, ids).items()
        }

    def metrics(self) -> dict[str, Tensor]:
        """Metrics of all running episodes, `<command>/<metric>` to [N]."""
        return {
            f"{name}/{metric}": values
            for name, term in self.terms.items()
            for metric, values in term.metrics(term.env.all_ids).items()
        }

    def state_dict(self) -> dict[str, Any]:
        """State of every term, by name, with the ranges in force."""
        return {
            name: {
                **term.state_dict(),
                "ranges": {part: list(limits) for part, limits in self.ranges[name].items()},
            }
            for name, term in self.terms.items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        for name, term in self.terms.items():
            term.load_state_dict(state[name])
        self.load_ranges(state)

    def load_ranges(self, state: Mapping[str, Any]) -> None:
        """Draw from the ranges that were in force when `state_dict` was called."""
        for name, ranges in self.ranges.items():
            saved = state.get(name, {}).get("ranges", {})  # an older state has none
            for part, (low, high) in saved.items():
                if ranges.get(part, (low, high)) != (low, high):
                    self.set_range(name, part, (low, high))


def _ranges(command: functools.partial[Any]) -> dict[str, tuple[float, float]]:
    """What the parts of a command are drawn from: its parameters of type `Range`, but the time."""
    return {
        name: command.keywords.get(name, parameter.default)
        for name, parameter in inspect.signature(command.func).parameters.items()
        if parameter.annotation in ("Range", Range) and name != "resampling_time"
    }
