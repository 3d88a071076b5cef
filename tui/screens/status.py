"""Two lines of the dashboard: which view is on show, and what the run is about to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from textual.content import Content
from textual.widgets import Static

from trainer.telemetry import RunState, Snapshot
from tui.draw.notes import fitting
from tui.draw.numbers import plural
from tui.draw.spans import Charset, ascii_text
from tui.panels.notes import notes_of

WIDE = 92
"""Cells in which one tab more than those of the views has room."""

WIDER = 106
"""Cells in which two have room."""


class ViewBar(Static):
    """Numbers and names of the views, the present one marked."""

    def __init__(self, views: tuple[str, ...], id: str | None = None) -> None:
        super().__init__(id=id)
        self._views = views
        self._shown: tuple[str, bool, int] | None = None

    def show(self, view: str, *, failed: bool) -> None:
        """Mark `view`; a failed run has one view more."""
        shown = (view, failed, self.size.width)
        if self._shown == shown:
            return
        self._shown = shown
        tabs = {name: f"{number} {name.capitalize()}" for number, name in enumerate(self._views, 1)}
        tabs["robot"] = "r Robot"
        if self.size.width >= WIDE or view == "curve":
            tabs["curve"] = "g Curves"
        if self.size.width >= WIDER or view == "episodes":
            tabs["episodes"] = "h Episodes"
        if failed:
            tabs["failure"] = "8 Failure"
        self.update(tab_line(tabs, view, self.size.width))


def tab_line(tabs: Mapping[str, str], marked: str, width: int) -> Content:
    """Write tabs in a row, the marked one in brackets that stand in the gaps beside it.

    Args:
        tabs: name and text of each.
        marked: name of the one on show.
        width: cells there are; where the row would be longer gaps shrink, then only the marked
            tab keeps more than its number.
    """
    if width and sum(len(text) + 1 for text in tabs.values()) + 1 > width:
        tabs = {name: text if name == marked else text[:1] for name, text in tabs.items()}
    needed = sum(len(text) for text in tabs.values()) + 2 * len(tabs)
    gap = " " * (2 if needed <= width or not width else 1)
    line, before = Content(""), gap[1:]
    for name, text in tabs.items():
        if name == marked:
            line += Content(before[1:]) + Content.styled(f"[{text}]", "bold $accent")
            before = gap[1:]
        else:
            line += Content(f"{before}{text}")
            before = gap
    return line


class StatusLine(Static):
    """What the run waits for or does next, and which key answers it."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._text = ""

    def show(
        self, snapshot: Snapshot, view: str, *, leaving: bool, looking_back: int | None = None
    ) -> None:
        """Say it for this snapshot, in whole sentences as far as they fit."""
        said = status(snapshot, view, leaving=leaving, looking_back=looking_back)
        text = fitting(said.sentences, self.content_size.width, said.more)
        if getattr(self.app, "charset", None) is Charset.ASCII:
            text = ascii_text(text)
        if text != self._text:
            self._text = text
            self.update(Content.styled(text, said.style))


class Status(NamedTuple):
    """What the status line says."""

    sentences: tuple[str, ...]
    """The weightiest first; see `tui.draw.notes`."""
    style: str
    more: str = ""
    """Where all of them stand."""


def status(
    snapshot: Snapshot, view: str, *, leaving: bool, looking_back: int | None = None
) -> Status:
    """Return what is to be said of where a run stands.

    Args:
        snapshot: the run's newest.
        view: what is on show.
        leaving: whether a person has ended the run.
        looking_back: the iteration that is looked back at, if one is.
    """
    done = plural(snapshot.completed_iterations, "iteration")
    if looking_back is not None:
        waits = snapshot.state.is_over or snapshot.state is RunState.PAUSED
        where = f"LOOKING BACK at iteration {looking_back} of {snapshot.completed_iterations}"
        goes_on = "" if waits else "; training goes on"
        return Status((where + goes_on, "esc live", ", ; move"), "bold $warning")
    match snapshot.state:
        case RunState.FAILED:
            message = snapshot.failure.message if snapshot.failure else ""
            return Status((f"FAILED  {message}", "q quits"), "bold $error")
        case RunState.KILLED:
            how = "ppo-tui run ... --resume goes on"
            return Status((f"killed after {done}", "q quits", how), "bold")
        case RunState.FINISHED:
            return Status((f"finished after {done}", "q quits"), "bold")
        case _ if leaving:
            return Status(
                (f"Stopping…  {snapshot.pending}", "q again leaves at once"), "bold $warning"
            )
        case RunState.PAUSED if not snapshot.pending:
            why = f"; {snapshot.control.paused_by}" if snapshot.control.paused_by else ""
            stage = snapshot.position.stage.label
            return Status((f"PAUSED behind {stage}{why}", "space runs on"), "bold $accent")
        case RunState.STARTING:
            return Status((f"starting: {snapshot.progress or '...'}",), "$accent")
    if snapshot.pending:
        return Status((snapshot.pending,), "$accent")
    if view == "trace":
        return Status(
            ("looked at between iterations", "space pauses to see one stage in full"), "$accent"
        )
    return Status(notes_of(snapshot.info), "dim", more="7: all notes")
