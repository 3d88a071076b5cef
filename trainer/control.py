"""What a person may ask of a running session beside a plain command, and what holds of it.

Plain data: a screen in this process and one that watches from another ask in the same way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from trainer.breakpoints import Breakpoint
from trainer.stages import Stage

Value: TypeAlias = float | str | tuple[float, float]
"""A number, a choice, or a range: low and high."""

DWELLS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds of slow motion at every stage boundary, step by step."""

MOST_ITERATIONS = 1_000_000
"""Iterations that may be asked for at once."""


@dataclass(frozen=True, slots=True)
class RunIterations:
    """Run some iterations, then pause."""

    count: int
    """How many there are to be, the running one included."""

    def __post_init__(self) -> None:
        if not isinstance(self.count, int) or not 1 <= self.count <= MOST_ITERATIONS:
            raise ValueError(f"1 to {MOST_ITERATIONS:,} iterations can be run, not {self.count}")


@dataclass(frozen=True, slots=True)
class SlowMotion:
    """Dwell at every stage boundary."""

    seconds: float
    """0: not at all."""

    def __post_init__(self) -> None:
        if not isinstance(self.seconds, int | float) or not 0 <= self.seconds <= DWELLS[-1]:
            raise ValueError(f"a boundary can take 0 to {DWELLS[-1]:g} s, not {self.seconds}")


@dataclass(frozen=True, slots=True)
class PauseBehind:
    """Pause behind these stages, every time that the loop runs past them."""

    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        if not all(isinstance(stage, Stage) for stage in self.stages):
            raise ValueError("there are seven stages")


@dataclass(frozen=True, slots=True)
class Arm:
    """Pause when something happens; see `trainer.breakpoints`."""

    breakpoint: Breakpoint


@dataclass(frozen=True, slots=True)
class Disarm:
    """Do not pause for this any more."""

    breakpoint: Breakpoint


@dataclass(frozen=True, slots=True)
class Edit:
    """Give something another value at the next iteration boundary."""

    key: str
    """As a preset names it, such as "trainer.entropy_coef"."""
    value: Value
    reason: str = ""
    """A person's own words, for the log."""


@dataclass(frozen=True, slots=True)
class Undo:
    """Take the last edit back at the next iteration boundary."""

    reason: str = ""


Request: TypeAlias = RunIterations | SlowMotion | PauseBehind | Arm | Disarm | Edit | Undo


@dataclass(frozen=True, slots=True)
class Adjustable:
    """Something that can be edited while a run goes on."""

    key: str
    """As a preset names it."""
    value: Value
    """The one in force."""
    about: str = ""
    """What it is."""
    note: str = ""
    """What a person should know before another value is given."""
    refusal: str = ""
    """Why another value would have no effect; empty where it has one."""


class Change(NamedTuple):
    """One value that an edit has changed."""

    key: str
    old: Value
    new: Value


@dataclass(frozen=True, slots=True)
class AppliedEdit:
    """An edit that is in force."""

    iteration: int
    """Completed iterations when it was made."""
    reason: str
    changes: tuple[Change, ...]
    """What was asked for, then what had to follow."""

    @property
    def text(self) -> str:
        """Say what has changed."""
        return ", ".join(
            f"{key} {write_value(old)} to {write_value(new)}" for key, old, new in self.changes
        )


@dataclass(frozen=True, slots=True)
class Control:
    """What of all this holds now."""

    dwell: float = 0.0
    """Seconds that the loop dwells at every stage boundary."""
    mask: tuple[Stage, ...] = ()
    """Stages behind which it pauses."""
    breakpoints: tuple[Breakpoint, ...] = ()
    """Those that are armed."""
    adjustables: tuple[Adjustable, ...] = ()
    """What can be edited; empty until the worlds are built."""
    edits: tuple[AppliedEdit, ...] = ()
    """Those in force, the last one last."""
    waiting: tuple[Edit | Undo, ...] = ()
    """To be done at the next iteration boundary."""
    paused_by: str = ""
    """The breakpoint that the loop is paused for, and its number; empty where it is for none."""


def write_value(value: Value) -> str:
    """Write a value as a person types it."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return " ".join(f"{limit:.6g}" for limit in value)
    return f"{value:.6g}"


def read_value(text: str, like: Value) -> Value:
    """Read what a person has typed.

    Args:
        text: such as "0.005", "-0.5 1" or "fixed".
        like: a value of the same kind.

    Raises:
        ValueError: it is no such value; says what would be.
    """
    if isinstance(like, str):
        return text.strip()
    words = text.replace(",", " ").replace("[", " ").replace("]", " ").split()
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if not all(map(math.isfinite, numbers)):
        raise ValueError("must be finite")
    if isinstance(like, tuple):
        if len(numbers) != 2:
            raise ValueError("must be two numbers, low and high, such as -0.5 1")
        if numbers[0] > numbers[1]:
            raise ValueError(f"{numbers[0]:g} {numbers[1]:g} is not in order: low, high")
        return numbers[0], numbers[1]
    if len(numbers) != 1:
        raise ValueError("must be a number, such as 0.005 or 5e-3")
    return numbers[0]
