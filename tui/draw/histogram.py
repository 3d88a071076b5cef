"""Histograms with vertical guide lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tui.draw.axis import Guide
from tui.draw.bars import columns
from tui.draw.spans import Charset, Line, Role, Span, block, runs


def outside(edges: ArrayLike, counts: ArrayLike, low: float, high: float) -> tuple[float, float]:
    """Return the shares of a histogram below `low` and above `high`; NaN if it is empty.

    Within a bin the mass counts as spread evenly.
    """
    bounds = np.asarray(edges, np.float64).ravel()
    mass = np.asarray(counts, np.float64).ravel()
    if bounds.size != mass.size + 1 or not mass.size or not mass.sum() > 0:
        return float("nan"), float("nan")
    cumulative = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum()
    below = float(np.interp(low, bounds, cumulative))
    above = 1.0 - float(np.interp(high, bounds, cumulative))
    return below, max(above, 0.0)


def rebin(edges: ArrayLike, counts: ArrayLike, num_columns: int) -> NDArray[np.float64]:
    """Spread a histogram over `num_columns` equal columns between its outer edges."""
    bounds = np.asarray(edges, np.float64).ravel()
    mass = np.asarray(counts, np.float64).ravel()
    if num_columns <= 0 or bounds.size != mass.size + 1 or not mass.size:
        return np.zeros(max(num_columns, 0))
    if not np.isfinite(bounds).all() or not np.isfinite(mass).all() or bounds[0] >= bounds[-1]:
        return np.zeros(num_columns)
    cumulative = np.concatenate([[0.0], np.cumsum(mass)])
    targets = np.linspace(bounds[0], bounds[-1], num_columns + 1)
    spread: NDArray[np.float64] = np.diff(np.interp(targets, bounds, cumulative))
    return spread.clip(0.0)


def histogram(
    edges: ArrayLike,
    counts: ArrayLike,
    width: int,
    height: int,
    *,
    guides: Sequence[Guide] = (),
    labelled: bool = True,
    charset: Charset = Charset.BRAILLE,
    role: Role = Role.PRIMARY,
) -> list[Line]:
    """Draw a histogram as columns, with vertical lines at the guides.

    Columns outside the outermost guides are drawn as a warning, and of another texture than
    those inside where the height allows to see it: the guides part them.

    Args:
        edges: bin edges, [bins + 1], rising.
        counts: what fell into each bin, [bins].
        width: cells.
        height: lines, the labels included.
        guides: values of interest.
        labelled: write guides and ends below, if there are two lines or more.
        charset: what the font can show.
        role: of the columns.

    Returns:
        `height` lines of `width` cells.
    """
    if width <= 0 or height <= 0:
        return block((), width, height)
    bounds = np.asarray(edges, np.float64).ravel()
    labelled = labelled and height >= 2
    plot_height = height - labelled
    mass = rebin(edges, counts, width)
    top = mass.max(initial=0.0)
    rows = columns(mass / top if top > 0 else mass, plot_height, charset)
    places = {p: g for g in guides if (p := _column_of(g.value, bounds, width)) is not None}
    inner = (min(places), max(places)) if len(places) > 1 else (-1, width)
    roles: list[str] = [
        Role.WARNING if column < inner[0] or column > inner[1] else role for column in range(width)
    ]
    mark = ":" if charset is Charset.ASCII else "┊"
    lines: list[Line] = []
    for row in rows:
        text, styled = list(row), list(roles)
        for column in places:
            if text[column] == " ":
                text[column], styled[column] = mark, Role.GUIDE
        lines.append(runs(text, styled))
    if labelled:
        lines.append(_labels(bounds, places, width))
    return block(lines, width, height)


def _column_of(value: float, bounds: NDArray[np.float64], width: int) -> int | None:
    if bounds.size < 2 or not bounds[0] <= value <= bounds[-1] or bounds[0] >= bounds[-1]:
        return None
    return min(int((value - bounds[0]) / (bounds[-1] - bounds[0]) * width), width - 1)


def _labels(bounds: NDArray[np.float64], places: dict[int, Guide], width: int) -> Line:
    """Write the guides' labels under them and the ends at the ends, as far as they fit."""
    text = [" "] * width
    ends = [(0, f"{bounds[0]:g}"), (width, f"{bounds[-1]:g}")] if bounds.size > 1 else []
    centred = [
        (p - len(g.label or f"{g.value:g}") // 2, g.label or f"{g.value:g}")
        for p, g in places.items()
    ]
    for start, label in [*centred, *ends]:
        start = max(0, min(start, width - len(label)))
        around = text[max(0, start - 1) : start + len(label) + 1]
        if len(label) <= width and all(character == " " for character in around):
            text[start : start + len(label)] = label
    return (Span("".join(text), Role.MUTED),)
