"""Two lines of the dashboard: which view is on show, and what the run is about to do."""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content
from textual.widgets import Static

from trainer.telemetry import RunInfo, RunState, Snapshot
from tui.draw.numbers import plural
from tui.draw.spans import Charset, ascii_text

WIDE = 92
"""Cells in which one tab more than those of the views has room."""


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
        """Say it for this snapshot."""
        text, style = status(snapshot, view, leaving=leaving, looking_back=looking_back)
        if getattr(self.app, "charset", None) is Charset.ASCII:
            text = ascii_text(text)
        if text != self._text:
            self._text = text
            self.update(Content.styled(text, style))


def status(
    snapshot: Snapshot, view: str, *, leaving: bool, looking_back: int | None = None
) -> tuple[str, str]:
    """Return the line that says where a run stands, and its style.

    Args:
        snapshot: the run's newest.
        view: what is on show.
        leaving: whether a person has ended the run.
        looking_back: the iteration that is looked back at, if one is.
    """
    if looking_back is not None:
        paused = snapshot.state is RunState.PAUSED
        goes_on = "" if snapshot.state.is_over or paused else ", training goes on"
        text = f"LOOKING BACK at iteration {looking_back} of {snapshot.completed_iterations}"
        return f"{text}{goes_on}  ·  , ; move  ·  esc live", "bold $warning"
    stage = snapshot.position.stage.label
    match snapshot.state:
        case RunState.FAILED:
            message = snapshot.failure.message if snapshot.failure else ""
            return f"FAILED  {message}  ·  q quits", "bold $error"
        case RunState.KILLED:
            done = plural(snapshot.completed_iterations, "iteration")
            return f"killed after {done}  ·  ppo-tui run ... --resume goes on  ·  q quits", "bold"
        case RunState.FINISHED:
            done = plural(snapshot.completed_iterations, "iteration")
            return f"finished after {done}  ·  q quits", "bold"
        case _ if leaving:
            return f"Stopping…  {snapshot.pending}  ·  q again leaves at once", "bold $warning"
        case RunState.PAUSED if not snapshot.pending:
            why = f": {snapshot.control.paused_by}" if snapshot.control.paused_by else ""
            return f"PAUSED behind {stage}{why}  ·  space runs on", "bold $accent"
        case RunState.STARTING:
            return f"starting: {snapshot.progress or '...'}", "$accent"
    if snapshot.pending:
        return snapshot.pending, "$accent"
    if view == "trace":
        return "looked at between iterations  ·  space pauses to see one stage in full", "$accent"
    return "  ·  ".join(_notes(snapshot.info)), "dim"


def _notes(info: RunInfo | None) -> list[str]:
    """What is so for the whole run; whether bad worlds end alone comes first."""
    if info is None:
        return []
    guard = {None: [], True: ["NaN guard on"], False: ["NaN guard off"]}[info.nan_guard]
    return [*guard, *info.notes]
