"""The question how to end a run that still goes on."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from trainer.telemetry import Command
from tui.screens.base import Dialog
from tui.screens.choices import Choices

ANSWERS: tuple[tuple[str, Command | None], ...] = (
    ("f  finish the iteration, save, quit", Command.FINISH),
    ("s  stop now (the last complete iteration is saved)", Command.STOP_NOW),
    ("d  leave, the training goes on", None),
    ("esc  go on training", None),
)
DETACH = 2
"""Index of the answer that leaves without a command."""


class QuitScreen(Dialog[Command | None]):
    """Dismissed with the command to give, or None to stay."""

    CSS_PATH = "quit.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "answer(0)", "Finish and save"),
        Binding("s", "answer(1)", "Stop now"),
        Binding("d", "answer(2)", "Leave"),
        Binding("escape", "answer(3)", "Go on"),
    ]

    def compose(self) -> ComposeResult:
        """Yield the question and its answers."""
        with Vertical(id="dialog"):
            yield Static("End this run?", id="question")
            yield Choices([text for text, _ in ANSWERS], id="answers")

    @on(Choices.Chosen)
    def _chosen(self, event: Choices.Chosen) -> None:
        self.action_answer(event.index)

    def action_answer(self, index: int) -> None:
        """Close with the answer at `index`."""
        self.dismiss(ANSWERS[index][1])
        if index == DETACH:
            self.app.call_later(self.app.run_action, "app.detach")
