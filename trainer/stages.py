"""The seven stages of one PPO iteration, and the gate that lets a person pause between them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from enum import IntEnum, StrEnum


class Phase(StrEnum):
    """The two halves of an iteration: gather experience, then learn from it."""

    COLLECT = "collect"
    LEARN = "learn"


class Stage(IntEnum):
    """The seven stages, in the order in which an iteration runs them."""

    OBSERVE = 1
    ACT_STEP = 2
    STORE = 3
    TARGETS = 4
    SAMPLE = 5
    OPTIMIZE = 6
    FRESH = 7

    @property
    def label(self) -> str:
        """The stage's name as code, screen, help and log write it."""
        return self.name.lower()

    @property
    def phase(self) -> Phase:
        """Stages 1 to 3 collect the rollout; 4 to 7 learn from it."""
        return Phase.COLLECT if self <= Stage.STORE else Phase.LEARN


class GateMode(StrEnum):
    """How far the loop may run before it pauses."""

    RUN = "run"
    PAUSE = "pause"
    ONE_STAGE = "one stage"
    ONE_PHASE = "one phase"
    ONE_ITERATION = "one iteration"

    @property
    def pending(self) -> str:
        """What the loop will do, until it has done it."""
        match self:
            case GateMode.RUN:
                return ""
            case GateMode.ONE_PHASE:
                return "pauses at the end of this phase"
            case GateMode.ONE_ITERATION:
                return "pauses at the end of this iteration"
            case _:
                return "pauses at the next stage boundary"


class StopRequested(Exception):  # noqa: N818 - a request, not an error
    """Raised at a stage boundary in the session thread when the run must end now."""


def _nothing() -> None:
    """Do nothing."""


class StageGate:
    """A gate that the loop passes at each stage boundary.

    The session thread calls `passing`; any thread may set the mode. A boundary lies *behind* the
    stage named, so while the gate is closed the outputs of that stage are there to look at.

    Args:
        on_pause: called in the session thread once at the start of each wait.
        on_wake: called in the session thread whenever `wake` was called during a wait.
        on_resume: called in the session thread when the wait is over.
    """

    def __init__(
        self,
        on_pause: Callable[[], None] = _nothing,
        on_wake: Callable[[], None] = _nothing,
        on_resume: Callable[[], None] = _nothing,
        on_dwell: Callable[[], None] = _nothing,
    ) -> None:
        self._condition = threading.Condition()
        self._mode = GateMode.RUN
        self._orders = 0  # modes asked for so far
        self._iterations = 1  # to run in mode ONE_ITERATION
        self._mask: frozenset[Stage] = frozenset()
        self._dwell = 0.0
        self._stop = False
        self._busy = False  # False: an open gate, whose boundaries cost one attribute read
        self._paused_behind: Stage | None = None
        self._woken = False
        self._on_pause = on_pause
        self._on_wake = on_wake
        self._on_resume = on_resume
        self._on_dwell = on_dwell

    @property
    def mode(self) -> GateMode:
        """The mode last asked for."""
        return self._mode

    @property
    def paused_behind(self) -> Stage | None:
        """The stage behind which the loop waits now, or None while it runs."""
        return self._paused_behind

    @property
    def stopping(self) -> bool:
        """Whether the loop has been told to leave."""
        return self._stop

    @property
    def pending(self) -> str:
        """What the loop will do, until it has done it."""
        mode, iterations = self._mode, self._iterations
        if mode is GateMode.ONE_ITERATION and iterations > 1:
            return f"pauses at the end of {iterations} iterations, this one included"
        return mode.pending

    def set_mode(self, mode: GateMode, iterations: int = 1) -> None:
        """Ask for a mode; it takes effect at the next stage boundary.

        Args:
            mode: how far to run.
            iterations: for `ONE_ITERATION`: how many there are to be, the running one included.
        """
        with self._condition:
            self._mode = mode
            self._iterations = iterations
            self._orders += 1
            self._rouse()

    def set_mask(self, stages: Collection[Stage]) -> None:
        """Pause behind these stages whenever the loop runs."""
        with self._condition:
            self._mask = frozenset(stages)
            self._rouse()

    def set_dwell(self, seconds: float) -> None:
        """Wait so long at every boundary that is passed; 0: not at all."""
        with self._condition:
            self._dwell = seconds
            self._rouse()

    def _rouse(self) -> None:
        self._busy = (
            self._stop or self._mode is not GateMode.RUN or bool(self._mask) or self._dwell > 0
        )
        self._condition.notify_all()

    def stop(self) -> None:
        """Make the loop leave at its next boundary with `StopRequested`, paused or not."""
        with self._condition:
            self._stop = True
            self._rouse()

    def wake(self) -> None:
        """Have `on_wake` called, if the loop waits or dwells; without effect while it runs."""
        with self._condition:
            self._woken = True
            self._condition.notify_all()

    def passing(self, stage: Stage, *, phase_ends: bool) -> None:
        """Pass the boundary behind `stage`, or wait there.

        Args:
            stage: the stage that has just ended.
            phase_ends: whether the next stage belongs to the other phase.

        Raises:
            StopRequested: the run must end now.
        """
        if self._busy:
            self._wait_here(stage, phase_ends)

    def _wait_here(self, stage: Stage, phase_ends: bool) -> None:
        with self._condition:
            if self._stop:
                raise StopRequested
            closes = self._closes(stage, phase_ends)
        if not closes and not self._dwell_here():
            return
        with self._condition:
            self._mode = GateMode.PAUSE
            self._paused_behind = stage
            self._woken = False
        self._on_pause()
        while self._sleep():
            self._on_wake()
        self._on_resume()

    def _dwell_here(self) -> bool:
        """Dwell, if there is slow motion; returns whether a pause was asked for meanwhile."""
        if self._dwell <= 0:
            return False
        began, orders = time.monotonic(), self._orders
        self._on_dwell()
        while True:
            with self._condition:
                left = began + self._dwell - time.monotonic()
                if left > 0 and not (self._stop or self._woken or self._orders != orders):
                    self._condition.wait(left)
                if self._stop:
                    raise StopRequested
                if self._orders != orders:
                    return self._mode is GateMode.PAUSE
                woken, self._woken = self._woken, False
                if not woken and time.monotonic() >= began + self._dwell:
                    return False
            if woken:
                self._on_wake()

    def _sleep(self) -> bool:
        """Wait for a reason to wake; True: look what it is and sleep on, False: run on."""
        with self._condition:
            while self._mode is GateMode.PAUSE and not self._stop and not self._woken:
                self._condition.wait()
            if self._stop:
                self._paused_behind = None
                raise StopRequested
            if self._woken:  # before it runs on: what was asked for first is done first
                self._woken = False
                return True
            self._paused_behind = None
            return False

    def _closes(self, stage: Stage, phase_ends: bool) -> bool:
        match self._mode:
            case GateMode.RUN:
                return stage in self._mask
            case GateMode.PAUSE | GateMode.ONE_STAGE:
                return True
            case GateMode.ONE_PHASE:
                return phase_ends
            case GateMode.ONE_ITERATION if stage is Stage.FRESH:
                self._iterations -= 1
                return self._iterations < 1
            case GateMode.ONE_ITERATION:
                return False
