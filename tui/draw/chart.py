"""A line chart in braille dots, half blocks or ASCII."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tui.draw.axis import GUTTER, Guide, Scale, tick_label
from tui.draw.bars import sparkline
from tui.draw.spans import Charset, Line, Role, Span, block, fit, runs
from tui.draw.time_axis import Mark, TimeAxis, columns_of, cursor_column

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]


class Raster(NamedTuple):
    """How many dots a cell holds, and the character of each set of dots."""

    across: int
    down: int
    glyphs: str
    """Indexed by the sum of 2^(x * down + y) over the dots that are set; y counts downward."""


def _braille() -> str:
    bits = (0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80)
    return "".join(
        chr(0x2800 + sum(bit for i, bit in enumerate(bits) if code >> i & 1)) for code in range(256)
    ).replace("\u2800", " ")


RASTERS = {
    Charset.BRAILLE: Raster(2, 4, _braille()),
    Charset.BLOCK: Raster(1, 2, " ▀▄█"),
    Charset.ASCII: Raster(1, 3, " '-:.:||"),
}


class Trace(NamedTuple):
    """A line in dots: the lowest and highest row of each column, counted from the bottom."""

    low: Integers
    high: Integers
    drawn: NDArray[np.bool_]
    """False where the line has a gap."""
    broken: NDArray[np.bool_]
    """True where a value is not finite, or not positive on a logarithmic scale."""


def line_chart(
    x: ArrayLike,
    y: ArrayLike,
    width: int,
    height: int,
    *,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    x_range: tuple[float, float] | None = None,
    scale: Scale | None = None,
    log: bool = False,
    guides: Sequence[Guide] = (),
    x_label: str = "",
    charset: Charset = Charset.BRAILLE,
    role: Role = Role.PRIMARY,
    front: ArrayLike | None = None,
    cursor: float | None = None,
    marks: Sequence[Mark] = (),
) -> list[Line]:
    """Draw a series as a line with axes.

    A value that cannot be shown (NaN, infinite, not positive on a logarithmic axis) is a gap with
    an "x" below it on the x axis. Where several values share a column all from the smallest to the
    largest are covered, so no spike is lost.

    Args:
        x: positions, [K], not falling.
        y: values, [K].
        width: cells, gutter included.
        height: lines, axis and labels included.
        low: smallest value behind each y, [K]; y itself if missing.
        high: largest value behind each y, [K]; y itself if missing.
        x_range: both ends of the x axis, the same for charts that are to line up.
        scale: the y axis; chosen from the values and guides if missing.
        log: a logarithmic y axis, where `scale` is missing.
        guides: horizontal lines, labelled at their right end.
        x_label: what x counts.
        charset: what the font can show.
        role: of the line.
        front: the same series smoothed, [K]; drawn over it, which then steps back.
        cursor: an x to be marked by a vertical line.
        marks: what happened when, to stand on the x axis.

    Returns:
        `height` lines of `width` cells.
    """
    xs = np.asarray(x, np.float64).ravel()
    ys = np.asarray(y, np.float64).ravel()
    xs, ys = xs[: ys.size], ys[: xs.size]
    if width <= 0 or height <= 0:
        return block((), width, height)
    if height < 3 or width < GUTTER + 4:
        return block([(Span(sparkline(ys, width, charset), role),)], width, height)
    raster = RASTERS[charset]
    labelled = height >= 5
    plot_width, plot_height = width - GUTTER, height - 1 - labelled
    lows = ys if low is None else np.fmin(np.asarray(low, np.float64).ravel()[: ys.size], ys)
    highs = ys if high is None else np.fmax(np.asarray(high, np.float64).ravel()[: ys.size], ys)
    if scale is None:
        values = np.concatenate([lows, highs, [guide.value for guide in guides]])
        scale = Scale.around(values, log=log)
    left, right = x_range or ((xs[0], xs[-1]) if xs.size else (0.0, 1.0))
    columns = columns_of(xs, left, right, plot_width * raster.across)
    dots = plot_width * raster.across, plot_height * raster.down
    trace = _trace(columns, scale.position(lows), scale.position(highs), *dots)
    back = role if front is None else Role.TREND
    text, roles = _plot(trace, raster, plot_width, plot_height, back)
    if front is not None:
        place = scale.position(np.asarray(front, np.float64).ravel()[: ys.size])
        smooth = _trace(columns, place, place, *dots)
        _lay_over((text, roles), _plot(smooth, raster, plot_width, plot_height, role))
    _draw_guides(text, roles, guides, scale, charset)
    if not trace.drawn.any():
        _draw_notice(text, roles, ys)
    at = cursor_column(cursor, left, right, plot_width)
    if at is not None:
        _draw_cursor(text, roles, at, charset)
    lines = _with_gutter(text, roles, scale, charset)
    broken = np.logical_or.reduceat(trace.broken, np.arange(0, dots[0], raster.across))
    axis = TimeAxis(left, right, plot_width, charset)
    lines.append(axis.line(broken, marks, at))
    if labelled:
        lines.append(axis.labels(x_label, marks))
    return [fit(line, width) for line in lines]


class Series(NamedTuple):
    """One of several lines in a chart."""

    x: ArrayLike
    """Positions, [K], not falling."""
    y: ArrayLike
    """Values, [K]."""
    mark: str
    """The character that stands for it: at its end, or in ASCII for every dot."""
    role: str


def overlay_chart(
    series: Sequence[Series],
    width: int,
    height: int,
    *,
    x_label: str = "",
    charset: Charset = Charset.BRAILLE,
) -> list[Line]:
    """Draw several series over each other on the same axes, the last one in front.

    Args:
        series: the lines.
        width: cells, gutter included.
        height: lines, axis and labels included; at least 5.
        x_label: what x counts.
        charset: what the font can show.

    Returns:
        `height` lines of `width` cells.
    """
    if width < GUTTER + 4 or height < 5:
        return block((), width, height)
    plot_width, plot_height = width - GUTTER, height - 2
    xs = [np.asarray(one.x, np.float64) for one in series]
    ys = [np.asarray(one.y, np.float64) for one in series]
    scale = Scale.around(np.concatenate([*ys, []]))
    everywhere = np.concatenate([*xs, []])
    left, right = (everywhere.min(), everywhere.max()) if everywhere.size else (0.0, 1.0)
    text = [[" "] * plot_width for _ in range(plot_height)]
    roles: list[list[str]] = [[Role.TEXT] * plot_width for _ in range(plot_height)]
    ends: list[tuple[int, int, Series]] = []
    for one, x, y in zip(series, xs, ys, strict=True):
        raster = Raster(1, 1, f" {one.mark}") if charset is Charset.ASCII else RASTERS[charset]
        columns = plot_width * raster.across
        places = scale.position(y)
        trace = _trace(
            columns_of(x, left, right, columns), places, places, columns, plot_height * raster.down
        )
        drawn = _plot(trace, raster, plot_width, plot_height, one.role)
        if trace.drawn.any():
            end = int(np.flatnonzero(trace.drawn)[-1])
            row = plot_height - 1 - int(trace.high[end]) // raster.down
            ends.append((row, end // raster.across, one))
        _lay_over((text, roles), drawn)
    for row, column, one in ends:
        text[row][column], roles[row][column] = one.mark, one.role
    if not any(np.isfinite(y).any() for y in ys):
        _draw_notice(text, roles, np.concatenate([*ys, []]))
    lines = _with_gutter(text, roles, scale, charset)
    axis = TimeAxis(left, right, plot_width, charset)
    lines.append(axis.line(np.zeros(plot_width, bool)))
    lines.append(axis.labels(x_label))
    return [fit(line, width) for line in lines]


def _trace(at: Integers, lows: Numbers, highs: Numbers, columns: int, rows: int) -> Trace:
    """Reduce positions (0 to 1) to one run of dots a column, joined to its neighbours."""
    known = np.isfinite(lows) & np.isfinite(highs)
    inside = at >= 0
    broken = np.zeros(columns, bool)
    broken[at[inside & ~known]] = True
    low = np.full(columns, np.inf)
    high = np.full(columns, -np.inf)
    use = inside & known
    np.minimum.at(low, at[use], lows[use])
    np.maximum.at(high, at[use], highs[use])
    drawn = np.isfinite(low)
    if not drawn.any():
        nothing = np.zeros(columns, np.int64)
        return Trace(nothing, nothing, drawn, broken)
    filled = np.flatnonzero(drawn)
    middle = (low[filled] + high[filled]) / 2
    everywhere = np.arange(columns)
    between = np.interp(everywhere, filled, middle)
    # A column without a value is bridged unless one that cannot be shown lies in between.
    after = np.searchsorted(filled, everywhere)
    gaps = np.cumsum(broken & ~drawn)
    bridged = ~drawn & (after > 0) & (after < filled.size)
    start = filled[np.maximum(after - 1, 0)]
    end = filled[np.minimum(after, filled.size - 1)]
    bridged &= gaps[end] == gaps[start]
    low, high = np.where(drawn, low, between), np.where(drawn, high, between)
    drawn = drawn | bridged
    bottom = np.rint(np.clip(low, 0, 1) * (rows - 1)).astype(np.int64)
    top = np.rint(np.clip(high, 0, 1) * (rows - 1)).astype(np.int64)
    joined = drawn[1:] & drawn[:-1]
    rise = joined & (bottom[1:] > top[:-1] + 1)
    fall = joined & (top[1:] < bottom[:-1] - 1)
    bottom[1:], top[1:] = (
        np.where(rise, top[:-1] + 1, bottom[1:]),
        np.where(fall, bottom[:-1] - 1, top[1:]),
    )
    return Trace(bottom, top, drawn, broken)


def _plot(
    trace: Trace, raster: Raster, width: int, height: int, role: str
) -> tuple[list[list[str]], list[list[str]]]:
    """Turn a trace into characters and their roles, [height][width]."""
    rows = height * raster.down
    level = np.arange(rows - 1, -1, -1)[:, None]
    dots = (level >= trace.low) & (level <= trace.high) & trace.drawn
    grid = dots.reshape(height, raster.down, width, raster.across)
    weights = 1 << np.arange(raster.across * raster.down).reshape(raster.across, raster.down)
    codes = np.einsum("hdwa,ad->hw", grid.astype(np.int64), weights)
    text = [[raster.glyphs[code] for code in row] for row in codes.tolist()]
    roles: list[list[str]] = [
        [role if code else Role.TEXT for code in row] for row in codes.tolist()
    ]
    return text, roles


Cells = tuple[list[list[str]], list[list[str]]]
"""Characters and their roles, [height][width]."""


def _lay_over(back: Cells, front: Cells) -> None:
    """Put all characters of `front` that are not blank into `back`."""
    for text, roles, over, over_roles in zip(*back, *front, strict=True):
        for column, character in enumerate(over):
            if character != " ":
                text[column], roles[column] = character, over_roles[column]


def _draw_cursor(
    text: list[list[str]], roles: list[list[str]], column: int, charset: Charset
) -> None:
    """Draw a vertical line behind the trace; where it crosses it the trace stands out."""
    mark = ":" if charset is Charset.ASCII else "┊"
    for row, kinds in zip(text, roles, strict=True):
        if row[column] == " " or kinds[column] == Role.GUIDE:
            row[column], kinds[column] = mark, Role.STRONG
        else:
            kinds[column] = Role.CURRENT


def _row_of(value: float, scale: Scale, height: int) -> int | None:
    """Return the line, from the top, on which a value lies; None if it is off the scale."""
    place = float(scale.position(np.asarray([value]))[0])
    if not -1e-9 <= place <= 1 + 1e-9:
        return None
    return height - 1 - min(int(place * height), height - 1)


def _draw_guides(
    text: list[list[str]],
    roles: list[list[str]],
    guides: Sequence[Guide],
    scale: Scale,
    charset: Charset,
) -> None:
    """Draw horizontal lines behind the trace, and their labels before it."""
    mark = "-" if charset is Charset.ASCII else "┄"
    for guide in guides:
        row = _row_of(guide.value, scale, len(text))
        if row is None:
            continue
        width = len(text[row])
        label = f" {guide.label}"[-width:] if guide.label and len(guide.label) < width - 4 else ""
        for column in range(width):
            if column >= width - len(label):
                text[row][column] = label[column - width + len(label)]
                roles[row][column] = Role.GUIDE
            elif text[row][column] == " ":
                text[row][column] = mark
                roles[row][column] = Role.GUIDE


def _draw_notice(text: list[list[str]], roles: list[list[str]], ys: Numbers) -> None:
    """Say in the middle of the plot why there is no line."""
    if ys.size == 0:
        notice = "no data yet"
    elif np.isfinite(ys).any():
        notice = "nothing in range"
    else:
        notice = "inf" if np.isinf(ys).any() else "nan"
    row, width = len(text) // 2, len(text[0])
    start = max(0, (width - len(notice)) // 2)
    for offset, character in enumerate(notice[: width - start]):
        text[row][start + offset] = character
        roles[row][start + offset] = Role.MUTED


def _with_gutter(
    text: list[list[str]], roles: list[list[str]], scale: Scale, charset: Charset
) -> list[Line]:
    """Put the y axis and its labels left of the plot."""
    height = len(text)
    line, tick = ("|", "+") if charset is Charset.ASCII else ("│", "┤")
    values = scale.ticks(max(2, min(6, height // 3 + 1)))
    step = values[1] - values[0] if len(values) > 1 else 0.0
    rows = [_row_of(value, scale, height) for value in values]
    gaps = [abs(b - a) for a, b in pairwise(rows) if a is not None and b is not None]
    if len(values) > 2 and min(gaps, default=2) < 2:
        # One row here, two there: equal steps that look unequal; every other one is clear.
        rows, values = rows[::2], values[::2]
    labels: dict[int, str] = {}
    for row, value in zip(rows, values, strict=True):
        if row is not None and row not in labels:
            labels[row] = tick_label(value, step)
    return [
        (
            Span(
                labels.get(row, "").rjust(GUTTER - 1) + (tick if row in labels else line),
                Role.MUTED,
            ),
            *runs(text[row], roles[row]),
        )
        for row in range(height)
    ]
