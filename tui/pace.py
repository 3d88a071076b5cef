"""How much is sent to a terminal: frames wait for each other, so that their sum keeps to a rate."""

from __future__ import annotations

import time

BYTES_PER_CELL = 2.5
"""Bytes a second that a steady picture may take for each cell: 4.8 kB/s at 80x24."""

PATIENCE = 1.0
"""Seconds of silence at most that one large frame brings about, and that silence earns."""


class Pace:
    """A budget in bytes that grows with time and shrinks with every frame.

    Args:
        bytes_per_cell: bytes a second for each cell.
    """

    def __init__(self, bytes_per_cell: float = BYTES_PER_CELL) -> None:
        self._bytes_per_cell = bytes_per_cell
        self._rate = bytes_per_cell * 80 * 24
        self._credit = 0.0
        self._then = time.monotonic()

    def fit(self, cells: int) -> None:
        """Follow the size of the terminal."""
        self._rate = self._bytes_per_cell * max(cells, 80 * 24)

    @property
    def allows(self) -> bool:
        """Whether a frame may be sent now."""
        now = time.monotonic()
        earned = self._rate * (now - self._then)
        self._credit = min(self._credit + earned, self._rate * PATIENCE)
        self._then = now
        return self._credit >= 0

    def spend(self, num_bytes: int) -> None:
        """A frame has been sent."""
        self._credit = max(self._credit - num_bytes, -self._rate * PATIENCE)
