"""What a person looks at more closely: the filling rollout, and any stage with its tensors.

All of it is made in the session's thread, and only where somebody looks or a pause asks for it.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from trainer.stages import Stage

if TYPE_CHECKING:
    from torch import Tensor

    from trainer.loop import Trainer
    from trainer.telemetry import Position, RolloutView, Snapshot, TensorSummary
    from trainer.trace import Trace, TraceRequest
    from trainer.tracing import Tracer
    from trainer.views import RolloutPicture

_ROLLOUT_INTERVAL = 0.1
"""Seconds between two pictures of the rollout."""

_FILLS_SLOWLY = 0.5
"""Seconds of filling after which a rollout is shown before it is full.

One that fills faster is shown only when it is full: looks that keep time with the iterations would
otherwise find the same few rows of it again and again, and never an advantage.
"""

_WATCHED_TIME = 2.0
"""Seconds after a look at the run for which it counts as watched."""

_ENDED_INTERVAL = 0.1
"""Seconds between two pictures of iterations that have ended."""

_TRACE_INTERVAL = 0.4
"""Seconds between two looks at a stage while iterations go by."""


class Looking:
    """Pictures of a trainer's insides; before `attach` there is nothing to see."""

    def __init__(self) -> None:
        self.request: TraceRequest | None = None
        """What a person looks at; set by other threads."""
        self.rollout: RolloutView | None = None
        """The newest picture of the rollout."""
        self._answered: TraceRequest | None = None
        self._trainer: Trainer | None = None
        self._tracer: Tracer | None = None
        self._picture: RolloutPicture | None = None
        self._time_outs: Tensor | None = None
        self._rows_known: set[int] = set()  # in there
        self._rollout_time = 0.0
        self._filling_time = -math.inf  # since when the rollout fills
        self._look_time = -math.inf
        self._is_shown = True  # the newest picture of the rollout
        self._ended_time = 0.0
        self._trace_time = 0.0

    def attach(self, trainer: Trainer) -> None:
        """Look at this trainer from now on."""
        from trainer.tracing import Tracer

        self._trainer, self._tracer = trainer, Tracer(trainer)

    @property
    def is_unanswered(self) -> bool:
        """Whether a person has turned to something that was not traced yet."""
        return self.request is not None and self.request is not self._answered

    def entering(self, position: Position, *, pauses_soon: bool) -> None:
        """Remember the row that `store` is about to overwrite, if a person may compare the two."""
        request = self.request
        if position.stage is Stage.STORE and request is not None and pauses_soon:
            assert self._tracer is not None
            self._tracer.remember_row(request.world)

    def looked_at(self) -> None:
        """Hear, from any thread, that somebody reads what the run shows."""
        self._look_time = time.monotonic()
        self._is_shown = True

    @property
    def is_watched(self) -> bool:
        """Whether somebody reads it; if nobody does, no picture is worth its transfer."""
        return time.monotonic() - self._look_time < _WATCHED_TIME

    def refresh_rollout(self, position: Position) -> None:
        """Take a picture of the rollout if the last one was looked at and is not recent.

        Behind `store` only of one that fills slowly, or where none was ever shown. The device is
        not waited for: a picture shows at the first call that finds it arrived.
        """
        if position.stage is Stage.STORE:
            self._remember_time_outs(position.step - 1)
        now = time.perf_counter()
        if position.stage is Stage.STORE and position.step == 1:
            self._filling_time = now
        is_due = (
            position.stage is not Stage.STORE
            or self.rollout is None
            or now - self._filling_time >= _FILLS_SLOWLY
        )
        if (
            is_due
            and self._picture is None
            and self._is_shown
            and self.is_watched
            and now - self._rollout_time >= _ROLLOUT_INTERVAL
        ):
            self._picture, self._rollout_time = self._pictured(position), now
        if self._picture is not None and self._picture.is_here:
            self.rollout, self._picture = self._picture.view(), None
            self._is_shown = False

    def ended(self, snapshot: Snapshot, *, even_if_recent: bool = False) -> Snapshot | None:
        """Complete a snapshot taken between two iterations, for those who look back at it later.

        Returns:
            None where nobody watches, or the last one is recent.
        """
        now = time.perf_counter()
        is_due = self.is_watched and now - self._ended_time >= _ENDED_INTERVAL
        if not (even_if_recent or is_due):
            return None
        from trainer.views import EpisodesPicture

        assert self._trainer is not None
        self._ended_time = now
        steps = self._trainer.rollout.num_steps
        whole = self._pictured(snapshot.position._replace(stage=Stage.FRESH, step=steps))
        episodes = EpisodesPicture(self._trainer.episodes)
        return replace(
            snapshot,
            rollout=whole.view(),
            episodes=episodes.view(),
            boundary=None,
            pending="",
        )

    def _remember_time_outs(self, row: int) -> None:
        """Keep which worlds of the row just stored timed out; the rollout knows no more than ends.

        Nothing is kept, and no memory taken, while nobody watches.
        """
        trainer = self._trainer
        assert trainer is not None
        if self.is_watched and trainer.feedback is not None:
            feedback = trainer.feedback
            self._time_outs_of(trainer)[row] = (feedback.time_outs & ~feedback.terminated).float()
            self._rows_known.add(row)
        elif row in self._rows_known:
            self._time_outs_of(trainer)[row] = math.nan
            self._rows_known.discard(row)

    def _time_outs_of(self, trainer: Trainer) -> Tensor:
        """Which dones of the rollout are time-outs, [T, N]; NaN where that is not known."""
        import torch

        if self._time_outs is None:
            self._time_outs = torch.full_like(trainer.rollout.rewards[:, :, 0], math.nan)
        return self._time_outs

    def _pictured(self, position: Position) -> RolloutPicture:
        from trainer.views import RolloutPicture

        trainer = self._trainer
        assert trainer is not None
        return RolloutPicture(
            trainer.rollout,
            position.step,
            trainer.config.gamma,
            self._time_outs_of(trainer),
            has_targets=position.stage >= Stage.TARGETS,
        )

    def tensors(self, position: Position) -> tuple[TensorSummary, ...]:
        """Take a picture of the rollout as it is, and describe the tensors of the stage."""
        from trainer.tensors import stage_tensors, summarize

        assert self._trainer is not None
        self.rollout, self._picture = self._pictured(position).view(), None
        return tuple(summarize(entry) for entry in stage_tensors(self._trainer, position.stage))

    def trace(self, *, in_full: bool) -> Trace | None:
        """Look at what a person looks at; None where nobody does."""
        self._answered = request = self.request
        if request is None:
            return None
        assert self._tracer is not None
        return self._tracer.trace(request, in_full=in_full)

    def traces_now(self) -> bool:
        """Whether, between two iterations, a person looks and the last trace is old enough."""
        now = time.monotonic()
        if self.request is None or now - self._trace_time < _TRACE_INTERVAL:
            return False
        self._trace_time = now
        return True
