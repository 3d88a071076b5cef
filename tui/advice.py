"""What to try after a run has failed, by the quantity with which it began."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from trainer.summary import settings
from trainer.telemetry import Culprit, Failure
from tui.draw.numbers import number

_RANK = re.compile(r"^rank \d+: ")

_TOO_LARGE = (
    "lower the weights under env.rewards: single precision overflows at 3e38, "
    "and the value loss squares the returns"
)
_DIVERGED = (
    'a lower trainer.learning_rate or trainer.schedule = "adaptive"; fewer '
    "trainer.num_learning_epochs"
)
_BAD_STATE = (
    "a smaller env.physics_dt with a larger env.decimation, or a clip on the observation term"
)
_MEMORY = "fewer worlds: a smaller --num-envs"

ADVICE = {
    "NonFiniteError: observations": _BAD_STATE,
    "NonFiniteError: rewards": _TOO_LARGE,
    "NonFiniteError: values": _TOO_LARGE,
    "NonFiniteError: returns": _TOO_LARGE,
    "NonFiniteError: advantages": _TOO_LARGE,
    "NonFiniteError: value_loss": _TOO_LARGE,
    "NonFiniteError": _DIVERGED,
    "out of memory": _MEMORY,
    "OSError: [Errno 28]": "free some disk space, or another --run-dir",
    "OSError: the last": "free some disk space, or another --run-dir; ppo-tui doctor looks at it",
    "BrokenWorldError": (
        "a smaller env.physics_dt with a larger env.decimation; with env.nan_guard = true such a "
        "world ends alone"
    ),
    "PhysicsError": (
        "--device cpu, whose engine is another one; ppo-tui doctor shows driver and versions"
    ),
}
"""Beginning of a failure's message to what may help; the first that fits counts."""

_RANK_DIED = re.compile(r"rank \d+ (\(process|is gone|.*lost)")
_OTHER_RANK = (
    "log.txt holds what that process printed last; --resume goes on from the last checkpoint, with "
    "any number of --processes"
)


def advice(failure: Failure) -> str:
    """Return what may help after a failure, or nothing where that is not known."""
    if failure.hint:
        return failure.hint
    if failure.message.endswith("was killed by SIGKILL"):
        return f"if nobody did that, the system was out of memory: {_MEMORY}"
    if _RANK_DIED.match(failure.message):
        return _OTHER_RANK
    message = _RANK.sub("", failure.message)
    return next((text for start, text in ADVICE.items() if message.startswith(start)), "")


def experiment(failure: Failure, preset: str) -> str:
    """Return a command that shows whether the term that went bad is the cause; "" without one.

    Args:
        failure: with its culprit and the run's folder.
        preset: what the run trains.
    """
    culprit = failure.culprit
    if culprit is None or not culprit.term or not failure.run_dir:
        return ""
    term = culprit.term.partition("[")[0].partition(",")[0]
    config: object = settings(Path(failure.run_dir))
    if culprit.quantity == "rewards":
        path, change = ("env", "rewards", term), f"env.rewards.{term}.weight=0"
    else:
        group = culprit.quantity.partition(" ")[2]
        path = ("env", "observations", group, term)
        change = f"env.observations.{group}.{term}.clip=[-100.0, 100.0]"
    for part in path:
        config = config.get(part) if isinstance(config, Mapping) else None
    return "" if config is None else shlex.join(["ppo-tui", "run", preset, "--set", change])


def where(culprit: Culprit) -> str:
    """Say where the first number stands that was not finite, and whose it is.

    For example "observations policy[t 3, world 17, column 4] = nan: base_lin_vel[1]".
    """
    axes = {"t": culprit.step, "world": culprit.world, "column": culprit.column}
    place = ", ".join(f"{name} {index}" for name, index in axes.items() if index is not None)
    value = number(culprit.value).strip()
    term = f": {culprit.term}" if culprit.term else ""
    return f"{culprit.quantity}{f'[{place}]' if place else ''} = {value}{term}"


def place(failure: Failure) -> str:
    """Say where a run failed: "iteration 3, stage optimize"."""
    if failure.stage is None:
        return "before the first stage"
    return f"iteration {failure.iteration}, stage {failure.stage.label}"
