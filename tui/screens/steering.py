"""Keys of a screen that steers a session: how far and how fast it runs, and by which values."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from trainer.control import DWELLS, PauseBehind, Request, RunIterations, SlowMotion, Undo
from trainer.telemetry import RunState, SessionView, Snapshot
from tui.screens.base import SizedScreen
from tui.screens.looking_back import LookingBack

if TYPE_CHECKING:
    from tui.app import DashboardApp

STEERING = frozenset(("iterations", "slower", "mask", "breakpoints", "edit", "undo"))
"""Actions that ask something of a session at work."""


class SteeringScreen(SizedScreen):
    """Asks for counts, stages, breakpoints and values, and passes them on.

    Args:
        session: what is steered.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("N", "iterations", show=False, tooltip="Run N iterations, then pause"),
        Binding("s", "slower(1)", show=False, tooltip="Slow motion: longer at every stage"),
        Binding("S", "slower(-1)", show=False, tooltip="Slow motion: shorter, and off"),
        Binding("m", "mask", show=False, tooltip="Choose the stages to pause behind"),
        Binding("b", "breakpoints", show=False, tooltip="Pause when something happens"),
        Binding("e", "edit", show=False, tooltip="Edit a value while the run goes on"),
        Binding("u", "undo", show=False, tooltip="Take the last edit back"),
        Binding(
            "comma",
            "look_back(-1)",
            show=False,
            key_display=",",
            tooltip="Look back at the last 32 iterations; esc: live",
        ),
        Binding(
            "semicolon",
            "look_back(1)",
            show=False,
            key_display=";",
            tooltip="Looking back: one iteration on",
        ),
    ]
    app: DashboardApp

    def __init__(self, session: SessionView) -> None:
        super().__init__()
        self.session = session
        self.snapshot: Snapshot = session.snapshot()
        self.looking_back = LookingBack(session)
        self._leaving = False

    @property
    def is_at_work(self) -> bool:
        """Whether the session takes requests."""
        at_work = self.snapshot.state in (RunState.RUNNING, RunState.PAUSED)
        return at_work and not self._leaving

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Say which keys mean something now."""
        if action in STEERING:
            return self.is_at_work
        return super().check_action(action, parameters)

    def redraw(self) -> None:
        """Show what is to be shown now."""
        raise NotImplementedError

    def _ask(self, request: Request | None) -> None:
        if request is not None:
            self.app.control(request)

    def action_iterations(self) -> None:
        """Ask for a number of iterations."""
        from tui.screens.control_forms import CountScreen

        def run(count: int | None) -> None:
            self._ask(RunIterations(count) if count is not None else None)

        self.app.push_screen(CountScreen(), run)

    def action_slower(self, by: int) -> None:
        """Dwell longer or shorter at every stage boundary."""
        present = self.snapshot.control.dwell
        at = min(range(len(DWELLS)), key=lambda index: abs(DWELLS[index] - present))
        dwell = DWELLS[max(0, min(at + by, len(DWELLS) - 1))]
        self._ask(SlowMotion(dwell))
        self.notify(
            f"Slow motion: {1000 * dwell:.0f} ms at every stage boundary."
            if dwell
            else "Slow motion is off.",
            timeout=2,
        )

    def action_mask(self) -> None:
        """Choose stages to pause behind."""
        from tui.screens.control_forms import MaskScreen

        mask = self.snapshot.control.mask
        self.app.push_screen(
            MaskScreen(mask),
            lambda stages: self._ask(PauseBehind(stages) if stages is not None else None),
        )

    def action_breakpoints(self) -> None:
        """Show, arm and disarm breakpoints."""
        from tui.screens.control_forms import BreakpointsScreen

        self.app.push_screen(BreakpointsScreen(self.session))

    def action_edit(self) -> None:
        """Edit a value."""
        from tui.screens.editing import EditScreen

        if not self.snapshot.control.adjustables:
            self.notify("Nothing of this run can be edited.")
            return
        self.app.push_screen(EditScreen(self.snapshot.control), self._ask)

    def action_undo(self) -> None:
        """Take the last edit back."""
        edits = self.snapshot.control.edits
        if not edits:
            self.notify("There is no edit to take back.")
            return
        self._ask(Undo())
        self.notify(f"Taken back when the iteration ends: {edits[-1].text}", timeout=3)

    def action_look_back(self, by: int) -> None:
        """Go back through the last iterations, or forward."""
        if self.looking_back.move(by):
            self.redraw()
        elif by < 0:
            self.notify(
                "This is the oldest iteration that is kept."
                if len(self.looking_back)
                else "No iteration has ended since this screen was opened."
            )
