"""How a metric went: its curve as a small line, and its mean of late."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.telemetry import History
from tui.draw.bars import sparkline
from tui.draw.spans import Charset

RECENT = 20
"""Iterations that a mean of late covers."""


class Trend(NamedTuple):
    """A metric's past."""

    line: str
    """Sparkline over the whole run."""
    mean: float
    """Mean over the last `RECENT` iterations; NaN without a finite value there."""
    stale: bool
    """Whether the newest iterations brought no finite value."""


def trend(history: History, tag: str, width: int, charset: Charset) -> Trend:
    """Return the past of `tag`, its line `width` cells wide."""
    curve = history.curve(tag)
    if curve.mean.size == 0:
        return Trend(" " * width, float("nan"), stale=True)
    late = curve.mean[curve.iteration > curve.iteration[-1] - RECENT]
    late = late[np.isfinite(late)]
    # Iterations before the first value are no gap: the metric was not there yet.
    known = np.flatnonzero(np.isfinite(curve.mean))
    series = curve.mean[known[0] :] if known.size else curve.mean[-1:]
    return Trend(
        sparkline(series, width, charset),
        float(late.mean()) if late.size else float("nan"),
        stale=not np.isfinite(curve.mean[-1]),
    )
