"""What all panels share: each draws its part of a session's snapshots."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import MouseScrollDown, MouseScrollUp

from trainer.telemetry import SessionView, Snapshot
from tui.draw.spans import Span
from tui.panels.drawing import Drawing


class Panel(Drawing):
    """A widget that draws a snapshot as lines of text, when something shown has changed."""

    HELP: ClassVar[str | None] = None
    """Markdown: what is shown, the healthy range, and what to do beyond it."""

    MOVES: ClassVar[bool] = False
    """Whether it shows what changes within an iteration, and is drawn more often than others."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._snapshot = Snapshot()
        self._session: SessionView | None = None
        self._key: Hashable = None

    # --- for a panel to fill in, beside `draw` ------------------------------------------------

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Return what the drawing depends on; while it stays equal nothing is drawn again.

        Use `id()` of the immutable parts of a snapshot, they are kept until the next call.
        """
        return snapshot.seq, len(session.history)

    # --- for a screen to call -----------------------------------------------------------------

    def show(self, snapshot: Snapshot, session: SessionView) -> None:
        """Take a new snapshot; repaint the lines that it changes."""
        key = self.key(snapshot, session)
        if self._session is session and key == self._key:
            return
        # The old snapshot is let go of last, so that no new part can have the id of an old one.
        previous, self._snapshot = self._snapshot, snapshot
        self._session, self._key = session, key
        self.redraw()
        del previous

    # --- inside -------------------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot shown."""
        return self._snapshot

    @property
    def session(self) -> SessionView | None:
        """The session shown, or None before the first snapshot."""
        return self._session

    @property
    def has_content(self) -> bool:
        """Whether there is a snapshot."""
        return self._session is not None


class ScrollingPanel(Panel, can_focus=True):
    """A panel with a fixed head and rows that scroll."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_rows(-1)", "up", show=False),
        Binding("down", "scroll_rows(1)", "down", show=False),
        Binding("pageup", "scroll_page(-1)", "page up", show=False),
        Binding("pagedown", "scroll_page(1)", "page down", show=False),
        Binding("home", "scroll_rows(-1000000)", "first", show=False),
        Binding("end", "scroll_rows(1000000)", "last", show=False),
    ]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._first = 0
        self._shown = 1

    def head(self, width: int) -> Sequence[Sequence[Span]]:
        """Return the lines that stay on top."""
        return ()

    def rows(self, width: int) -> Sequence[Sequence[Span]]:
        """Return all rows."""
        raise NotImplementedError

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the head and the rows that fit, and say in the border how many do not."""
        rows = self.rows(width)
        head = list(self.head(width)) if height > 2 else []
        self._shown = max(1, height - len(head))
        last = max(0, len(rows) - self._shown)
        self._first = min(self._first, last)
        above, below = self._first, last - self._first
        hidden = [f"{n} {where}" for n, where in ((above, "above"), (below, "below")) if n]
        self.caption(subtitle=" · ".join([*hidden, note] if (note := self.note()) else hidden))
        return [*head, *rows[self._first : self._first + self._shown]]

    def note(self) -> str:
        """Return what else the lower border says."""
        return ""

    def action_scroll_rows(self, rows: int) -> None:
        """Scroll by rows; a negative number scrolls up."""
        self._first = max(0, self._first + rows)
        self.redraw()

    def action_scroll_page(self, pages: int) -> None:
        """Scroll by what is shown."""
        self.action_scroll_rows(pages * self._shown)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Scroll down by three rows."""
        event.stop()
        self.action_scroll_rows(3)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Scroll up by three rows."""
        event.stop()
        self.action_scroll_rows(-3)


class FilteredPanel(ScrollingPanel):
    """A panel whose rows a person may search."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._filter = ""

    @property
    def filter(self) -> str:
        """What a row must hold to be shown; see `tui.draw.search`."""
        return self._filter

    @filter.setter
    def filter(self, wanted: str) -> None:
        if wanted != self._filter:
            self._filter, self._first = wanted, 0
            self.redraw()
