"""Breakpoints: what makes a run pause at an iteration boundary, and the words to say it in."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import NamedTuple

REWARD = "Train/mean_reward"
ALIASES = {
    "kl": "Loss/kl_mean",
    "kl_max": "Loss/kl_max",
    "reward": REWARD,
    "entropy": "Loss/entropy",
    "steps/s": "Perf/total_fps",
}
"""Short names of tags."""

WINDOW = 50
"""Iterations over which the best reward is looked for, where nobody says how many."""
LONGEST_WINDOW = 10_000

EXAMPLES = (
    "nan",
    "kl > 0.05",
    "reward drop > 20% in 50",
    "iteration 500",
    "Loss/entropy < 2",
)
"""One of each kind."""

_FINITE = ("Loss/", "Policy/", "Train/")
"""Beginnings of the tags whose values are always finite in a healthy run."""

_DROP = re.compile(r"(?:reward )?drop(?: >)? ?([\d.eE+-]+) ?%(?: in (\d+))?")
_ITERATION = re.compile(r"(?:iteration|it)(?: =)? ?(\d+)")
_METRIC = re.compile(r"(\S+) ?([<>]) ?(\S+)")
_ALWAYS = " always"


class Watched(StrEnum):
    """What a breakpoint watches."""

    NOT_FINITE = "not finite"
    METRIC = "metric"
    REWARD_DROP = "reward drop"
    ITERATION = "iteration"


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Pauses the loop when something has happened."""

    watched: Watched
    threshold: float = 0.0
    """The metric's limit, the drop in percent, or the iteration."""
    tag: str = ""
    """Of the metric."""
    above: bool = True
    """Whether the metric is too large, else too small."""
    window: int = WINDOW
    """For a drop: iterations over which the best reward is looked for."""
    stays: bool = False
    """Whether it stays armed after it has paused the loop."""

    @property
    def text(self) -> str:
        """The words that `parse` reads."""
        return self._condition + (_ALWAYS if self.stays else "")

    @property
    def _condition(self) -> str:
        match self.watched:
            case Watched.NOT_FINITE:
                return "nan"
            case Watched.REWARD_DROP:
                return f"reward drop > {self.threshold:g}% in {self.window}"
            case Watched.ITERATION:
                return f"iteration {self.threshold:.0f}"
            case Watched.METRIC:
                return f"{self.tag} {'>' if self.above else '<'} {self.threshold:g}"


class Hit(NamedTuple):
    """A breakpoint that something has happened for."""

    breakpoint: Breakpoint
    why: str
    """The cause, with its number."""


def parse(text: str, tags: Collection[str] = (), completed: int = 0) -> Breakpoint:
    """Read a breakpoint, in the words of `EXAMPLES`; "always" behind it has it stay armed.

    Args:
        text: what a person typed.
        tags: the metrics that there are; empty: any name will do.
        completed: iterations that are done.

    Raises:
        ValueError: it is none; says what would be.
    """
    words = " ".join(text.split())
    stays = words.lower().endswith(_ALWAYS)
    if stays:
        words = words[: -len(_ALWAYS)]
    if words.lower() in ("nan", "inf", "not finite"):
        return Breakpoint(Watched.NOT_FINITE, stays=stays)
    if found := _DROP.fullmatch(words.lower()):
        return Breakpoint(
            Watched.REWARD_DROP,
            _positive(found[1], "the drop"),
            window=_window(found[2]),
            stays=stays,
        )
    if found := _ITERATION.fullmatch(words.lower()):
        if int(found[1]) <= completed:
            raise ValueError(f"iteration {found[1]} is over: {completed} are done")
        return Breakpoint(Watched.ITERATION, float(found[1]))
    if found := _METRIC.fullmatch(words):
        tag, sign, number = found.groups()
        return Breakpoint(
            Watched.METRIC, _number(number), _full_tag(tag, tags), sign == ">", stays=stays
        )
    raise ValueError(f"such as {', or '.join(EXAMPLES)}")


class Breakpoints:
    """Looks at every iteration for what the armed breakpoints watch."""

    def __init__(self) -> None:
        self._rewards: deque[float] = deque(maxlen=LONGEST_WINDOW)

    def check(
        self,
        armed: Sequence[Breakpoint],
        iteration: int,
        metrics: Mapping[str, float],
        faults: Sequence[str] = (),
    ) -> list[Hit]:
        """Say which breakpoints the loop is to pause for.

        Args:
            armed: those to look at.
            iteration: completed iterations.
            metrics: of the iteration just completed.
            faults: a sentence for each world that went bad in it.
        """
        if math.isfinite(reward := metrics.get(REWARD, math.nan)):
            self._rewards.append(reward)
        found = ((one, self._why(one, iteration, metrics, faults)) for one in armed)
        return [Hit(one, why) for one, why in found if why]

    def _why(
        self,
        one: Breakpoint,
        iteration: int,
        metrics: Mapping[str, float],
        faults: Sequence[str],
    ) -> str:
        """Return the cause; empty where there is none."""
        match one.watched:
            case Watched.NOT_FINITE:
                return faults[0] if faults else _not_finite(metrics)
            case Watched.REWARD_DROP:
                return self._drop(one) if REWARD in metrics else ""
            case Watched.ITERATION:
                done = iteration >= one.threshold
                return f"iteration {iteration} is done" if done else ""
            case Watched.METRIC:
                value = metrics.get(one.tag, math.nan)
                beyond = value > one.threshold if one.above else value < one.threshold
                side = "above" if one.above else "below"
                return f"{one.tag} {value:.4g} {side} {one.threshold:g}" if beyond else ""

    def _drop(self, one: Breakpoint) -> str:
        recent = list(self._rewards)[-one.window :]
        if not recent:
            return ""
        best, now = max(recent), recent[-1]
        drop = 100.0 * (best - now) / max(abs(best), 1e-9)
        if drop <= one.threshold:
            return ""
        return (
            f"reward {now:.4g} is {drop:.3g}% below {best:.4g}, "
            f"the best of the last {len(recent)} iterations"
        )


def _not_finite(metrics: Mapping[str, float]) -> str:
    for tag, value in metrics.items():
        if tag.startswith(_FINITE) and not math.isfinite(value):
            return f"{tag} is {value}"
    return ""


def _full_tag(name: str, tags: Collection[str]) -> str:
    """Return the tag that a person means by its name, its alias or its last part."""
    tag = ALIASES.get(name.lower(), name)
    if not tags or tag in tags:
        return tag
    ends = [known for known in tags if known.rpartition("/")[2] == name]
    if len(ends) == 1:
        return ends[0]
    near = get_close_matches(tag, tags, n=1, cutoff=0.5)
    raise ValueError(
        f"there is no metric {name!r}" + (f"; did you mean {near[0]}?" if near else "")
    )


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is no number")
    return number


def _positive(text: str, what: str) -> float:
    number = _number(text)
    if number <= 0:
        raise ValueError(f"{what} must be above 0, not {text}")
    return number


def _window(text: str | None) -> int:
    window = WINDOW if text is None else int(text)
    if not 2 <= window <= LONGEST_WINDOW:
        raise ValueError(f"the best is looked for in 2 to {LONGEST_WINDOW:,} iterations")
    return window
