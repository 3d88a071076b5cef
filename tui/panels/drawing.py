"""Widgets that draw lines of text, repaint only those that changed, and take colours by role."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.filter import ANSIToTruecolor, LineFilter
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.draw.heat import MARKED, UNFILLED, Palette, colour, parse_cell_role
from tui.draw.spans import Charset, Line, Role, Span, ascii_only, block, plain


class Drawing(Widget):
    """A widget in a border that draws lines of text, by their roles.

    The app may carry `charset` (a `Charset`); without it braille is used. Drawing happens when
    `redraw` is called and there is room, and only changed lines are repainted.
    """

    TITLE: ClassVar[str] = ""
    """The border title."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"panel--{role.name.lower()}" for role in Role}

    DEFAULT_CSS = """
    Drawing {
        border: round $foreground 25%;
        border-title-color: $text-primary;
        border-title-style: bold;
        border-subtitle-color: $text-muted;
        background: $background;
        padding: 0 1;
        min-width: 1;
        min-height: 1;
    }
    Drawing:focus { border: round $primary; }
    Drawing.-ascii { border: ascii $foreground 25%; }
    Drawing.-ascii:focus { border: ascii $primary; }
    Drawing .panel--text { color: $foreground; }
    Drawing .panel--strong { color: $foreground; text-style: bold; }
    Drawing .panel--muted { color: $text-muted; }
    Drawing .panel--primary { color: $text-primary; }
    Drawing .panel--secondary { color: $text-secondary; }
    Drawing .panel--success { color: $text-success; }
    Drawing .panel--warning { color: $text-warning; }
    Drawing .panel--error { color: $text-error; text-style: bold; }
    Drawing .panel--guide { color: $foreground 40%; }
    Drawing .panel--trend { color: $text-primary 65%; }
    Drawing .panel--current { color: $background; background: $primary; text-style: bold; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        self._styles_by_role: dict[str, Style] = {}
        super().__init__(id=id, classes=classes)
        self._captions: dict[str, str] = {}
        self._lines: list[Line] = []
        self._drawn_for = (0, 0)
        self._stale = True

    @property
    def has_content(self) -> bool:
        """Whether there is something to draw already."""
        return True

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the lines for a room of `width` x `height` cells, both at least 1.

        Lines that are too many or too long are cropped, missing ones are blank.
        """
        raise NotImplementedError

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

    def change_charset(self) -> None:
        """Draw anew, border and all."""
        self.set_class(self.charset is Charset.ASCII, "-ascii")
        captions, self._captions = self._captions, {}
        self.caption(captions.get("border_title"), captions.get("border_subtitle"))
        self._stale = True
        self.redraw()

    def on_resize(self) -> None:
        """Draw for the new room at once: a text in the border that came while painting is lost."""
        self._stale = True
        self.redraw()

    def caption(self, title: str | None = None, subtitle: str | None = None) -> None:
        """Set the texts in the border; only a text that differs costs a repaint."""
        for where, text in (("border_title", title), ("border_subtitle", subtitle)):
            if text is not None and self._captions.get(where, "") != text:
                self._captions[where] = text
                if self.charset is Charset.ASCII:
                    text = plain(ascii_only((Span(text),)))
                setattr(self, where, Content(text))

    def redraw(self) -> None:
        """Draw, and repaint the lines that differ; later if there is no room now."""
        width, height = self.content_size
        if not self.is_mounted or width <= 0 or height <= 0:
            self._stale = True
            return
        before = self._lines
        resized = self._drawn_for != (width, height)
        self._lines = self._draw_lines(width, height)
        changed = [y for y, line in enumerate(self._lines) if y >= len(before) or line != before[y]]
        if self._stale or resized or len(changed) * 2 > height:
            self.refresh()
        elif changed:
            # Textual counts these from the content's corner, inside border and padding.
            self.refresh(*(Region(0, y, width, 1) for y in changed))
        self._stale = False

    def _draw_lines(self, width: int, height: int) -> list[Line]:
        self._drawn_for = width, height
        if not self.has_content:
            return block((), width, height)
        lines = block(self.draw(width, height), width, height)
        return [ascii_only(line) for line in lines] if self.charset is Charset.ASCII else lines

    def render_line(self, y: int) -> Strip:
        """Return one line of the content."""
        width, height = self.content_size
        # A new size may be painted before its event arrives.
        if self._stale or self._drawn_for != (width, height):
            self._lines = self._draw_lines(width, height)
            self._stale = False
        if not 0 <= y < len(self._lines):
            return Strip.blank(width, self._style(Role.TEXT))
        segments = [Segment(span.text, self._style(span.role)) for span in self._lines[y]]
        return Strip(segments, width)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the filters of lines without the one for colours that no drawing has."""
        filters = super().get_line_filters()
        return [filter for filter in filters if not isinstance(filter, ANSIToTruecolor)]

    def notify_style_update(self) -> None:
        """Forget the styles that came from an earlier style sheet or theme."""
        self._styles_by_role.clear()
        super().notify_style_update()

    def _style(self, role: str) -> Style:
        """Return a role's style; a picture asks for thousands, and Textual takes long for each."""
        style = self._styles_by_role.get(role)
        if style is None:
            style = self._styles_by_role[role] = self._computed_style(role)
        return style

    def _computed_style(self, role: str) -> Style:
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
    red, green, blue = ground = colour(palette, back)
    is_bright = 0.299 * red + 0.587 * green + 0.114 * blue > 100
    return Style(
        color=Color.from_rgb(*((0, 0, 0) if is_bright else (255, 255, 255))),
        bgcolor=Color.from_rgb(*ground),
        bold=True,
    )


@cache
def _heat_style(palette: Palette, front: int, back: int) -> Style:
    """Return the style of a half-block cell; no background where `back` is unfilled."""
    ground = None if back == UNFILLED else Color.from_rgb(*colour(palette, back))
    return Style(color=Color.from_rgb(*colour(palette, front)), bgcolor=ground)
