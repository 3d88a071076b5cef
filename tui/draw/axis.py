"""The scale of a chart: from values to rows of dots, with ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tui.draw.numbers import number

GUTTER = 8
"""Cells left of every chart: seven for a label, one for the axis, so that charts line up."""

HUGE = 1e300
"""Values beyond are drawn at the edge."""


@dataclass(frozen=True)
class Guide:
    """A line at a value of interest."""

    value: float
    label: str = ""


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic scale between two finite values."""

    low: float
    high: float
    log: bool = False

    @classmethod
    def around(cls, values: Iterable[float] | NDArray[np.float64], *, log: bool = False) -> Scale:
        """Return the smallest scale that holds all values it can show.

        A logarithmic scale shows positive values only. Without any value it is 0 to 1 (0.1 to 1),
        around a single one it leaves some room.
        """
        array = np.asarray(values, np.float64).ravel()
        shown = array[np.isfinite(array) & ((array > 0) | (not log))]
        if shown.size == 0:
            return cls(0.1 if log else 0.0, 1.0, log)
        # Room for the arithmetic below at both ends of the range of a float.
        low, high = float(max(shown.min(), -HUGE)), float(min(shown.max(), HUGE))
        low, high = min(low, HUGE), max(high, -HUGE)
        if log:
            if high / low < 1.02:
                low, high = max(low / 2, 5e-324), high * 2
        elif high - low <= 1e-6 * max(abs(low), abs(high)):
            room = max(abs(low) * 0.05, 1e-3 if low else 1.0)
            low, high = low - room, high + room
        return cls(low, high, log)

    def position(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where values lie, 0 at the low end and 1 at the high; NaN where not shown."""
        with np.errstate(all="ignore"):
            if self.log:
                low, high = math.log10(self.low), math.log10(self.high)
                place = (np.log10(np.where(values > 0, values, np.nan)) - low) / (high - low)
            else:
                # Halved before subtracting: the span of two large floats may overflow.
                place = (values / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return np.where(np.isfinite(values), place, np.nan)

    def ticks(self, most: int) -> list[float]:
        """Return up to `most` round values on the scale; the ends where there is none."""
        if most <= 0:
            return []
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            stride = max(1, -(-(last - first + 1) // most))
            found = [10.0**power for power in range(first, last + 1, stride)][:most]
        else:
            span = self.high - self.low
            if not math.isfinite(span) or span <= 0:
                return [self.low, self.high][:most]
            step = _round_step(span / most)
            found = _multiples(step, self.low, self.high, most)
            if len(found) < 2:
                found = _multiples(_round_step(step / 2.5), self.low, self.high, most + 1)
        return found if len(found) > 1 else [self.low, self.high][:most]


def _multiples(step: float, low: float, high: float, most: int) -> list[float]:
    """Return the first `most` multiples of a step from `low` to `high`."""
    first, room = math.ceil(low / step - 1e-9), 1e-9 * step
    return [k * step for k in range(first, first + most) if k * step <= high + room]


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is at least `least`."""
    power = 10.0 ** math.floor(math.log10(least)) if least > 0 else 1.0
    if power == 0.0:  # below the smallest float that is a power of ten
        return least
    return next((m * power for m in (1, 2, 5) if m * power >= least * (1 - 1e-9)), 10 * power)


def round_range(low: float, high: float) -> tuple[float, float]:
    """Return round numbers at or beyond both ends, some four steps apart; never the same twice."""
    low, high = (min(max(end, -HUGE), HUGE) for end in (low, high))
    span = high / 2 - low / 2  # halved: the span of two large floats may overflow
    if not span > 1e-6 * max(abs(low), abs(high)):
        room = max(abs(low) * 0.05, 1e-3 if low else 1.0)
        low, high = low - room, high + room
        span = high / 2 - low / 2
    step = _round_step(span / 2)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def tick_label(value: float, step: float = 0.0) -> str:
    """Write a tick in the gutter's width; a tick that is 0 but for rounding is "0"."""
    if step and abs(value) < 1e-9 * step:
        value = 0.0
    text = f"{value:g}".replace("e-0", "e-").replace("e+0", "e")
    return (text if len(text) <= GUTTER - 2 else number(value, GUTTER - 2).strip()).rjust(
        GUTTER - 1
    )
