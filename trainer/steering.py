"""What a person has asked of a running session: what holds, what waits for its time, what pauses.

Requests come from any thread and are taken at once; edits are done in the session's thread, at an
iteration boundary.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainer.breakpoints import Breakpoint, Breakpoints, Hit, Watched
from trainer.control import (
    Arm,
    Control,
    Disarm,
    Edit,
    PauseBehind,
    Request,
    RunIterations,
    SlowMotion,
    Undo,
)
from trainer.stages import GateMode, StageGate

if TYPE_CHECKING:
    from trainer.live import Live

MOST_WAITING = 100
"""Edits that may wait for the next boundary."""
MOST_BREAKPOINTS = 50
REFRESH_INTERVAL = 1.0
"""Seconds between two looks at values that may have changed by themselves."""


class Steering:
    """Takes requests, and carries out what must wait.

    Args:
        gate: the loop's.
        record: keeps an event, as kind and text.
        changed: called from any thread when `control` is another one.
    """

    def __init__(
        self,
        gate: StageGate,
        record: Callable[[str, str], object],
        changed: Callable[[], None],
    ) -> None:
        self.control = Control()
        """What holds now; replaced as a whole."""
        self._gate = gate
        self._record = record
        self._changed = changed
        self._lock = threading.Lock()
        self._breakpoints = Breakpoints()
        self._live: Live | None = None
        self._refresh_time = 0.0
        self._planned = 0  # of the edits that wait, those that other ranks have heard of
        self._planned_for = -1

    # From any thread.

    def take(self, request: Request) -> None:
        """Do what is asked for, or have it done at the next iteration boundary.

        Raises:
            TypeError: it is no request.
        """
        match request:
            case RunIterations(count):
                self._gate.set_mode(GateMode.ONE_ITERATION, count)
            case SlowMotion(seconds):
                self._gate.set_dwell(seconds)
                self._set(dwell=seconds)
            case PauseBehind(stages):
                self._gate.set_mask(stages)
                self._set(mask=tuple(sorted(stages)))
            case Arm(one):
                self._arm(one)
            case Disarm(one):
                with self._lock:
                    left = tuple(other for other in self.control.breakpoints if other != one)
                    self.control = replace(self.control, breakpoints=left)
            case Edit() | Undo():
                with self._lock:
                    waiting = (*self.control.waiting, request)[:MOST_WAITING]
                    self.control = replace(self.control, waiting=waiting)
                self._gate.wake()
            case _:
                raise TypeError(f"{request!r} is no request")
        self._changed()

    def _arm(self, one: Breakpoint) -> None:
        with self._lock:
            others = tuple(other for other in self.control.breakpoints if other != one)
            armed = (*others, one)[-MOST_BREAKPOINTS:]
            self.control = replace(self.control, breakpoints=armed)

    def let_go(self) -> None:
        """Slow down and pause for nothing any more: there is nobody who would let the loop go on.

        A loop that is paused stays so.
        """
        held = self.control
        if held.dwell or held.mask or held.breakpoints:
            self._gate.set_dwell(0.0)
            self._gate.set_mask(())
            self._set(dwell=0.0, mask=(), breakpoints=())
            self._record("command", "slow motion, stages to pause behind and breakpoints are off")
            self._changed()

    @property
    def pending(self) -> list[str]:
        """What waits for the end of the iteration, in words."""
        number = len(self.control.waiting)
        if not number:
            return []
        return [f"{number} edit{'' if number == 1 else 's'} when this iteration ends"]

    # In the session's thread.

    def attach(self, live: Live) -> None:
        """Edit these values from now on."""
        self._live = live
        self._set(adjustables=live.adjustables(), edits=live.edits)

    def at_boundary(self) -> bool:
        """Do the edits that wait; returns whether anything has changed."""
        if not self.control.waiting:
            return False
        with self._lock:
            waiting = self.control.waiting
            due = self._due(waiting)
            self.control = replace(self.control, waiting=waiting[due:])
        done = [self._edit(request) for request in waiting[:due]]
        assert self._live is not None
        self._set(adjustables=self._live.adjustables(), edits=self._live.edits)
        self._changed()
        return any(done)

    def _due(self, waiting: Sequence[Edit | Undo]) -> int:
        """Return how many of the edits that wait are to be done now.

        Several ranks are told of an edit at one boundary and do it at the next: by then each has
        heard of it, however far ahead it was.
        """
        assert self._live is not None
        if self._live.is_alone:
            return len(waiting)
        now = self._live.completed_iterations
        due = self._planned if now == self._planned_for else 0
        if unheard := waiting[self._planned :]:
            self._live.plan(now + 1, unheard)
        self._planned, self._planned_for = len(waiting) - due, now + 1
        return due

    def refresh(self) -> None:
        """Take in values that something else has changed: the KL, a curriculum."""
        if self._live is None or time.monotonic() - self._refresh_time < REFRESH_INTERVAL:
            return
        self._refresh_time = time.monotonic()
        if (now := self._live.adjustables()) != self.control.adjustables:
            self._set(adjustables=now)

    def _edit(self, request: Edit | Undo) -> bool:
        assert self._live is not None
        reason = f" ({request.reason})" if request.reason else ""
        try:
            if isinstance(request, Undo):
                self._record("edit", f"taken back: {self._live.undo().text}{reason}")
            else:
                self._record("edit", f"{self._live.apply(request).text}{reason}")
        except ValueError as error:
            self._record("edit", f"refused: {error}")
            return False
        return True

    def check(self, iteration: int, metrics: Mapping[str, float], faults: Sequence[str]) -> None:
        """Pause at this boundary if a breakpoint says so."""
        armed = self.control.breakpoints
        self._pause_for(self._breakpoints.check(armed, iteration, metrics, faults))

    def pause_for_fault(self, what: str) -> bool:
        """Pause where something is not finite, if that is wanted; returns whether it is."""
        armed = [one for one in self.control.breakpoints if one.watched is Watched.NOT_FINITE]
        self._pause_for([Hit(one, what) for one in armed[:1]])
        return bool(armed)

    def _pause_for(self, hits: Sequence[Hit]) -> None:
        if not hits:
            return
        for hit in hits:
            self._record("break", f"paused: {hit.why} (breakpoint {hit.breakpoint.text})")
        spent = {hit.breakpoint for hit in hits if not hit.breakpoint.stays}
        with self._lock:
            left = tuple(one for one in self.control.breakpoints if one not in spent)
            self.control = replace(self.control, breakpoints=left, paused_by=hits[0].why)
        self._gate.set_mode(GateMode.PAUSE)
        self._changed()

    def resumed(self) -> None:
        """Forget what the loop was paused for."""
        if self.control.paused_by:
            self._set(paused_by="")

    def dwell_of(self, num_boundaries: int) -> float:
        """Seconds that slow motion adds to an iteration."""
        return self.control.dwell * num_boundaries

    def _set(self, **changes: Any) -> None:  # noqa: ANN401 - fields of Control
        with self._lock:
            self.control = replace(self.control, **changes)
