"""A list with a cursor, at ease with any size it is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from tui.draw.spans import Charset, ascii_text, pad


class Choices(Widget, can_focus=True):
    """One line a choice; up and down move the cursor, enter chooses.

    Args:
        lines: what each choice says.
        id: the widget's id.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("home", "move(-10000)", "First", show=False),
        Binding("end", "move(10000)", "Last", show=False),
        Binding("enter", "choose", "Choose", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"choices--cursor"}
    DEFAULT_CSS = """
    Choices { height: auto; width: 1fr; }
    Choices > .choices--cursor { text-style: reverse; }
    """

    cursor: reactive[int] = reactive(0)

    class Moved(Message):
        """The cursor is on another choice."""

        def __init__(self, choices: Choices, index: int) -> None:
            super().__init__()
            self.choices = choices
            self.index = index

        @property
        def control(self) -> Choices:
            """The list itself, for `@on` selectors."""
            return self.choices

    class Chosen(Moved):
        """Enter was pressed on a choice."""

    def __init__(self, lines: Sequence[str], id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines = tuple(lines)

    def validate_cursor(self, cursor: int) -> int:
        """Keep the cursor on a line."""
        return max(0, min(cursor, len(self.lines) - 1))

    def watch_cursor(self, cursor: int) -> None:
        """Tell the screen."""
        self.post_message(self.Moved(self, cursor))

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self.cursor += by

    def action_choose(self) -> None:
        """Choose the line under the cursor."""
        self.post_message(self.Chosen(self, self.cursor))

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """One row a choice."""
        return len(self.lines)

    def render_line(self, y: int) -> Strip:
        """Draw one row; the rows shown always hold the cursor."""
        width, height = self.size
        first = max(0, min(self.cursor - height // 2, len(self.lines) - height))
        index = first + y
        if index >= len(self.lines) or width < 1:
            return Strip.blank(width, self.rich_style)
        marked = index == self.cursor
        style = self.rich_style
        if marked:
            style = self.get_component_rich_style("choices--cursor") if self.has_focus else style
        text = ("> " if marked else "  ") + self.lines[index]
        text = pad(text, width)
        if getattr(self.app, "charset", None) is Charset.ASCII:
            text = ascii_text(text)
        return Strip([Segment(text, style)], width)
