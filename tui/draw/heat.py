"""Heat maps: a matrix as coloured half blocks, or as shades where there is no colour."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tui.draw.spans import Charset, Line, Role, Span, block, runs

LEVELS: Final = 12
"""Colours of a palette: few, so that runs of one colour stay long and cheap to send."""

RGB = tuple[int, int, int]


class Palette(StrEnum):
    """Which colours stand for which values."""

    SEQUENTIAL = "sequential"
    """Dark for the smallest value, bright for the largest."""
    DIVERGING = "diverging"
    """Dark around 0, red below and blue above."""


_STOPS: Final[dict[Palette, tuple[RGB, ...]]] = {
    Palette.SEQUENTIAL: (
        (30, 20, 60),
        (66, 50, 125),
        (48, 110, 142),
        (53, 170, 125),
        (235, 225, 90),
    ),
    Palette.DIVERGING: (
        (238, 120, 90),
        (150, 62, 62),
        (44, 44, 52),
        (52, 92, 150),
        (120, 185, 240),
    ),
}

SHADES: Final = " ░▒▓█"
SHADES_ASCII: Final = " .:*#"
UNFILLED: Final = -1
"""The level of a cell without a value."""
MARKED: Final = -2
"""In place of the upper level: a cell with a mark on it, of the lower level."""


def colour(palette: Palette, level: int) -> RGB:
    """Return the colour of a level, 0 to LEVELS - 1, on straight lines between the stops."""
    stops = _STOPS[palette]
    place = level / (LEVELS - 1) * (len(stops) - 1)
    index = min(int(place), len(stops) - 2)
    low, high, part = stops[index], stops[index + 1], place - index
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(low, high, strict=True))
    return red, green, blue


def cell_role(palette: Palette, upper: int, lower: int) -> str:
    """Name the role of a half-block cell: "heat:sequential:3:5"; see UNFILLED and MARKED."""
    return f"heat:{palette}:{upper}:{lower}"


def parse_cell_role(role: str) -> tuple[Palette, int, int] | None:
    """Return what `cell_role` was given, or None for any other role."""
    if not role.startswith("heat:"):
        return None
    _, palette, upper, lower = role.split(":")
    return Palette(palette), int(upper), int(lower)


def levels(values: ArrayLike, palette: Palette, count: int = LEVELS) -> NDArray[np.int64]:
    """Quantise values to 0 .. count - 1 between their extremes; what is not finite is -1.

    A diverging palette spans the same distance on both sides of 0. Equal values share the middle.
    """
    array = np.asarray(values, np.float64)
    finite = np.isfinite(array)
    if not finite.any():
        return np.full(array.shape, UNFILLED)
    # Halved before subtracting: the span of two large floats may overflow.
    half = np.where(finite, array, 0.0) / 2
    low, high = half[finite].min(), half[finite].max()
    if palette is Palette.DIVERGING:
        high = max(abs(low), abs(high))
        low = -high
    if high <= low:
        return np.where(finite, count // 2, UNFILLED)
    place = np.clip((half - low) / (high - low), 0.0, 1.0)
    return np.where(finite, np.minimum((place * count).astype(np.int64), count - 1), UNFILLED)


def resample(values: ArrayLike, rows: int, columns: int) -> NDArray[np.float64]:
    """Return a matrix of rows x columns: cells repeated where it grows, averaged where it shrinks.

    Averages are over finite cells; NaN where a cell has none.
    """
    array = np.asarray(values, np.float64)
    return _resample_rows(_resample_rows(array, rows).T, columns).T


def _resample_rows(array: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    have = array.shape[0]
    if rows <= 0 or have == 0:
        return np.full((max(rows, 0), array.shape[1]), np.nan)
    if rows >= have:
        grown: NDArray[np.float64] = array[np.arange(rows) * have // rows]
        return grown
    starts = np.arange(rows) * have // rows
    finite = np.isfinite(array)
    counts = np.add.reduceat(finite.astype(np.int64), starts, axis=0)
    each = np.repeat(counts, np.diff(np.append(starts, have)), axis=0)
    shares = np.where(finite, array, 0.0) / np.maximum(each, 1)
    return np.where(counts > 0, np.add.reduceat(shares, starts, axis=0), np.nan)


def whole_cells(count: int, room: int) -> int:
    """Return how many cells show `count` values in `room`: a multiple of it, or all of the room."""
    return min(room, count * max(1, room // count))


def heat_map(
    values: ArrayLike,
    width: int,
    height: int,
    *,
    marks: Mapping[str, ArrayLike] | None = None,
    palette: Palette = Palette.SEQUENTIAL,
    shades: bool = False,
    charset: Charset = Charset.BRAILLE,
) -> list[Line]:
    """Draw a matrix, row 0 on top; cells without a finite value are dotted.

    Args:
        values: any floats, [R, C].
        width: cells.
        height: lines; each holds two rows in half blocks, or one in shades.
        marks: a character, and the cells to mark with it, bool [R, C]; where several fall into one
            cell the first of them is drawn.
        palette: which colours stand for which values.
        shades: use shade characters, legible without colour, instead of coloured half blocks.
        charset: what the font can show; ASCII implies shades.

    Returns:
        `height` lines of `width` cells; what the matrix does not need stays blank.
    """
    matrix = np.asarray(values, np.float64)
    if width <= 0 or height <= 0 or matrix.ndim != 2 or matrix.size == 0:
        return block((), width, height)
    shades = shades or charset is Charset.ASCII
    rows = whole_cells(matrix.shape[0], height * (1 if shades else 2))
    columns = whole_cells(matrix.shape[1], width)
    small = resample(matrix, rows, columns)
    marked = np.zeros((rows, columns), np.int64)  # which mark, from 1; 0: none
    for number, cells in reversed(list(enumerate((marks or {}).values(), start=1))):
        if np.any(cells):
            share = resample(np.asarray(cells, bool).astype(np.float64), rows, columns)
            marked[np.nan_to_num(share) > 0] = number
    draw = _shaded if shades else _half_blocks
    return block(draw(small, marked, "".join(marks or {}), palette, charset), width, height)


def _shaded(
    matrix: NDArray[np.float64],
    marked: NDArray[np.int64],
    marks: str,
    palette: Palette,
    charset: Charset,
) -> list[Line]:
    ramp = SHADES_ASCII if charset is Charset.ASCII else SHADES
    empty = "." if charset is Charset.ASCII else "·"
    lines = []
    for row, which in zip(
        levels(matrix, palette, len(ramp)).tolist(), marked.tolist(), strict=True
    ):
        text = [
            marks[m - 1] if m else (empty if v < 0 else ramp[v])
            for v, m in zip(row, which, strict=True)
        ]
        roles: list[str] = [
            Role.ERROR if m else (Role.MUTED if v < 0 else Role.TEXT)
            for v, m in zip(row, which, strict=True)
        ]
        lines.append(runs(text, roles))
    return lines


def _half_blocks(
    matrix: NDArray[np.float64],
    marked: NDArray[np.int64],
    marks: str,
    palette: Palette,
    charset: Charset,
) -> list[Line]:
    quantised = levels(matrix, palette)
    if len(quantised) % 2:
        quantised = np.vstack([quantised, np.full((1, quantised.shape[1]), UNFILLED)])
        marked = np.vstack([marked, np.zeros((1, marked.shape[1]), np.int64)])
    upper, lower = quantised[0::2], quantised[1::2]
    none = len(marks) + 1
    first = np.minimum(*(np.where(part > 0, part, none) for part in (marked[0::2], marked[1::2])))
    keys = ((upper + 1) * (LEVELS + 1) + lower + 1) * none + first - 1
    lines = []
    for row in keys:
        starts = np.flatnonzero(np.diff(row, prepend=-1))
        lengths = np.diff(np.append(starts, row.size))
        lines.append(
            tuple(
                _cells(palette, marks, key, length)
                for key, length in zip(row[starts].tolist(), lengths.tolist(), strict=True)
            )
        )
    return lines


@lru_cache(4096)  # a map has thousands of cells, of few kinds
def _cells(palette: Palette, marks: str, key: int, length: int) -> Span:
    """Draw cells of one kind.

    Args:
        palette: which colours stand for which levels.
        marks: the characters that mark cells.
        key: upper level, lower level and mark in one number.
        length: how many.
    """
    cell, mark = divmod(key, len(marks) + 1)
    top, bottom = (part - 1 for part in divmod(cell, LEVELS + 1))
    if top == bottom == UNFILLED:
        return Span((marks + "·")[mark] * length, Role.MUTED)
    glyph = "▄" if top == UNFILLED else "▀"
    if mark < len(marks):
        glyph, top, bottom = marks[mark], MARKED, max(top, bottom)
    return Span(glyph * length, cell_role(palette, top, bottom))


def ramp(palette: Palette, *, shades: bool, charset: Charset = Charset.BRAILLE) -> Line:
    """Draw all levels side by side, the smallest first.

    Args:
        palette: which colours stand for which values.
        shades: as characters, where the map is drawn so.
        charset: what the font can show.
    """
    if shades or charset is Charset.ASCII:
        return (Span(SHADES_ASCII if charset is Charset.ASCII else SHADES, Role.TEXT),)
    return tuple(Span("▀", cell_role(palette, level, level)) for level in range(LEVELS))
