"""The x axis of a chart over iterations, with marks for what happened when."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tui.draw.axis import GUTTER
from tui.draw.numbers import count, number
from tui.draw.spans import Charset, Line, Role, Span, runs

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]


class _Shape(NamedTuple):
    """How a kind of mark is drawn."""

    glyph: str
    ascii: str
    role: Role
    name: str


class MarkKind(Enum):
    """What a mark stands for; of two in one cell the earlier one here is drawn."""

    TROUBLE = _Shape("!", "!", Role.ERROR, "trouble")
    """A fault, an alert or an error."""
    RESUME = _Shape("»", ">", Role.SECONDARY, "resumed")
    """The run was gone on with from here."""
    BREAK = _Shape("‖", "=", Role.WARNING, "break")
    """A breakpoint has paused it."""
    EDIT = _Shape("■", "e", Role.PRIMARY, "edit")
    """A person has changed a value."""
    CHECKPOINT = _Shape("◆", "c", Role.SUCCESS, "saved")
    """A checkpoint was saved."""

    def glyph(self, charset: Charset) -> str:
        """Return its shape, which no other kind has."""
        return self.value.ascii if charset is Charset.ASCII else self.value.glyph


RANK = {kind: place for place, kind in enumerate(MarkKind)}
"""Place of each kind among all, the weightiest first."""


class Mark(NamedTuple):
    """Something that happened in an iteration."""

    iteration: int
    kind: MarkKind
    text: str


def weightiest(marks: Sequence[Mark]) -> Mark:
    """Return the mark that is drawn where several share a cell; at least one is given."""
    return min(marks, key=lambda mark: RANK[mark.kind])


class TimeAxis:
    """An axis of so many cells from one iteration to another.

    Args:
        left: the iteration at the first cell.
        right: the iteration at the last one.
        width: cells, the gutter not among them.
        charset: what the font can show.
    """

    def __init__(self, left: float, right: float, width: int, charset: Charset) -> None:
        self._left, self._right, self._width = left, right, width
        self._charset = charset

    def under(self, iteration: float, marks: Sequence[Mark]) -> list[Mark]:
        """Return the marks that share the cell of an iteration."""
        at = cursor_column(iteration, self._left, self._right, self._width)
        return [mark for place, mark in self._places(marks) if place == at and at is not None]

    def line(
        self, broken: NDArray[np.bool_], marks: Sequence[Mark] = (), cursor: int | None = None
    ) -> Line:
        """Draw the axis.

        Args:
            broken: cells of values that could not be shown, [width]; they have an "x".
            marks: what happened when; those out of sight are left out.
            cursor: cell of the cursor.
        """
        corner, line = ("+", "-") if self._charset is Charset.ASCII else ("└", "─")
        text = ["x" if bad else line for bad in broken.tolist()]
        roles: list[str] = [Role.ERROR if bad else Role.MUTED for bad in broken.tolist()]
        for column, kind in self._drawn(marks).items():
            if kind is MarkKind.TROUBLE or text[column] != "x":
                text[column], roles[column] = kind.glyph(self._charset), kind.value.role
        if cursor is not None:
            text[cursor] = "^" if self._charset is Charset.ASCII else "▲"
            roles[cursor] = Role.STRONG
        return (Span(" " * (GUTTER - 1) + corner, Role.MUTED), *runs(text, roles))

    def labels(self, name: str, marks: Sequence[Mark] = ()) -> Line:
        """Write both ends, and between them what is counted and what the marks in sight mean."""
        first, last = _shown(self._left), _shown(self._right)
        room = self._width
        if len(first) + len(last) + 1 > room:
            first, last = "", last[:room]
        room -= len(first) + len(last)
        spans = _fitting(name, self._legend(marks), room - 4)
        used = sum(len(span.text) for span in spans)
        before = (room - used) // 2
        return (
            Span(" " * GUTTER + first + " " * before, Role.MUTED),
            *spans,
            Span(" " * (room - used - before) + last, Role.MUTED),
        )

    def _legend(self, marks: Sequence[Mark]) -> list[tuple[Span, Span]]:
        kinds = {mark.kind for _, mark in self._places(marks)}
        return [
            (
                Span(kind.glyph(self._charset), kind.value.role),
                Span(f" {kind.value.name}", Role.MUTED),
            )
            for kind in MarkKind
            if kind in kinds
        ]

    def _drawn(self, marks: Sequence[Mark]) -> dict[int, MarkKind]:
        cells: dict[int, MarkKind] = {}
        for column, mark in self._places(marks):
            if column not in cells or RANK[mark.kind] < RANK[cells[column]]:
                cells[column] = mark.kind
        return cells

    def _places(self, marks: Sequence[Mark]) -> list[tuple[int, Mark]]:
        """Return the marks in sight with the cells they stand in."""
        at = np.asarray([mark.iteration for mark in marks], np.float64)
        columns = columns_of(at, self._left, self._right, self._width).tolist()
        return [(column, mark) for column, mark in zip(columns, marks, strict=True) if column >= 0]


def _fitting(name: str, legend: Sequence[tuple[Span, Span]], room: int) -> list[Span]:
    """Return the name and the legend; where that is too long first the name is left out."""
    entries: list[tuple[Span, ...]] = [(Span(name, Role.MUTED),), *legend]
    if _length(entries) > room and legend:
        entries = entries[1:]
    while entries and _length(entries) > room:
        entries.pop()
    gap = Span("  ", Role.MUTED)
    spans = [span for entry in entries for span in (gap, *entry)]
    return spans[1:]


def _length(entries: Sequence[tuple[Span, ...]]) -> int:
    return sum(2 + sum(len(span.text) for span in entry) for entry in entries) - 2


def columns_of(xs: Numbers, left: float, right: float, columns: int) -> Integers:
    """Return the dot column of each x; -1 where it lies outside the axis."""
    span = right - left
    if not np.isfinite(span) or span <= 0:
        return np.full(xs.shape, columns - 1, np.int64)
    with np.errstate(all="ignore"):
        place = (xs - left) / span
    inside = (place >= 0) & (place <= 1)
    return np.where(inside, np.rint(np.where(inside, place, 0) * (columns - 1)), -1).astype(
        np.int64
    )


def cursor_column(cursor: float | None, left: float, right: float, width: int) -> int | None:
    """Return the column of a cell in which the cursor lies; None where it is out of sight."""
    if cursor is None:
        return None
    column = int(columns_of(np.asarray([cursor], np.float64), left, right, width)[0])
    return column if column >= 0 else None


def _shown(value: float) -> str:
    if not np.isfinite(value):
        return number(value).strip()
    return count(int(value)) if float(value).is_integer() else number(value).strip()
