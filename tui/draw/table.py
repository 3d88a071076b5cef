"""Columns that give way: which ones fit a width, and how wide each of them is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tui.draw.spans import Line, Role, Span, cells, fit, pad

GAP = 2
"""Blank cells between two columns."""


class Column(NamedTuple):
    """One column of a table."""

    title: str
    width: int
    """Cells it needs."""
    rank: int = 0
    """Columns of higher rank are left out first."""
    right: bool = True
    """Whether it is aligned to the right, as numbers are."""
    grow: int = 0
    """Cells beyond `width` that it can make use of."""


def layout(columns: Sequence[Column], width: int) -> list[int]:
    """Return the width of each column in `width` cells, 0 for those left out.

    The column of the lowest rank always stays, cropped if need be. Where a column is left out, so
    are all of higher rank.
    """
    widths = [0] * len(columns)
    left = width
    order = sorted(range(len(columns)), key=lambda index: columns[index].rank)
    for place, index in enumerate(order):
        need = columns[index].width + (GAP if place else 0)
        if place and need > left:
            break
        widths[index] = min(columns[index].width, max(width, 0))
        left -= need
    for index in order:
        if widths[index] and left > 0:
            extra = min(columns[index].grow, left)
            widths[index] += extra
            left -= extra
    return widths


def head(columns: Sequence[Column], widths: Sequence[int]) -> Line:
    """Return the line of titles."""
    spans = [
        (Span(pad(column.title, width, right=column.right), Role.MUTED),)
        for column, width in zip(columns, widths, strict=True)
    ]
    return row(spans, columns, widths)


def row(texts: Sequence[Sequence[Span]], columns: Sequence[Column], widths: Sequence[int]) -> Line:
    """Join the cells of a row, each padded or cropped to its column's width."""
    spans: list[Span] = []
    for text, column, width in zip(texts, columns, widths, strict=True):
        if width <= 0:
            continue
        if spans:
            spans.append(Span(" " * GAP))
        space = width - cells(text)
        if column.right and space > 0:
            spans.append(Span(" " * space))
            spans.extend(text)
        else:
            spans.extend(fit(text, width))
    return tuple(spans)
