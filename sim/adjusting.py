"""Numbers of the worlds that may change while they are trained on: reward weights, command ranges.

They are named as in a preset, below `env`: `rewards.<term>.weight` and
`commands.<command>.<range>`.
"""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, NamedTuple

from sim.config import Range

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv

REWARDS, WEIGHT, COMMANDS = "rewards", "weight", "commands"


class Adjustable(NamedTuple):
    """One such number, or range."""

    key: str
    value: float | Range
    """The one in force."""
    about: str = ""
    """What it is."""
    note: str = ""
    """What a person should know before another value is given."""
    refusal: str = ""
    """Why another value would have no effect; empty where it has one."""


def adjustable(env: ManagerBasedEnv) -> tuple[Adjustable, ...]:
    """List them all, reward weights first."""
    rules = _rules_of_weights(env)
    weights = [
        Adjustable(
            f"{REWARDS}.{name}.{WEIGHT}",
            weight,
            "Weight of the reward term; at 0 it is not computed. From the next step on.",
            f"The curriculum term {rules[name]} sets it too, and will overwrite yours."
            if name in rules
            else "",
        )
        for name, weight in env.rewards.weights.items()
    ]
    ranges = [
        Adjustable(
            f"{COMMANDS}.{name}.{part}",
            limits,
            "What this part of the command is drawn from, low and high.",
            "Goals that robots have already stay theirs until the next draw.",
            "" if term.takes_ranges else "this command term reads its ranges once, at the start",
        )
        for name, term in env.commands.terms.items()
        for part, limits in env.commands.ranges[name].items()
    ]
    return (*weights, *ranges)


def adjust(env: ManagerBasedEnv, key: str, value: float | Range) -> None:
    """Give another value, from the next step on; goals that robots have already stay theirs.

    Raises:
        ValueError: There is no such key, or the value is not allowed. Nothing has changed.
    """
    known = {one.key: one for one in adjustable(env)}
    if key not in known:
        raise ValueError(f"env.{key}: there is no such number")
    if known[key].refusal:
        raise ValueError(f"env.{key}: {known[key].refusal}")
    table, name, part = key.split(".")
    if table == REWARDS:
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"env.{key} = {value}: must be a finite number")
        env.rewards.weights[name] = float(value)
    else:
        env.commands.set_range(name, part, _range(key, value))


def _range(key: str, value: object) -> Range:
    if isinstance(value, tuple | list) and len(value) == 2:
        low, high = map(float, value)
        if low <= high and math.isfinite(low) and math.isfinite(high):
            return low, high
    raise ValueError(f"env.{key} = {value}: must be two finite numbers in order, low and high")


def _rules_of_weights(env: ManagerBasedEnv) -> dict[str, str]:
    """Reward terms whose weight a curriculum term sets, with that term's name."""
    found = {}
    for name, term in env.curriculum.terms.items():
        for key, parameter in inspect.signature(term.func).parameters.items():
            if parameter.annotation == "RewardName":
                found[term.keywords[key]] = name
    return found
