"""The seven stages of one PPO iteration, and the gate that lets a person pause between them."""

from __future__ import annotations

import threading
from collections.abc import Callable
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
    ) -> None:
        self._condition = threading.Condition()
        self._mode = GateMode.RUN
        self._stop = False
        self._busy = False  # False: an open gate, whose boundaries cost one attribute read
        self._paused_behind: Stage | None = None
        self._woken = False
        self._on_pause = on_pause
        self._on_wake = on_wake
        self._on_resume = on_resume

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

    def set_mode(self, mode: GateMode) -> None:
        """Ask for a mode; it takes effect at the next stage boundary."""
        with self._condition:
            self._mode = mode
            self._busy = self._stop or mode is not GateMode.RUN
            self._condition.notify_all()

    def stop(self) -> None:
        """Make the loop leave at its next boundary with `StopRequested`, paused or not."""
        with self._condition:
            self._stop = True
            self._busy = True
            self._condition.notify_all()

    def wake(self) -> None:
        """Have `on_wake` called, if the loop is waiting; without effect while it runs."""
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
            if not self._closes(stage, phase_ends):
                return
            self._mode = GateMode.PAUSE
            self._paused_behind = stage
            self._woken = False
        self._on_pause()
        while self._sleep():
            self._on_wake()
        self._on_resume()

    def _sleep(self) -> bool:
        """Wait for a reason to wake; True: look what it is and sleep on, False: run on."""
        with self._condition:
            while self._mode is GateMode.PAUSE and not self._stop and not self._woken:
                self._condition.wait()
            if self._stop:
                self._paused_behind = None
                raise StopRequested
            if self._mode is not GateMode.PAUSE:
                self._paused_behind = None
                return False
            self._woken = False
            return True

    def _closes(self, stage: Stage, phase_ends: bool) -> bool:
        match self._mode:
            case GateMode.RUN:
                return False
            case GateMode.PAUSE | GateMode.ONE_STAGE:
                return True
            case GateMode.ONE_PHASE:
                return phase_ends
            case GateMode.ONE_ITERATION:
                return stage is Stage.FRESH
