"""Small questions on how a session is to run: a count, stages to pause behind, breakpoints."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from trainer.breakpoints import EXAMPLES, Breakpoint, parse
from trainer.control import MOST_ITERATIONS, Arm, Disarm
from trainer.stages import Stage
from trainer.telemetry import SessionView
from tui.draw.stage_words import IN_SHORT
from tui.screens.base import Dialog
from tui.screens.choices import Choices

if TYPE_CHECKING:
    from tui.app import DashboardApp

LOOK_INTERVAL = 0.2
"""Seconds between two looks at what is armed."""


class CountScreen(Dialog[int | None]):
    """Asks how many iterations to run before the next pause; None: it was cancelled."""

    CSS_PATH = "control.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel")]

    def compose(self) -> ComposeResult:
        """Yield the question and the line to answer in."""
        with Vertical(id="dialog"):
            yield Static("Run how many iterations, then pause?", id="question", markup=False)
            yield Input(placeholder="10", id="count")
            yield Static("", id="problem", markup=False)
            yield Static("the running one counts;  enter runs;  esc cancels", id="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Run, or say what is wrong."""
        text = event.value.strip()
        if text.isdecimal() and 1 <= int(text) <= MOST_ITERATIONS:
            self.dismiss(int(text))
        else:
            allowed = f"! a whole number from 1 to {MOST_ITERATIONS:,}"
            self.query_one("#problem", Static).update(allowed)


class MaskScreen(Dialog[tuple[Stage, ...] | None]):
    """Asks for the stages to pause behind; None: it was cancelled.

    Args:
        mask: those chosen now.
    """

    CSS_PATH = "control.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(stage.value), f"toggle({stage.value})", show=False) for stage in Stage),
        Binding("space", "toggle_here", show=False),
        Binding("escape", "dismiss(None)", "Cancel"),
    ]

    def __init__(self, mask: Collection[Stage]) -> None:
        super().__init__()
        self._mask = set(mask)

    def compose(self) -> ComposeResult:
        """Yield the question and a line a stage."""
        with Vertical(id="dialog"):
            yield Static("Pause behind which stages, whenever the run goes on?", id="question")
            yield Choices(self._lines(), id="stages")
            yield Static(
                "space or 1-7 marks;  enter sets;  esc cancels\n"
                ". p > and N go where they say, whatever is marked",
                id="hint",
            )

    def _lines(self) -> list[str]:
        return [
            f"[{'x' if stage in self._mask else ' '}] {stage.value} {stage.label:<9} "
            f"{IN_SHORT[stage]}"
            for stage in Stage
        ]

    def action_toggle(self, number: int) -> None:
        """Mark a stage, or not any more."""
        self._mask ^= {Stage(number)}
        choices = self.query_one(Choices)
        choices.lines = tuple(self._lines())
        choices.cursor = number - 1
        choices.refresh()

    def action_toggle_here(self) -> None:
        """The same for the stage under the cursor."""
        self.action_toggle(self.query_one(Choices).cursor + 1)

    @on(Choices.Chosen)
    def _set(self) -> None:
        self.dismiss(tuple(sorted(self._mask)))


class BreakpointsScreen(Dialog[None]):
    """Shows what is armed; arms and disarms.

    Args:
        session: told at once.
    """

    CSS_PATH = "control.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("delete,backspace,x", "disarm", "Disarm"),
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("escape", "dismiss", "Close"),
    ]
    app: DashboardApp

    def __init__(self, session: SessionView) -> None:
        super().__init__()
        self._session = session
        self._armed: tuple[Breakpoint, ...] = ()

    def compose(self) -> ComposeResult:
        """Yield what is armed, and the line for another one."""
        with Vertical(id="dialog"):
            yield Static("Pause at the end of an iteration in which ...", id="question")
            yield Static("nothing is armed", id="nothing")
            yield Choices((), id="armed")
            yield Input(placeholder="  or  ".join(EXAMPLES[1:3]), id="breakpoint")
            yield Static("", id="problem", markup=False)
            yield Static(
                "enter arms;  tab, then x: disarms;  esc closes\n"
                f"{'  '.join(EXAMPLES)}\n"
                "any metric > or < a number; nan: a number that is not finite, or a world that "
                "went bad; 'always' behind it: stays armed after a pause",
                id="hint",
                markup=False,
            )

    def on_mount(self) -> None:
        """Follow what is armed."""
        self.query_one(Input).focus()
        self.set_interval(LOOK_INTERVAL, self._look)
        self._look()

    def _look(self) -> None:
        armed = self._session.snapshot().control.breakpoints
        choices = self.query_one(Choices)
        if armed != self._armed or not choices.lines:
            self._armed = armed
            choices.lines = tuple(one.text for one in armed)
            choices.cursor = choices.cursor
            choices.display = bool(armed)
            self.query_one("#nothing").display = not armed
            choices.refresh(layout=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Arm a breakpoint, or say what is wrong."""
        snapshot = self._session.snapshot()
        problem = self.query_one("#problem", Static)
        try:
            found = parse(event.value, snapshot.metrics, snapshot.completed_iterations)
        except ValueError as error:
            problem.update(f"! {error}")
            return
        problem.update("")
        event.input.value = ""
        self.app.control(Arm(found))
        self._look()

    def action_move(self, by: int) -> None:
        """Move through what is armed."""
        self.query_one(Choices).cursor += by

    def action_disarm(self) -> None:
        """Disarm the one under the cursor."""
        if self._armed:
            self.app.control(Disarm(self._armed[self.query_one(Choices).cursor]))
            self._look()
            if not self._armed:
                self.query_one(Input).focus()
