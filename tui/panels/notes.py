"""What a person should know of the run, in full."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from textual.geometry import Size

from trainer.telemetry import RunInfo, SessionView, Snapshot
from tui.draw.notes import folded
from tui.draw.spans import Span, clean
from tui.panels.base import ScrollingPanel


def notes_of(info: RunInfo | None) -> tuple[str, ...]:
    """What is so for the whole run; whether bad worlds end alone comes first."""
    if info is None:
        return ()
    guard = {None: (), True: ("NaN guard on",), False: ("NaN guard off",)}[info.nan_guard]
    return (*guard, *map(clean, info.notes))


class NotesPanel(ScrollingPanel):
    """The run's notes, folded; as high as they are, and away where there are none."""

    TITLE: ClassVar[str] = "notes"

    HELP: ClassVar[str | None] = """\
## Notes

What is special about this run, the weightiest first: that no GPU was found, that worlds began anew
when it was resumed, which seed was drawn. The status line holds as many of these sentences as fit.

**Healthy:** nothing here that you did not expect.
"""

    DEFAULT_CSS = "NotesPanel.-none { display: none; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="-none")

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the notes alone."""
        return id(snapshot.info)

    def show(self, snapshot: Snapshot, session: SessionView) -> None:
        """Take a new snapshot, and the room that its notes need."""
        before = self.snapshot.info
        super().show(snapshot, session)
        if snapshot.info is not before:
            self.set_class(not notes_of(snapshot.info), "-none")
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as the folded notes."""
        return max(1, len(folded(notes_of(self.snapshot.info), width)))

    def rows(self, width: int) -> Sequence[Sequence[Span]]:
        """Return the notes."""
        return [(Span(line),) for line in folded(notes_of(self.snapshot.info), width)]
