"""What of a run's events stands on the time axis of its curves."""

from __future__ import annotations

import sys

from trainer.telemetry import Event, SessionView
from tui.draw.spans import clean
from tui.draw.time_axis import Mark, MarkKind

KINDS = {
    "checkpoint": MarkKind.CHECKPOINT,
    "edit": MarkKind.EDIT,
    "break": MarkKind.BREAK,
    "fault": MarkKind.TROUBLE,
    "alert": MarkKind.TROUBLE,
    "error": MarkKind.TROUBLE,
}
"""Kind of an event to that of its mark; others have none."""


def num_events(session: SessionView) -> int:
    """Return how many events there have been: while it stays so do the marks."""
    return session.events.since(sys.maxsize)[0]


def marks_of(session: SessionView) -> tuple[Mark, ...]:
    """Return the marks of all events whose iteration is known."""
    _, kept = session.events.since(0)
    marks = ((event, _kind(event)) for event in kept if event.iteration > 0)
    return tuple(
        Mark(event.iteration, kind, clean(event.text)) for event, kind in marks if kind is not None
    )


def _kind(event: Event) -> MarkKind | None:
    if event.kind == "checkpoint" and " loaded" in event.text:
        return MarkKind.RESUME
    if event.kind == "edit" and event.text.startswith("refused"):
        return None
    return KINDS.get(event.kind)
