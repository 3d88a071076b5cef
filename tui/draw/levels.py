"""Worlds by level of difficulty: the tags that carry them, and rows of small bars."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tui.draw.bars import columns
from tui.draw.numbers import whole_number
from tui.draw.spans import Charset

_TAG = re.compile(r"Curriculum/(?P<term>[^/]+)/(?P<kind>[^/]+)/level_(?P<level>\d{1,4})")


def is_level_tag(tag: str) -> bool:
    """Whether a metric is one bar of a histogram of levels: there are dozens of them."""
    return _TAG.fullmatch(tag) is not None


def level_counts(metrics: Mapping[str, float]) -> dict[str, dict[str, list[float]]]:
    """Gather the histograms of levels: curriculum term to kind of ground to worlds by level."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for tag, value in metrics.items():
        if (match := _TAG.fullmatch(tag)) is not None:
            kinds = found.setdefault(match["term"], {})
            kinds.setdefault(match["kind"], {})[int(match["level"])] = value
    return {
        term: {
            kind: [worlds.get(level, 0.0) for level in range(max(worlds) + 1)]
            for kind, worlds in kinds.items()
        }
        for term, kinds in found.items()
    }


def mean_level(counts: Sequence[float]) -> float:
    """Return the mean level of worlds; NaN without worlds, or with a number that is not finite."""
    worlds = sum(counts)
    if not math.isfinite(worlds) or worlds <= 0:
        return math.nan
    return sum(level * count for level, count in enumerate(counts)) / worlds


def largest_share(histograms: Iterable[Sequence[float]]) -> float:
    """Return the largest part that one level has of its histogram; 0 if there is none."""
    shares = [max(c) / sum(c) for c in histograms if math.isfinite(sum(c)) and sum(c) > 0]
    return max(shares, default=0.0)


def level_bars(
    counts: Sequence[float], top: float, cell: int, height: int, charset: Charset = Charset.BRAILLE
) -> list[str]:
    """Draw the part of the worlds at each level as a bar.

    Args:
        counts: worlds at each level.
        top: the part that fills the height but a gap; the same for all that are to be compared.
        cell: cells of one level; from 2 on the last one is a gap.
        height: lines.
        charset: what the font can show.

    Returns:
        `height` lines of `len(counts) * cell` cells, from the top down.
    """
    values = np.asarray(counts, np.float64)
    worlds = float(values.sum())
    known = math.isfinite(worlds) and worlds > 0 and top > 0
    shares = values / worlds / top if known else np.where(values == 0, 0.0, np.nan)
    # A quarter of a line stays free, or the bars of two kinds would join.
    lines = columns(shares * (1 - 1 / (4 * max(height, 1))), height, charset)
    return [
        "".join(glyph * max(cell - 1, 1) + " " * (cell > 1) for glyph in line) for line in lines
    ]


def level_numbers(counts: Sequence[float], cell: int) -> str:
    """Write the worlds at each level, to stand below the bars; an empty level stays blank."""
    width = max(cell - 1, 1)
    texts = []
    for count in counts:
        known = math.isfinite(count)
        empty = known and round(count) == 0
        text = "" if empty else whole_number(round(count), width) if known else "?"
        texts.append(text.rjust(width) + " " * (cell > 1))
    return "".join(texts)


def level_axis(num_levels: int, cell: int) -> str:
    """Write the levels, to stand above the bars: every one that has room, the first always."""
    width = max(cell - 1, 1)
    widest = len(str(max(num_levels - 1, 0)))
    every = 1 if widest <= width else -(-(widest + 1) // cell)
    text = [" "] * (num_levels * cell)
    for level in range(0, num_levels, every):
        label = str(level)
        end = level * cell + max(width, len(label))
        if end <= len(text):
            text[end - len(label) : end] = label
    return "".join(text)
