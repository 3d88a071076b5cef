"""Lines of text as spans, each with the role it plays; a panel turns roles into colours.

Every drawing stays legible when all roles are dropped: meaning is never carried by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size


class Charset(StrEnum):
    """What the terminal's font can show."""

    BRAILLE = "braille"
    """Braille dots, block elements and box drawing."""
    BLOCK = "block"
    """Block elements and box drawing, for fonts without braille."""
    ASCII = "ascii"
    """Nothing beyond the 95 printable ASCII characters."""


class Role(StrEnum):
    """What a span means; heat map cells use `heat.cell_role` instead."""

    TEXT = ""
    STRONG = "strong"
    MUTED = "muted"
    PRIMARY = "primary"
    SECONDARY = "secondary"
    SUCCESS = "success"
    WARNING = "warning"
    ERROR = "error"
    GUIDE = "guide"
    TREND = "trend"
    CURRENT = "current"


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    role: str = Role.TEXT


Line = tuple[Span, ...]


def clean(text: str) -> str:
    """Replace what would break a line (new lines, tabs, control characters) by spaces."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def printable(text: str) -> str:
    """Keep the lines of a text, and of each what `clean` leaves: a terminal obeys none of it."""
    return "\n".join(map(clean, text.splitlines()))


def plain(line: Iterable[Span]) -> str:
    """Return a line's text without its roles."""
    return "".join(span.text for span in line)


def cells(line: Iterable[Span]) -> int:
    """Return the width of a line in terminal cells."""
    return sum(cell_len(span.text) for span in line)


def crop(text: str, width: int, *, ellipsis: str = "…") -> str:
    """Cut a text that is wider than `width` cells, and say so with an ellipsis."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    kept = width - len(ellipsis)
    return set_cell_size(text, kept) + ellipsis if kept > 0 else set_cell_size(text, width)


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return a text of exactly `width` cells: cropped, or filled with spaces.

    Args:
        text: one line.
        width: cells.
        right: align to the right.
    """
    text = crop(text, width)
    space = " " * (max(width, 0) - cell_len(text))
    return space + text if right else text + space


def fit(line: Sequence[Span], width: int) -> Line:
    """Return a line of exactly `width` cells: cropped, or filled with spaces."""
    fitted: list[Span] = []
    left = max(width, 0)
    for span in line:
        if left == 0:
            break
        length = cell_len(span.text)
        if length > left:
            span, length = Span(set_cell_size(span.text, left), span.role), left
        if length:
            fitted.append(span)
        left -= length
    if left:
        fitted.append(Span(" " * left))
    return tuple(fitted)


def block(lines: Sequence[Sequence[Span]], width: int, height: int) -> list[Line]:
    """Return exactly `height` lines of `width` cells, cropped or filled with blank ones."""
    fitted = [fit(line, width) for line in lines[: max(height, 0)]]
    return fitted + [fit((), width)] * (max(height, 0) - len(fitted))


def labelled(label: str, value: str, role: Role = Role.TEXT) -> Line:
    """Return a value behind its label."""
    return (Span(f"{label} ", Role.MUTED), Span(value, role))


def whole(parts: Sequence[Line], width: int, gap: int = 2) -> Line:
    """Join the parts that fit into `width` cells, none of them cropped but the first."""
    line: list[Span] = list(parts[0]) if parts else []
    used = cells(line)
    for part in parts[1:]:
        used += gap + cells(part)
        if used > width:
            break
        line += [Span(" " * gap), *part]
    return tuple(line)


def beside(left: Sequence[Line], right: Sequence[Line], gap: int = 0) -> list[Line]:
    """Put two blocks of equal height next to each other."""
    space = (Span(" " * gap),) if gap else ()
    return [(*a, *space, *b) for a, b in zip(left, right, strict=True)]


def runs(text: Sequence[str], roles: Sequence[str]) -> Line:
    """Join single characters into spans of equal role.

    Args:
        text: one character a cell.
        roles: the role of each character.
    """
    spans: list[Span] = []
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or roles[end] != roles[start]:
            spans.append(Span("".join(text[start:end]), roles[start]))
            start = end
    return tuple(spans)


_ASCII = str.maketrans(
    {
        "·": "-",
        "…": "~",
        "│": "|",
        "─": "-",
        "┄": "-",
        "┊": ":",
        "├": "|",
        "└": "`",
        "↑": "^",
        "↓": "v",
        "→": ">",
        "µ": "u",
        "×": "x",
        "ε": "e",
        "σ": "s",
        "±": "~",
        "≤": "<",
        "≥": ">",
        "█": "#",
        "π": "p",
        "γ": "g",
        "λ": "l",
        "δ": "d",
        "μ": "m",
        "θ": "w",
        "φ": "v",
        "Σ": "S",
        "←": "<",
        "▾": "v",
        "◆": "c",
        "■": "e",
        "‖": "=",
        "»": ">",
    }
)


def ascii_only(line: Line) -> Line:
    """Replace every character that is not ASCII by one that is, cell by cell."""
    if all(span.text.isascii() for span in line):
        return line
    return tuple(Span(ascii_text(span.text), span.role) for span in line)


def ascii_text(text: str) -> str:
    """Replace every character of a text that is not ASCII by one that is, cell by cell."""
    text = text.translate(_ASCII)
    if text.isascii():
        return text
    return "".join(c if c.isascii() else "?" * cell_len(c) for c in text)
