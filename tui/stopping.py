"""Signals to a training that has no screen."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """The first signal to stop is remembered, the second ends the process; a hang-up is noted."""

    def __init__(self) -> None:
        self.first: int | None = None
        self.hung_up = False

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if number == signal.SIGHUP:
            self.hung_up = True
            return
        if self.first is not None:
            os._exit(128 + number)
        self.first = number


@contextlib.contextmanager
def listening() -> Iterator[Signals]:
    """Listen to signals, and put the handlers back that were there before.

    A signal that the parent had ignored, as nohup does, stays ignored.
    """
    signals = Signals()
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, signals.receive) for number in heard}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
