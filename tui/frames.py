"""How often the dashboard is drawn while a run trains: as often as its share of a core allows.

The training runs in the same process, on all cores; what is drawn is taken from it. So what moves
within an iteration is drawn a few times a second, numbers that nobody reads faster only once, and
both less often where drawing takes long. What answers a person never waits.
"""

from __future__ import annotations

import time
from enum import Enum

from tui.pace import Pace

SHARE_OF_A_CORE = 0.02
"""Processor time a second that drawing may take while nobody presses a key."""

NUMBERS_INTERVAL = 1.0
"""Seconds between two drawings of what changes with the iteration."""


class Frame(Enum):
    """What is drawn at a look."""

    NONE = "none"
    MOVING = "moving"
    """The panels that show what changes within an iteration."""
    WHOLE = "whole"


class Frames:
    """Chooses at every look what is drawn; asked by the thread that draws."""

    def __init__(self) -> None:
        self._share = Pace(SHARE_OF_A_CORE)
        self._processor_time = time.thread_time()
        self._shown = -1
        self._numbers_time = 0.0
        self._owes_numbers = False  # whether the last drawing left them out

    def next(self, seq: int, *, is_awaited: bool) -> Frame:
        """Choose, and take it for drawn.

        Args:
            seq: number of the newest snapshot.
            is_awaited: whether a person waits for it.
        """
        now, processor_time = time.monotonic(), time.thread_time()
        self._share.spend(processor_time - self._processor_time)
        self._processor_time = processor_time
        numbers_are_due = now - self._numbers_time >= NUMBERS_INTERVAL
        is_new = seq != self._shown
        if not is_new and not (self._owes_numbers and numbers_are_due):
            return Frame.NONE
        if not is_awaited and not self._share.allows:
            return Frame.NONE
        self._shown = seq
        is_whole = is_awaited or numbers_are_due
        self._owes_numbers = not is_whole
        if not is_whole:
            return Frame.MOVING
        self._numbers_time = now
        return Frame.WHOLE
