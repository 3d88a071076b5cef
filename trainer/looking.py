"""What a person looks at more closely: the filling rollout, and any stage with its tensors.

All of it is made in the session's thread, and only where somebody looks or a pause asks for it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from trainer.stages import Stage

if TYPE_CHECKING:
    from trainer.loop import Trainer
    from trainer.telemetry import Position, RolloutView, TensorSummary
    from trainer.trace import Trace, TraceRequest
    from trainer.tracing import Tracer

_ROLLOUT_INTERVAL = 0.1
"""Seconds between two pictures of a filling rollout."""

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
        self._rollout_time = 0.0
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

    def refresh_rollout(self, position: Position, *, even_if_recent: bool = False) -> None:
        """Take a picture of the rollout, unless the last one is recent."""
        now = time.perf_counter()
        if even_if_recent or now - self._rollout_time >= _ROLLOUT_INTERVAL:
            from trainer.views import rollout_view

            assert self._trainer is not None
            self.rollout = rollout_view(self._trainer.rollout, position.step)
            self._rollout_time = now

    def tensors(self, position: Position) -> tuple[TensorSummary, ...]:
        """Take a picture of the rollout as it is, and describe the tensors of the stage."""
        from trainer.tensors import stage_tensors, summarize

        assert self._trainer is not None
        self.refresh_rollout(position, even_if_recent=True)
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
