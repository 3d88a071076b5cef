"""What a robot was told and what it did, over the last seconds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tui.draw.axis import GUTTER, Scale, tick_label
from tui.draw.canvas import Canvas
from tui.draw.spans import Charset, Line, Role, Span, block

LEAST_HEIGHT = 3
"""Lines below which a strip shows nothing."""


def tracking_strips(
    labels: Sequence[str],
    ranges: Sequence[tuple[float, float]],
    seconds: ArrayLike,
    told: ArrayLike,
    real: ArrayLike,
    span: float,
    width: int,
    height: int,
    charset: Charset = Charset.BRAILLE,
) -> list[Line]:
    """Draw a strip for each quantity, as many as there is room for: told in dots, real in full.

    Args:
        labels: of the quantities, [Q].
        ranges: the least and most of each that the strip holds at all times, [Q].
        seconds: times, [K], rising; the last is at the right end.
        told: [K, Q].
        real: [K, Q].
        span: seconds from the left end to the right one.
        width: cells.
        height: lines.
        charset: what the font can show.

    Returns:
        `height` lines of `width` cells.
    """
    times = np.asarray(seconds, np.float64)
    wanted, done = np.asarray(told, np.float64), np.asarray(real, np.float64)
    shown = min(len(labels), height // LEAST_HEIGHT)
    if not shown or width < GUTTER + 4 or not len(times):
        return block((), width, height)
    lines: list[Line] = []
    for q in range(shown):
        rows = height // shown + (q < height % shown)
        lines += _strip(
            labels[q], ranges[q], times - times[-1] + span, wanted[:, q], done[:, q], span,
            width, rows, charset,
        )  # fmt: skip
    return block(lines, width, height)


def _strip(
    label: str,
    limits: tuple[float, float],
    ages: NDArray[np.float64],
    told: NDArray[np.float64],
    real: NDArray[np.float64],
    span: float,
    width: int,
    height: int,
    charset: Charset,
) -> list[Line]:
    """Draw one quantity: a line with its name, then the strip."""
    rows = height - 1
    canvas = Canvas(width - GUTTER, rows, charset)
    scale = Scale.around(np.concatenate([told, real, np.asarray(limits, np.float64)]))
    right, bottom = canvas.size[0] - 1, canvas.size[1] - 1
    x = ages / span * right

    def path(values: NDArray[np.float64]) -> NDArray[np.float64]:
        points = np.stack((x, (1 - scale.position(values)) * bottom), axis=1)
        return np.stack((points[:-1], points[1:]), axis=1)

    if scale.low < 0 < scale.high:
        zero = (1 - float(scale.position(np.zeros(1))[0])) * bottom
        canvas.dots(np.stack((np.arange(0, right, 4.0), np.full(len(range(0, right, 4)), zero)), 1),
                    Role.GUIDE)  # fmt: skip
    canvas.lines(path(told), Role.WARNING, every=2)
    canvas.lines(path(real), Role.SUCCESS)
    wall = "|" if charset is Charset.ASCII else "│"
    lines: list[Line] = [(Span(label, Role.MUTED),)]
    for y, drawn in enumerate(canvas.render()):
        at = {0: scale.high, rows - 1: scale.low}.get(y)
        text = " " * (GUTTER - 1) if at is None else tick_label(at)
        lines.append((Span(text, Role.MUTED), Span(wall, Role.MUTED), *drawn))
    return lines
