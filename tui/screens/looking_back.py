"""The last iterations as they ended, to look at again while the training goes on."""

from __future__ import annotations

from collections import deque

from trainer.history import Curve, History
from trainer.telemetry import EventLog, SessionView, Snapshot

KEPT = 32
"""Iterations that can be looked back at."""


class EarlierHistory(History):
    """A history as it was when an iteration had ended.

    Args:
        whole: the history as it is now.
        newest: completed iterations then.
    """

    def __init__(self, whole: History, newest: int) -> None:
        super().__init__(capacity=2)
        self._whole = whole
        self._newest = newest

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags that there are now."""
        return self._whole.tags

    @property
    def stride(self) -> int:
        """Iterations of a bin."""
        return self._whole.stride

    def __len__(self) -> int:
        """Iterations that there were."""
        return min(len(self._whole), self._newest)

    def curve(self, tag: str) -> Curve:
        """Return a metric's curve up to then."""
        iteration, mean, low, high = self._whole.curve(tag)
        seen = int(iteration.searchsorted(self._newest, side="right"))
        return Curve(iteration[:seen], mean[:seen], low[:seen], high[:seen])


class Earlier:
    """What panels read of a session, as it was when an iteration had ended."""

    def __init__(self, session: SessionView, newest: int) -> None:
        self.history = EarlierHistory(session.history, newest)
        self.events: EventLog = session.events


class LookingBack:
    """Keeps the ends of the last iterations, and which of them is on show.

    Args:
        session: whose they are.
    """

    def __init__(self, session: SessionView) -> None:
        self._session = session
        self._kept: deque[tuple[Snapshot, Earlier]] = deque(maxlen=KEPT)
        self._back = 0  # how many before the newest; 0: none is on show

    def __len__(self) -> int:
        """Iterations that are kept."""
        return len(self._kept)

    @property
    def shown(self) -> tuple[Snapshot, Earlier] | None:
        """What to draw in place of the newest; None for the newest itself."""
        return self._kept[-self._back] if self._back else None

    def take(self, snapshot: Snapshot) -> None:
        """Keep the end of the last iteration, if it is a new one."""
        ended = snapshot.boundary
        if ended is None or (self._kept and self._kept[-1][0] is ended):
            return
        done = ended.completed_iterations
        if self._kept and done <= self._kept[-1][0].completed_iterations:
            return
        if self._back:  # stay at the same iteration, while it is there
            self._back = min(self._back + 1, KEPT)
        self._kept.append((ended, Earlier(self._session, done)))

    def move(self, by: int) -> bool:
        """Go back (below 0) or forward; behind the newest comes what is live.

        Returns:
            Whether there was anywhere to go.
        """
        before = self._back
        self._back = max(0, min(self._back - by, len(self._kept)))
        return self._back != before

    def return_to_live(self) -> None:
        """Show the newest again."""
        self._back = 0
