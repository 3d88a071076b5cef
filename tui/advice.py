"""What to try after a run has failed, by the quantity with which it began."""

from __future__ import annotations

import re

from trainer.telemetry import Failure

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
}
"""Beginning of a failure's message to what may help; the first that fits counts."""


def advice(failure: Failure) -> str:
    """Return what may help after a failure, or nothing where that is not known."""
    if failure.hint:
        return failure.hint
    if failure.message.endswith("was killed by SIGKILL"):
        return f"if nobody did that, the system was out of memory: {_MEMORY}"
    message = _RANK.sub("", failure.message)
    return next((text for start, text in ADVICE.items() if message.startswith(start)), "")


def place(failure: Failure) -> str:
    """Say where a run failed: "iteration 3, stage optimize"."""
    if failure.stage is None:
        return "before the first stage"
    return f"iteration {failure.iteration}, stage {failure.stage.label}"
