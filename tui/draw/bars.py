"""Horizontal and vertical bars, and sparklines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tui.draw.spans import Charset

RISING = " ▁▂▃▄▅▆▇█"
SPARKS = RISING[:-1]
"""Short of a full cell, so that sparklines on adjoining rows do not run together."""
RISING_ASCII = " .:-=+*%#"


def bar(share: float, width: int, charset: Charset = Charset.BRAILLE) -> str:
    """Draw a share of 1 as a bar from the left, `width` cells wide, in halves of a cell.

    A share that is not finite leaves the bar empty; any share above 0 shows at least a half cell.
    """
    if width <= 0:
        return ""
    return _stroke(share, width, charset, "╸").ljust(width)


def signed_bar(
    value: float, limit: float, width: int, charset: Charset = Charset.BRAILLE
) -> tuple[str, str, str]:
    """Draw a value as a bar to the left (negative) or right (positive) of an axis in the middle.

    Args:
        value: any float; not finite leaves the bar empty.
        limit: the absolute value that fills one side.
        width: cells of the whole, axis included.
        charset: what the font can show.

    Returns:
        The text left of the axis, the axis, and the text right of it; `width` cells together.
    """
    if width <= 0:
        return "", "", ""
    axis = "|" if charset is Charset.ASCII else "│"
    left = (width - 1) // 2
    right = width - 1 - left
    known = bool(np.isfinite(value)) and bool(np.isfinite(limit)) and limit > 0
    share = min(abs(value), limit) / limit if known else 0.0
    if value > 0:
        return " " * left, axis, bar(share, right, charset)
    if left == 0:
        return "", axis, " " * right
    return _stroke(share, left, charset, "╺")[::-1].rjust(left), axis, " " * right


def _stroke(share: float, width: int, charset: Charset, half_cell: str) -> str:
    """Return a stroke that grows to the right and ends with `half_cell` where a half is left."""
    halves = float(np.clip(share, 0.0, 1.0)) * width * 2 if np.isfinite(share) else 0.0
    whole, half = divmod(max(round(halves), int(halves > 0)), 2)
    if charset is Charset.ASCII:
        return "=" * (whole + half)
    return "━" * whole + half_cell * half


def bins(values: ArrayLike, width: int) -> NDArray[np.float64]:
    """Average a series into `width` bins; a bin without a finite value is NaN.

    A series shorter than `width` keeps its length.
    """
    series = np.asarray(values, np.float64).ravel()
    if series.size <= width or width <= 0:
        return series[: max(width, 0)]
    starts = np.arange(width) * series.size // width
    finite = np.isfinite(series)
    counts = np.add.reduceat(finite.astype(np.int64), starts)
    # Divided before it is added up, so that the largest floats do not overflow.
    share = np.where(finite, series, 0.0) / np.maximum(
        np.repeat(counts, np.diff(np.append(starts, series.size))), 1
    )
    return np.where(counts > 0, np.add.reduceat(share, starts), np.nan)


def sparkline(values: ArrayLike, width: int, charset: Charset = Charset.BRAILLE) -> str:
    """Draw a series as a row of `width` small columns, from its smallest to its largest value.

    A NaN is a gap, an infinity an arrow. A series that is constant lies in the middle; one
    without any finite value says "nan" or "inf". Shorter series are aligned to the right, where
    the newest value belongs.
    """
    if width <= 0:
        return ""
    ascii_only = charset is Charset.ASCII
    raw = np.asarray(values, np.float64).ravel()
    if raw.size and not np.isfinite(raw).any():
        return ("inf" if np.isinf(raw).any() else "nan")[:width].rjust(width)
    series = bins(raw, width)
    finite = np.isfinite(series)
    ramp = RISING_ASCII if ascii_only else SPARKS
    levels = np.full(series.shape, (len(ramp) - 1) // 2 + 1)
    if finite.any():
        # Halved before subtracting: the span of two large floats may overflow.
        low, high = series[finite].min() / 2, series[finite].max() / 2
        if high > low:
            scaled = (np.where(finite, series, 0.0) / 2 - low) / (high - low)
            levels = 1 + np.rint(scaled * (len(ramp) - 2)).clip(0, len(ramp) - 2)
    up, down = ("^", "v") if ascii_only else ("↑", "↓")
    text = [
        ramp[int(level)] if known else (" " if np.isnan(value) else (up if value > 0 else down))
        for level, known, value in zip(levels, finite, series, strict=True)
    ]
    return "".join(text).rjust(width)


def columns(
    shares: Sequence[float] | NDArray[np.float64], height: int, charset: Charset = Charset.BRAILLE
) -> list[str]:
    """Draw shares of 1 as vertical bars, one cell wide each, `height` lines from top to bottom.

    Any share above 0 shows at least the lowest eighth; a share that is not finite is "?" at the
    foot.
    """
    if height <= 0:
        return []
    values = np.asarray(shares, np.float64).ravel()
    known = np.isfinite(values)
    ramp = RISING_ASCII if charset is Charset.ASCII else RISING
    steps = len(ramp) - 1
    filled = np.clip(np.where(known, values, 0.0), 0.0, 1.0) * height * steps
    levels = np.maximum(np.rint(filled), filled > 0).astype(int)
    rows = []
    for row in range(height):
        floor = (height - 1 - row) * steps
        text = [ramp[level] for level in np.clip(levels - floor, 0, steps)]
        if row == height - 1:
            text = [c if ok else "?" for c, ok in zip(text, known, strict=True)]
        rows.append("".join(text))
    return rows
