"""The last events of the run."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable, Sequence
from typing import ClassVar

from trainer.telemetry import Event, SessionView, Snapshot
from tui.draw.search import matches
from tui.draw.spans import Line, Role, Span, clean, crop, pad
from tui.panels.base import FilteredPanel

KIND_ROLES = {
    "error": Role.ERROR,
    "fault": Role.ERROR,
    "alert": Role.WARNING,
    "checkpoint": Role.SUCCESS,
    "rate": Role.PRIMARY,
    "pause": Role.SECONDARY,
    "command": Role.SECONDARY,
    "edit": Role.SECONDARY,
    "break": Role.WARNING,
}


class EventsPanel(FilteredPanel):
    """Time, kind and text of each event, the newest first."""

    TITLE: ClassVar[str] = "events"

    HELP: ClassVar[str | None] = """\
## Events

What happened, the newest first: starts and ends, checkpoints, pauses and commands, faults of
single worlds (they are reset, training goes on), alerts and errors. The same lines are in the run
directory's `events.jsonl`. `/` filters by kind or text.

**Healthy:** checkpoints, and nothing else for long.

**If not:** a fault now and then is a world that went bad in physics; many of them mean that the
time step or the gains do not fit the robot.
"""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._count = 0
        self._events: deque[Event] = deque(maxlen=1000)

    @property
    def found(self) -> list[Event]:
        """The events that the filter lets through, the newest first."""
        return [event for event in self._events if matches(self._filter, _searched(event))]

    def note(self) -> str:
        """Say what is filtered."""
        return f"{len(self.found)} of {len(self._events)} events" if self._filter else ""

    def show(self, snapshot: Snapshot, session: SessionView) -> None:
        """Take the events that came since the last call."""
        if session is not self.session:
            self._count = 0
            self._events.clear()
        self._count, new = session.events.since(self._count)
        self._events.extendleft(new)
        super().show(snapshot, session)

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the number of events."""
        return self._count

    def rows(self, width: int) -> Sequence[Sequence[Span]]:
        """Return a row for each event."""
        if not self._events:
            return [(Span("nothing yet", Role.MUTED),)]
        found = self.found
        if not found:
            return [(Span(f"no event holds {self._filter!r}", Role.MUTED),)]
        return [self._row(event, width) for event in found]

    def _row(self, event: Event, width: int) -> Line:
        clock = time.strftime("%H:%M:%S", time.localtime(event.time))
        role = KIND_ROLES.get(event.kind, Role.TEXT)
        return (
            Span(f"{clock} ", Role.MUTED),
            Span(pad(clean(event.kind), 11), role),
            Span(
                crop(clean(event.text), width - 20), Role.ERROR if role is Role.ERROR else Role.TEXT
            ),
        )


def _searched(event: Event) -> str:
    return f"{event.kind} {event.text}"
