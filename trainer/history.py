"""Every metric of a run in bounded memory, and what a copy of it lacks.

NumPy is imported with the first curve, so that the menu is there at once.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float32]"


class Curve(NamedTuple):
    """One metric over the run: for each kept bin its first iteration and its values."""

    iteration: NDArray[np.int64]
    """[K]"""
    mean: Floats
    """[K]; NaN where the tag had no value."""
    low: Floats
    """[K]; smallest value in the bin, so that spikes survive thinning."""
    high: Floats
    """[K]"""


class HistoryPart(NamedTuple):
    """Some bins of a history, K of them, for all of its L tags."""

    first: int
    """Index of the history's first iteration."""
    iterations: int
    """Iterations that it had taken."""
    stride: int
    """Iterations in a bin."""
    start: int
    """The first bin in here; all before are known."""
    tags: tuple[str, ...]
    sums: NDArray[np.float64]
    """[L, K], and so are the others."""
    counts: NDArray[np.int64]
    lows: Floats
    highs: Floats


class History:
    """Every metric of the run in bounded memory.

    A bin holds `stride` iterations; when all `capacity` bins are full, neighbours are merged and
    the stride doubles, so an hour and a week take the same room.
    """

    def __init__(self, capacity: int = 2048) -> None:
        if capacity < 2 or capacity % 2:
            raise ValueError(f"capacity must be even and at least 2, not {capacity}")
        self._capacity = capacity
        self._stride = 1
        self._iterations = 0  # iterations appended so far
        self._first = 0  # index of the first iteration (after a resume: not 0)
        self._sums: dict[str, NDArray[np.float64]] = {}
        self._counts: dict[str, NDArray[np.int64]] = {}
        self._lows: dict[str, Floats] = {}
        self._highs: dict[str, Floats] = {}
        self._lock = threading.Lock()

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags ever seen, in order of appearance."""
        with self._lock:
            return tuple(self._sums)

    def __len__(self) -> int:
        """Iterations appended so far."""
        return self._iterations

    def append(self, iteration: int, metrics: Mapping[str, float]) -> None:
        """Add the metrics of one iteration; a tag that is missing leaves a gap."""
        with self._lock:
            if self._iterations == 0:
                self._first = iteration
            if self._iterations == self._capacity * self._stride:
                self._thin()
            bin_ = self._iterations // self._stride
            for tag, value in metrics.items():
                if tag not in self._sums:
                    self._make_room(tag)
                if math.isfinite(value):
                    self._sums[tag][bin_] += value
                    self._counts[tag][bin_] += 1
                    if not self._lows[tag][bin_] <= value:  # also where it is still NaN
                        self._lows[tag][bin_] = value
                    if not self._highs[tag][bin_] >= value:
                        self._highs[tag][bin_] = value
            self._iterations += 1

    def curve(self, tag: str) -> Curve:
        """Return a copy of one metric's curve; empty for a tag that was never seen."""
        import numpy as np

        with self._lock:
            kept = -(-self._iterations // self._stride)
            iteration = self._first + np.arange(kept, dtype=np.int64) * self._stride
            if tag not in self._sums:
                gap = np.full(kept, np.nan, np.float32)
                return Curve(iteration, gap, gap, gap)
            counts = self._counts[tag][:kept]
            mean = np.full(kept, np.nan, np.float32)
            np.divide(self._sums[tag][:kept], counts, out=mean, where=counts > 0, casting="unsafe")
            return Curve(
                iteration, mean, self._lows[tag][:kept].copy(), self._highs[tag][:kept].copy()
            )

    @property
    def stride(self) -> int:
        """Iterations in a bin."""
        return self._stride

    def part(self, stride: int, iterations: int) -> HistoryPart | None:
        """Return what a copy lacks that has taken `iterations` and holds `stride` in a bin.

        None where it lacks nothing. Once the stride has changed all of it is returned.
        """
        import numpy as np

        with self._lock:
            if iterations == self._iterations:
                return None
            start = iterations // stride if stride == self._stride else 0
            kept = slice(start, -(-self._iterations // self._stride))

            def bins(store: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
                rows = [values[kept] for values in store.values()]
                return np.array(rows).reshape(len(rows), kept.stop - start)

            return HistoryPart(
                self._first,
                self._iterations,
                self._stride,
                start,
                tuple(self._sums),
                bins(self._sums),
                bins(self._counts),
                bins(self._lows),
                bins(self._highs),
            )

    def absorb(self, part: HistoryPart) -> None:
        """Take in what another history returned as its `part`."""
        with self._lock:
            if part.start == 0:
                for store in (self._sums, self._counts, self._lows, self._highs):
                    store.clear()
            self._first, self._iterations = part.first, part.iterations
            self._stride = part.stride
            bins = slice(part.start, part.start + part.sums.shape[1])
            for row, tag in enumerate(part.tags):
                if tag not in self._sums:
                    self._make_room(tag)
                self._sums[tag][bins] = part.sums[row]
                self._counts[tag][bins] = part.counts[row]
                self._lows[tag][bins] = part.lows[row]
                self._highs[tag][bins] = part.highs[row]

    def _make_room(self, tag: str) -> None:
        import numpy as np

        self._sums[tag] = np.zeros(self._capacity)
        self._counts[tag] = np.zeros(self._capacity, np.int64)
        self._lows[tag] = np.full(self._capacity, np.nan, np.float32)
        self._highs[tag] = np.full(self._capacity, np.nan, np.float32)

    def _thin(self) -> None:
        """Merge neighbouring bins and double the stride."""
        import numpy as np

        half = self._capacity // 2
        for tag in self._sums:
            for store, merge, empty in (
                (self._sums, np.add, 0.0),
                (self._counts, np.add, 0),
                (self._lows, np.fmin, np.nan),
                (self._highs, np.fmax, np.nan),
            ):
                values = store[tag]
                values[:half] = merge(values[0::2], values[1::2])
                values[half:] = empty
        self._stride *= 2
