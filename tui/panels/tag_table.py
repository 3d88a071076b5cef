"""Tables whose rows stand for metrics: one is chosen, opened as a curve, or filtered out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.message import Message

from tui.draw.search import matches
from tui.draw.spans import Line, Role, Span
from tui.panels.base import FilteredPanel


class TagRow(NamedTuple):
    """A line, and the metric it stands for."""

    tag: str
    """Empty for a line that stands for none, such as a sum."""
    line: Line


@dataclass
class TagChosen(Message):
    """A row was moved to, or opened with enter."""

    tag: str
    opened: bool


class TagTable(FilteredPanel, can_focus=True):
    """A table with a chosen row while it has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "choose(-1)", "up", show=False),
        Binding("down", "choose(1)", "down", show=False),
        Binding("pageup", "choose_page(-1)", "page up", show=False),
        Binding("pagedown", "choose_page(1)", "page down", show=False),
        Binding("home", "choose(-1000000)", "first", show=False),
        Binding("end", "choose(1000000)", "last", show=False),
        Binding("enter", "open", "Curve", tooltip="Open the chosen row's curve"),
    ]

    MARKS_ALWAYS: ClassVar[bool] = False
    """Whether the chosen row is marked without the focus, because a chart beside shows it."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._chosen = ""
        self._found: list[TagRow] = []
        self._all = 0

    def tag_rows(self, width: int) -> Sequence[TagRow]:
        """Return all rows, before any is filtered out; none where nothing is known yet."""
        raise NotImplementedError

    @property
    def nothing(self) -> str:
        """What stands there while there are no rows."""
        return "nothing yet"

    @property
    def chosen(self) -> str:
        """The metric of the chosen row; empty before there was one."""
        return self._chosen

    @chosen.setter
    def chosen(self, tag: str) -> None:
        if tag != self._chosen:
            self._chosen = tag
            self._keep_in_sight()
            self.redraw()

    def rows(self, width: int) -> Sequence[Sequence[Span]]:
        """Return the rows that the filter lets through, the chosen one marked."""
        rows = self.tag_rows(width)
        self._all = sum(1 for row in rows if row.tag)
        self._found = [row for row in rows if not row.tag or matches(self._filter, row.tag)]
        if not rows:
            return [(Span(self.nothing, Role.MUTED),)]
        if not self._tags():
            return [(Span(f"none of {self._all} rows holds {self._filter!r}", Role.MUTED),)]
        is_marked = self.has_focus or (self.MARKS_ALWAYS and self._chosen)
        at = self._at() if is_marked else -1
        return [
            _marked(row.line) if index == at else row.line for index, row in enumerate(self._found)
        ]

    def note(self) -> str:
        """Say what is filtered and what enter does."""
        found = len(self._tags())
        parts = [f"{found} of {self._all} rows"] if self._filter and found else []
        parts += ["enter: curve"] if self.has_focus and found else []
        return " · ".join(parts)

    def on_focus(self) -> None:
        """Mark the chosen row."""
        self.redraw()

    def on_blur(self) -> None:
        """Mark nothing."""
        self.redraw()

    def action_choose(self, by: int) -> None:
        """Move to another row."""
        tags = self._tags()
        if not tags:
            return
        at = tags.index(self._chosen) if self._chosen in tags else 0
        self._chosen = tags[min(max(at + by, 0), len(tags) - 1)]
        self._keep_in_sight()
        self.redraw()
        self.post_message(TagChosen(self._chosen, opened=False))

    def action_choose_page(self, pages: int) -> None:
        """Move by what is shown."""
        self.action_choose(pages * self._shown)

    def action_open(self) -> None:
        """Ask for the curve of the chosen row."""
        tags = self._tags()
        if tags:
            self._chosen = self._chosen if self._chosen in tags else tags[0]
            self.post_message(TagChosen(self._chosen, opened=True))

    def _keep_in_sight(self) -> None:
        row = max(self._at(), 0)
        self._first = min(max(self._first, row - self._shown + 1), row)

    def _tags(self) -> list[str]:
        return [row.tag for row in self._found if row.tag]

    def _at(self) -> int:
        """Return the place of the chosen row among those found; the first where it is not."""
        places = [index for index, row in enumerate(self._found) if row.tag]
        chosen = [index for index in places if self._found[index].tag == self._chosen]
        return (chosen or places or [-1])[0]


def _marked(line: Line) -> Line:
    """Return a line turned inside out, as one piece."""
    return tuple(Span(span.text, Role.CURRENT) for span in line)
