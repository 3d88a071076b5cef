"""How much something may take: what is spent waits for time to earn it, so that it keeps to a rate.

Two things have such an allowance: the bytes that a terminal is sent, and the share of a core that
drawing takes from the training.
"""

from __future__ import annotations

import time

BYTES_PER_CELL = 2.5
"""Bytes a second that a steady picture may take for each cell: 4.8 kB/s at 80x24."""

PATIENCE = 1.0
"""Seconds of silence at most that one large expense brings about, and that silence earns."""


class Pace:
    """An allowance that grows with time and shrinks with every expense.

    Args:
        rate: what a second brings, in whatever is spent: bytes, or processor time.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._credit = 0.0
        self._then = time.monotonic()

    @property
    def allows(self) -> bool:
        """Whether something may be spent now."""
        now = time.monotonic()
        earned = self.rate * (now - self._then)
        self._credit = min(self._credit + earned, self.rate * PATIENCE)
        self._then = now
        return self._credit >= 0

    def spend(self, amount: float) -> None:
        """Take it from what is left; more than there is delays the next expense."""
        self._credit = max(self._credit - amount, -self.rate * PATIENCE)
