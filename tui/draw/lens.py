"""How a person looks at curves: how far back, how smooth, and at which iteration."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

WINDOWS = (0, 2000, 1000, 500, 200, 100, 50, 20)
"""Iterations that the charts reach back; 0 is the whole run."""

WEIGHTS = (0.0, 0.6, 0.8, 0.9, 0.95, 0.98)
"""Weight of the past in a smoothed curve; 0 smooths nothing."""


@dataclass
class Lens:
    """Shared by all charts of a screen, so that they show the same iterations."""

    window: int = 0
    """Index into `WINDOWS`."""
    weight: int = 0
    """Index into `WEIGHTS`."""
    cursor: int | None = None
    """The iteration whose values are read; None reads the newest."""

    @property
    def state(self) -> Hashable:
        """What a drawing depends on."""
        return self.window, self.weight, self.cursor

    def zoom(self, by: int) -> None:
        """Reach less far back, or farther where `by` is negative."""
        self.window = min(max(self.window + by, 0), len(WINDOWS) - 1)

    def smooth(self, by: int) -> None:
        """Smooth more, or less where `by` is negative."""
        self.weight = min(max(self.weight + by, 0), len(WEIGHTS) - 1)

    def span(self, first: float, last: float) -> tuple[float, float]:
        """Return both ends of the x axis for a run from iteration `first` to `last`."""
        reach = WINDOWS[self.window]
        left = max(first, last - reach) if reach else first
        return left, max(last, left + 1)

    def move(self, by: int, first: float, last: float) -> None:
        """Move the cursor; it appears at the newest iteration, and beyond that is gone."""
        left, _ = self.span(first, last)
        at = (last if self.cursor is None else self.cursor) + by
        self.cursor = None if at > last else round(max(at, left))

    def words(self) -> str:
        """Say what is out of the ordinary: "last 200 · smoothed .8"."""
        parts = []
        if WINDOWS[self.window]:
            parts.append(f"last {WINDOWS[self.window]}")
        if self.weight:
            parts.append(f"smoothed {WEIGHTS[self.weight]:g}"[:13])
        return " · ".join(parts)

    def smoothed(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the curve as it is to be drawn; see `moving_average`."""
        return moving_average(values, WEIGHTS[self.weight])


def moving_average(values: ArrayLike, weight: float) -> NDArray[np.float64]:
    """Return an exponential moving average, without the pull of its start towards 0.

    A value that is not finite stays what it is and does not count for those after it.

    Args:
        values: any floats, [K].
        weight: of the past, from 0 to below 1.
    """
    series = np.asarray(values, np.float64).ravel()
    if weight <= 0:
        return series
    known = np.isfinite(series)
    smooth = series.copy()
    total = mass = 0.0
    for index in np.flatnonzero(known).tolist():
        total = weight * total + (1 - weight) * float(series[index])
        mass = weight * mass + (1 - weight)
        smooth[index] = total / mass
    return smooth


def nearest(iterations: NDArray[np.int64], cursor: int) -> int:
    """Return the index of the last kept iteration at or before the cursor; 0 if all are later."""
    return max(int(np.searchsorted(iterations, cursor, side="right")) - 1, 0)
