"""What all screens share: sizes they adapt to, and a page for terminals too small for any."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.geometry import Size
from textual.message_pump import MessagePump
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Static

MINIMUM = (60, 15)
"""Columns and rows below which nothing useful fits."""

Result = TypeVar("Result")


class TooSmall(Static):
    """Takes the whole screen when the terminal is smaller than `MINIMUM`."""

    def __init__(self) -> None:
        columns, rows = MINIMUM
        super().__init__(f"Terminal too small.\nMake it {columns}x{rows} or larger.", markup=False)


class FollowsTerminal(MessagePump):
    """Mixed into a screen: no size counts but the terminal's newest.

    A layout tells its screen the size it was made for, by the same event as a terminal does. While
    two sizes are under way, each layout would thus ask for the other size again, for ever.
    """

    def on_resize(self, event: events.Resize) -> None:
        """Stop a size that is out of date; the newest is on its way or was here already."""
        if event.size != self.app.size:
            event.prevent_default()
            event.stop()


class SizedScreen(FollowsTerminal, Screen[None]):
    """A screen whose classes follow its size, so that its style sheet chooses the layout.

    Widths set one of `-tiny`, `-narrow`, `-medium` and `-wide`; heights one of `-flat`, `-low`,
    `-middle` and `-high`.
    """

    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [
        (0, "-tiny"),
        (MINIMUM[0], "-narrow"),
        (110, "-medium"),
        (160, "-wide"),
    ]
    VERTICAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [
        (0, "-flat"),
        (MINIMUM[1], "-low"),
        (30, "-middle"),
        (38, "-high"),
    ]
    _classes_for: Size | None = None
    DEFAULT_CSS = """
    TooSmall { display: none; width: 1fr; height: 1fr; content-align: center middle;
        text-align: center; }
    SizedScreen.-tiny > *, SizedScreen.-flat > * { display: none; }
    SizedScreen.-tiny > TooSmall, SizedScreen.-flat > TooSmall { display: block; }
    """

    def compose(self) -> ComposeResult:
        """Yield the screen's own widgets, and the page for small terminals."""
        yield from self.contents()
        yield TooSmall()

    def contents(self) -> list[Widget]:
        """Return the screen's own widgets."""
        raise NotImplementedError

    def on_resize(self, event: events.Resize) -> None:
        """Remember the size that the classes stand for."""
        if event.size == self.app.size:
            self._classes_for = event.size

    def change_charset(self) -> None:
        """Draw all anew, with the characters that the app has now."""
        from tui.panels.drawing import Drawing  # imports numpy

        for widget in self.query("*"):
            if isinstance(widget, Drawing):
                widget.change_charset()
            else:
                widget.refresh()

    def on_screen_resume(self) -> None:
        """Catch up with sizes that changed while another screen was in front."""
        size = self.app.size
        if size != self._classes_for:
            self.post_message(events.Resize(size, size))


class Dialog(FollowsTerminal, ModalScreen[Result], Generic[Result]):
    """A question in front of another screen; `-low` where there is no row to spare."""

    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = []
    VERTICAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [(0, "-low"), (20, "-roomy")]
