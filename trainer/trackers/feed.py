"""Feeding a tracker from a thread of its own, so that training never waits for it."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from trainer.progress import IterationRow

CAPACITY = 256
"""Iterations that may wait for a slow tracker; beyond it they are left out."""

FLUSH_INTERVAL = 2.0
"""Seconds after which at the latest a crash can take nothing more."""

CLOSING_TIME = 5.0
"""Seconds that the end of a run waits for a tracker."""


class Tracker(Protocol):
    """Where metrics go. All calls come from one thread; any of them may raise."""

    def open(self) -> None:
        """Get ready. Anything slow happens here."""
        ...

    def write(self, row: IterationRow) -> None:
        """Take the metrics of one iteration."""
        ...

    def flush(self) -> None:
        """Make safe what was written."""
        ...

    def close(self, *, failed: bool) -> None:
        """Finish.

        Args:
            failed: whether the run ended with an error.
        """
        ...


class Feed:
    """Hands rows to one tracker; whatever becomes of that, training goes on.

    Args:
        name: the tracker's name, as a person knows it.
        tracker: not opened yet.
        record: told of troubles, as kind and text of an event; called from any thread.
    """

    def __init__(self, name: str, tracker: Tracker, record: Callable[[str, str], object]) -> None:
        self.dropped = 0
        """Iterations that the tracker was too slow for."""
        self._name = name
        self._tracker = tracker
        self._record = record
        self._rows: queue.Queue[IterationRow | None] = queue.Queue(CAPACITY)
        self._failed = False
        self._is_broken = False
        self._thread = threading.Thread(target=self._run, name=f"tracker {name}", daemon=True)
        self._thread.start()

    def write(self, row: IterationRow) -> None:
        """Hand over a row, without waiting."""
        if self._is_broken:
            return
        try:
            self._rows.put_nowait(row)
        except queue.Full:
            self.dropped += 1
            if self.dropped == 1:
                self._record("alert", f"{self._name} is too slow: iterations are left out there")

    def close(self, *, failed: bool, timeout: float = CLOSING_TIME) -> None:
        """End the thread behind the rows handed over; one that takes too long is left behind.

        Args:
            failed: whether the run ended with an error.
            timeout: seconds to wait.
        """
        deadline = time.monotonic() + timeout
        self._failed = failed
        with contextlib.suppress(queue.Full):
            self._rows.put(None, timeout=timeout)
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            self._record("alert", f"{self._name} has not finished in {timeout:g} s; left behind")
        elif self.dropped:
            self._record("alert", f"{self._name} was too slow for {self.dropped} iterations")

    def _run(self) -> None:
        try:
            self._tracker.open()
            self._pass_on()
            self._tracker.close(failed=self._failed)
        except Exception as error:  # no tracker may end a training
            self._is_broken = True
            what = str(error) or type(error).__name__
            self._record("alert", f"{self._name}: {what}; training goes on without it")

    def _pass_on(self) -> None:
        """Write rows until the end, and flush when there is something to flush."""
        unsafe_since: float | None = None
        while True:
            wait = (
                None if unsafe_since is None else unsafe_since + FLUSH_INTERVAL - time.monotonic()
            )
            try:
                row = self._rows.get(timeout=None if wait is None else max(0.0, wait))
            except queue.Empty:
                self._tracker.flush()
                unsafe_since = None
                continue
            if row is None:
                return
            self._tracker.write(row)
            if unsafe_since is None:
                unsafe_since = time.monotonic()
            elif time.monotonic() - unsafe_since >= FLUSH_INTERVAL:
                self._tracker.flush()
                unsafe_since = None
