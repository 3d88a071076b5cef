"""From an error that ended a run to what a person reads of it."""

from __future__ import annotations

import contextlib
import traceback
from typing import TYPE_CHECKING

from trainer.memory import fewer_worlds, shortage
from trainer.ranks import RankError
from trainer.telemetry import Culprit, Failure, Position

if TYPE_CHECKING:
    from trainer.loop import Trainer
    from trainer.verdict import Verdict


def failure_of(
    error: BaseException,
    position: Position,
    trainer: Trainer | None,
    *,
    run_dir: str,
    num_envs: int,
    has_ranks: bool,
) -> Failure:
    """Say what went wrong, where, and what to try.

    Args:
        error: what ended the run.
        position: where the loop was.
        trainer: as the error has left it; None before it was built.
        run_dir: the run's folder.
        num_envs: N; 0: not known.
        has_ranks: whether several ranks learn together, of which this is the first.
    """
    message, hint = f"{type(error).__name__}: {error}".removesuffix(": "), ""
    culprit, verdict = _found(error, trainer)
    if verdict is not None:
        message += f" ({verdict.sentence})"
    message += "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    lack = shortage(error)
    if lack is not None:
        message = lack.sentence(num_envs)
        if num_envs > 1:
            fewer = fewer_worlds(num_envs, lack.asked or 0, lack.free or 0)
            hint = f"fewer worlds: --num-envs {fewer}"
    if isinstance(error, RankError):
        message = str(error)
    elif has_ranks:
        message = f"rank 0: {message}"
    return Failure(
        message,
        "".join(traceback.format_exception(error)),
        position.stage if trainer is not None else None,
        position.iteration + 1,
        out_of_memory=lack is not None,
        hint=hint,
        culprit=culprit,
        run_dir=run_dir,
        looked_at=verdict.looked_at if verdict is not None else (),
    )


def _found(error: BaseException, trainer: Trainer | None) -> tuple[Culprit | None, Verdict | None]:
    """The first bad number and the side at fault, where numbers are what the error is about."""
    culprit = verdict = None
    if isinstance(error, ArithmeticError) and trainer is not None:
        with contextlib.suppress(Exception):  # the search for a cause must not hide it
            from trainer.culprit import find_culprit  # imports torch
            from trainer.verdict import find_verdict

            culprit = find_culprit(error, trainer)
            verdict = find_verdict(error, trainer, culprit)
    return culprit, verdict
