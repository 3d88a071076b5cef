"""The terminal's picture, cell by cell: what it shows, what it should show, and the way between.

Textual writes whole lines of a widget when one number in them changes. On a slow link that is
most of the traffic, so only cells that differ are sent here, with the shortest change of colours
and the shortest move of the cursor. While a terminal is behind, new pictures replace each other
and cost nothing; what is sent in the end leads to the newest one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

SHORT_GAP = 3
"""Unchanged cells that are written again rather than jumped over: a jump takes four bytes."""

BARELY_LIGHT = 0.25
BARELY_DARK = 0.6
"""Shares of white beyond which a ground stands out from a dark one, or from a light one."""

_INKED = frozenset(("4", "7", "9", "21", "53"))
"""Attributes that show on a blank cell: underline, reverse, strike, double underline, overline."""


class Picture:
    """Two grids of cells: the terminal's, and the one it should have.

    Args:
        color_system: colours that the terminal knows, or may have; None: attributes alone.
        is_dark: whether most of what is drawn stands on a dark ground.
    """

    def __init__(self, color_system: ColorSystem | None, *, is_dark: bool = True) -> None:
        self._color_system = color_system
        self.is_dark = is_dark
        """As the argument; what is drawn from now on follows it."""
        self._width = 0
        self._wanted: list[tuple[list[str], list[str]]] = []
        self._shown: list[tuple[list[str], list[str]]] = []
        self._touched: set[int] = set()

    def resize(self, width: int, height: int) -> None:
        """Begin anew with blank cells, if the size is another one; nothing is known to be shown."""
        if (width, height) != (self._width, len(self._wanted)):
            self._width = width
            self._wanted = [([" "] * width, [""] * width) for _ in range(height)]
            self.forget()

    def forget(self) -> None:
        """Take what the terminal shows for unknown: all of it is sent again."""
        # No picture has this character in it.
        self._shown = [(["\0"] * self._width, [""] * self._width) for _ in self._wanted]
        self._touched = set(range(len(self._wanted)))

    def draw(self, x: int, y: int, segments: Iterable[Segment]) -> None:
        """Put styled text at a place; what reaches beyond the edge is left out."""
        if not 0 <= y < len(self._wanted):
            return
        texts, codes = self._wanted[y]
        self._touched.add(y)
        for text, style, control in segments:
            if control or not text:
                continue
            if self._color_system is None:
                code = _colourless_code(style, self.is_dark)
            else:
                code = _code(style, self._color_system)
            if text.isspace():
                code = _blank_code(code)
            width = cell_len(text)
            cells: Iterable[str] = text if width == len(text) else _cells(text)
            end = min(x + width, self._width)
            if end > x:
                texts[x:end] = list(cells)[: end - x]
                codes[x:end] = [code] * (end - x)
            x += width

    def changes(self) -> str:
        """Return the text that makes the terminal show this picture, and take it for shown."""
        parts: list[str] = []
        ink = ""  # the terminal's present colours; every text that is returned ends with none
        for y in sorted(self._touched):
            if self._wanted[y] != self._shown[y]:
                ink = self._line_changes(y, ink, parts)
                texts, codes = self._wanted[y]
                self._shown[y] = (texts.copy(), codes.copy())
        self._touched.clear()
        if ink:
            parts.append("\x1b[m")
        return "".join(parts)

    def _line_changes(self, y: int, ink: str, parts: list[str]) -> str:
        """Append what changes in a line; returns the colours at its end."""
        texts, codes = self._wanted[y]
        old_texts, old_codes = self._shown[y]
        differs = [
            new != old or code != old_code
            for new, old, code, old_code in zip(texts, old_texts, codes, old_codes, strict=True)
        ]
        at = -1  # cell of the cursor; -1: elsewhere
        for x, changed in enumerate(differs):
            if not changed or not texts[x]:  # the second half of a wide character comes with it
                continue
            if at < 0:
                parts.append(f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H")
            elif at < x:
                gap = texts[at:x]
                plain = x - at <= SHORT_GAP and all(code == ink for code in codes[at:x])
                if plain and all(len(text) == 1 and text.isascii() for text in gap):
                    parts.extend(gap)
                else:
                    parts.append(f"\x1b[{x - at}C" if x - at > 1 else "\x1b[C")
            if codes[x] != ink:
                parts.append(_transition(ink, codes[x]))
                ink = codes[x]
            parts.append(texts[x])
            at = x + 2 if x + 1 < len(texts) and not texts[x + 1] else x + 1
        return ink


def _cells(text: str) -> list[str]:
    """Split text into cells: wide characters take two, marks join the character before them."""
    cells: list[str] = []
    for character in text:
        width = cell_len(character)
        if width == 0 and cells:
            cells[-1] += character
        elif width:
            cells.extend([character] + [""] * (width - 1))
    return cells


def _code(style: Style | None, color_system: ColorSystem) -> str:
    """Return the numbers of a style's escape sequence."""
    if style is None:
        return ""
    return style._ansi if style._ansi is not None else Strip.render_ansi(style, color_system)


@cache
def _colourless_code(style: Style | None, is_dark: bool) -> str:
    """Return the numbers of a style's attributes; a ground of its own becomes reverse."""
    if style is None:
        return ""
    reverse = style.reverse
    if style.bgcolor is not None and not style.bgcolor.is_default:
        light = sum(style.bgcolor.get_truecolor()) / (3 * 255)
        reverse = bool(reverse) != (light > BARELY_LIGHT if is_dark else light < BARELY_DARK)
    attributes = style.without_color + Style(reverse=reverse)
    return Strip.render_ansi(attributes, ColorSystem.STANDARD)


@cache
def _parts(code: str) -> tuple[frozenset[str], str, str]:
    """Split the numbers of an escape sequence into attributes, foreground and background."""
    attributes, ground = set(), {"3": "", "4": ""}
    numbers = iter(code.split(";") if code else ())
    for number in numbers:
        if number in ("38", "48"):
            kind = next(numbers)
            values = [next(numbers) for _ in range(1 if kind == "5" else 3)]
            ground[number[0]] = ";".join((number, kind, *values))
        elif len(number) > 1 and number[:-1] in ("3", "9"):
            ground["3"] = number
        elif len(number) > 1 and number[:-1] in ("4", "10"):
            ground["4"] = number
        else:
            attributes.add(number)
    return frozenset(attributes), ground["3"], ground["4"]


@cache
def _blank_code(code: str) -> str:
    """Leave out what cannot be seen on a blank cell."""
    attributes, _, background = _parts(code)
    return code if attributes & _INKED else background


@cache
def _transition(before: str, after: str) -> str:
    """Return the escape sequence that leads from one style to another."""
    if not after:
        return "\x1b[m"
    (had, old_front, old_back), (has, front, back) = _parts(before), _parts(after)
    if had - has:
        return f"\x1b[0;{after}m"
    changes = sorted(has - had)
    if front != old_front:
        changes.append(front or "39")
    if back != old_back:
        changes.append(back or "49")
    return f"\x1b[{';'.join(changes)}m"
