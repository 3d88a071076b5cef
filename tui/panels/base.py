"""What all panels share: they draw lines, repaint only what changed, and take colours by role."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cache
from typing import ClassVar

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import MouseScrollDown, MouseScrollUp
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from trainer.telemetry import SessionView, Snapshot
from tui.draw.heat import MARKED, UNFILLED, Palette, colour, parse_cell_role
from tui.draw.spans import Charset, Line, Role, Span, ascii_only, block, plain


class Panel(Widget):
    """A widget that draws a snapshot as lines of text.

    The app may carry `charset` (a `Charset`); without it braille is used. Drawing happens when
    something shown has changed and the panel has room, and only changed lines are repainted.
    """

    HELP: ClassVar[str | None] = None
    """Markdown: what is shown, the healthy range, and what to do beyond it."""

    TITLE: ClassVar[str] = ""
    """The border title."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"panel--{role.name.lower()}" for role in Role}

    DEFAULT_CSS = """
    Panel {
        border: round $foreground 25%;
        border-title-color: $text-primary;
        border-title-style: bold;
        border-subtitle-color: $text-muted;
        background: $background;
        padding: 0 1;
        min-width: 1;
        min-height: 1;
    }
    Panel:focus { border: round $primary; }
    Panel.-ascii { border: ascii $foreground 25%; }
    Panel.-ascii:focus { border: ascii $primary; }
    Panel .panel--text { color: $foreground; }
    Panel .panel--strong { color: $foreground; text-style: bold; }
    Panel .panel--muted { color: $text-muted; }
    Panel .panel--primary { color: $text-primary; }
    Panel .panel--secondary { color: $text-secondary; }
    Panel .panel--success { color: $text-success; }
    Panel .panel--warning { color: $text-warning; }
    Panel .panel--error { color: $text-error; text-style: bold; }
    Panel .panel--guide { color: $foreground 40%; }
    Panel .panel--trend { color: $text-primary 65%; }
    Panel .panel--current { color: $background; background: $primary; text-style: bold; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._captions: dict[str, str] = {}
        self._snapshot = Snapshot()
        self._session: SessionView | None = None
        self._key: Hashable = None
        self._lines: list[Line] = []
        self._stale = True

    # --- for a panel to fill in ---------------------------------------------------------------

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Return what the drawing depends on; while it stays equal nothing is drawn again.

        Use `id()` of the immutable parts of a snapshot, they are kept until the next call.
        """
        return snapshot.seq, len(session.history)

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the lines for a room of `width` x `height` cells, both at least 1.

        Lines that are too many or too long are cropped, missing ones are blank.
        """
        raise NotImplementedError

    # --- for a screen to call -----------------------------------------------------------------

    def show(self, snapshot: Snapshot, session: SessionView) -> None:
        """Take a new snapshot; repaint the lines that it changes."""
        key = self.key(snapshot, session)
        if self._session is session and key == self._key:
            return
        # The old snapshot is let go of last, so that no new part can have the id of an old one.
        previous, self._snapshot = self._snapshot, snapshot
        self._session, self._key = session, key
        self._redraw()
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
    def charset(self) -> Charset:
        """What the terminal's font can show."""
        charset = getattr(self.app, "charset", None)
        return charset if isinstance(charset, Charset) else Charset.BRAILLE

    @property
    def colourless(self) -> bool:
        """Whether colours are missing or too few for a heat map."""
        few = self.app.console.color_system in (None, "standard")
        return self.app.no_color or (few and not self.app.is_headless)

    def on_mount(self) -> None:
        """Use a border that the charset has."""
        self.caption(title=self.TITLE)
        self.set_class(self.charset is Charset.ASCII, "-ascii")

    def on_resize(self) -> None:
        """Draw for the new room."""
        self._stale = True

    def caption(self, title: str | None = None, subtitle: str | None = None) -> None:
        """Set the texts in the border; only a text that differs costs a repaint."""
        for where, text in (("border_title", title), ("border_subtitle", subtitle)):
            if text is not None and self._captions.get(where, "") != text:
                self._captions[where] = text
                if self.charset is Charset.ASCII:
                    text = plain(ascii_only((Span(text),)))
                setattr(self, where, Content(text))

    def redraw(self) -> None:
        """Draw again, after something other than the snapshot has changed."""
        self._redraw()

    def _redraw(self) -> None:
        """Draw, and repaint the lines that differ; later if there is no room now."""
        width, height = self.content_size
        if not self.is_mounted or width <= 0 or height <= 0:
            self._stale = True
            return
        before = self._lines
        self._lines = self._draw_lines(width, height)
        changed = [y for y, line in enumerate(self._lines) if y >= len(before) or line != before[y]]
        if self._stale or len(before) != len(self._lines) or len(changed) * 2 > height:
            self.refresh()
        elif changed:
            # Textual counts these from the content's corner, inside border and padding.
            self.refresh(*(Region(0, y, width, 1) for y in changed))
        self._stale = False

    def _draw_lines(self, width: int, height: int) -> list[Line]:
        if self._session is None:
            return block((), width, height)
        lines = block(self.draw(width, height), width, height)
        return [ascii_only(line) for line in lines] if self.charset is Charset.ASCII else lines

    def render_line(self, y: int) -> Strip:
        """Return one line of the content."""
        width, height = self.content_size
        if self._stale or len(self._lines) != height:
            self._lines = self._draw_lines(width, height)
            self._stale = False
        if not 0 <= y < len(self._lines):
            return Strip.blank(width, self._style(Role.TEXT))
        segments = [Segment(span.text, self._style(span.role)) for span in self._lines[y]]
        return Strip(segments, width)

    def _style(self, role: str) -> Style:
        cell = parse_cell_role(role)
        if cell is None:
            return self.get_visual_style(f"panel--{Role(role).name.lower()}").rich_style
        base = self.visual_style.rich_style
        palette, upper, lower = cell
        if upper == UNFILLED:
            upper, lower = lower, upper
        if upper == MARKED:
            return base + _mark_style(palette, lower)
        return base + _heat_style(palette, upper, lower)


@cache
def _mark_style(palette: Palette, back: int) -> Style:
    """Return the style of a marked cell: black or white, whichever stands out."""
    ground = colour(palette, back)
    return Style(
        color=Color.parse("black" if sum(ground) > 330 else "white"),
        bgcolor=Color.from_rgb(*ground),
        bold=True,
    )


@cache
def _heat_style(palette: Palette, front: int, back: int) -> Style:
    """Return the style of a half-block cell; no background where `back` is unfilled."""
    ground = None if back == UNFILLED else Color.from_rgb(*colour(palette, back))
    return Style(color=Color.from_rgb(*colour(palette, front)), bgcolor=ground)


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
