"""The crash screen: what went wrong, where, whose fault it is, what is saved, and what to try."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from trainer.telemetry import EventLog, Failure, SessionView, Snapshot
from tui import exit_codes
from tui.advice import advice, experiment, place, where
from tui.draw.spans import Charset, ascii_text, printable
from tui.farewell import last_checkpoint, resume_command
from tui.screens.labels import labelled_rows
from tui.screens.output import last_lines

LABEL_WIDTH = 17
LOG_LINES = 12
"""Shown of the log, before the traceback that ends it."""
FRAME = re.compile(r'^ +File "(.*)", line (\d+), in (.+)$', re.MULTILINE)
"""Where a traceback names a place."""
TROUBLES = ("alert", "fault")
"""Kinds of events that may tell how it came to this."""
SHOWN_TROUBLES = 4
MESSAGE_LINES = 5
"""Of the error's own words: what is saved and what to try has to stay in sight."""

EXIT_CODES = {
    exit_codes.FAILED: "the run failed",
    exit_codes.OUT_OF_MEMORY: "out of memory",
}


class FailureView(VerticalScroll, inherit_bindings=False):
    """The page of a failed run; empty while there is none."""

    DEFAULT_CSS = "FailureView { scrollbar-gutter: stable; }"  # the text is folded beside it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", "Up", show=False),
        Binding("down,j", "scroll_down", "Down", show=False),
        Binding("home", "scroll_home", "To the top", show=False),
        Binding("end", "scroll_end", "To the end of the log", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
        Binding("pagedown", "page_down", "Page down", show=False),
        Binding("y", "copy", "Copy", tooltip="Copy the command that goes on with this run"),
    ]

    def __init__(self, id: str | None = None) -> None:
        super().__init__(Static(id="failure-text"), id=id)
        self._shown: tuple[Failure, int, object] | None = None
        self._command = ""
        self._newest: tuple[Snapshot, SessionView] | None = None

    def on_resize(self) -> None:
        """Fill the room: it comes after the failure, and the last snapshot comes but once."""
        if self._newest is not None:
            self.show(*self._newest)

    def show(self, snapshot: Snapshot, session: SessionView) -> None:
        """Describe the failure, anew only where the room has changed."""
        self._newest = (snapshot, session)
        failure = snapshot.failure
        width = self.scrollable_content_region.width
        if failure is None or width <= 0:
            return
        if self.screen.focused is None:
            self.focus()  # the keys scroll it
        charset = getattr(self.app, "charset", None)
        if self._shown == (failure, width, charset):
            return
        self._shown = (failure, width, charset)
        self._command = command_to_go_on(snapshot, session.events)
        lines = list(failure_page(snapshot, session.events, width))
        if charset is Charset.ASCII:
            lines = [Content(ascii_text(line.plain)) for line in lines]
        self.query_one(Static).update(Content("\n").join(lines))

    def action_copy(self) -> None:
        """Copy the command with which to go on, where the terminal allows."""
        if self._command:
            self.app.copy_to_clipboard(self._command)
            self.notify("Copied, if your terminal allows it. It is printed again when you leave.")


def failure_page(snapshot: Snapshot, events: EventLog, width: int) -> Iterator[Content]:
    """Write the page of a run that failed.

    Args:
        snapshot: its last one.
        events: the run's events.
        width: cells to fold texts to.
    """
    failure = snapshot.failure
    assert failure is not None

    def rows(label: str, text: str) -> list[Content]:
        return labelled_rows(label, printable(text), width, label_width=LABEL_WIDTH)

    yield Content.styled("The run failed", "bold $error")
    message = printable(failure.message).splitlines()
    folded = [part for line in message for part in textwrap.wrap(line, width) or [""]]
    if len(folded) > MESSAGE_LINES:
        folded[MESSAGE_LINES - 1 :] = ["… all of it stands at the end of the traceback below"]
    for part in folded:
        yield Content.styled(part, "bold")
    yield Content("")
    yield from rows("failed in", place(failure))
    if failure.culprit is not None:
        yield from rows("it began with", where(failure.culprit))
        yield from rows("computed in", f"stage {failure.culprit.stage.label}")
    elif raised := raised_at(failure.traceback):
        yield from rows("raised at", raised)
    for number, side in enumerate(failure.looked_at):
        yield from rows("looked at" if number == 0 else "", side)
    yield from rows("last checkpoint", last_checkpoint(events))
    yield from rows("run directory", _folder(snapshot) or "none yet")
    code = exit_codes.exit_code(snapshot)
    yield from rows("exit code", f"{code}: {EXIT_CODES[code]}")
    yield Content("")
    for number, remedy in enumerate(_remedies(snapshot)):
        yield from rows("what to try" if number == 0 else "", f"- {remedy}")
    if command := command_to_go_on(snapshot, events):
        yield from rows("to go on", f"{command}   (y copies it)")
    yield from _troubles(events, width)
    yield Content("")
    yield Content.styled("traceback", "$primary")
    for line in printable(failure.traceback.rstrip()).splitlines():
        yield Content.styled(line, "dim")
    log = _end_of_log(snapshot)
    if log:
        yield Content("")
        yield Content.styled("the log before it", "$primary")
        for line in log:
            yield Content.styled(printable(line), "dim")


def raised_at(traceback: str) -> str:
    """Return the last place that a traceback names: file, line and function."""
    frames = FRAME.findall(traceback)
    if not frames:
        return ""
    file, line, function = frames[-1]
    return f"{file}:{line}, in {function}"


def command_to_go_on(snapshot: Snapshot, events: EventLog) -> str:
    """Return the command that goes on from the last checkpoint, or begins anew where none is."""
    failure, info = snapshot.failure, snapshot.info
    if info is not None and last_checkpoint(events) != last_checkpoint(EventLog()):
        return resume_command(info, snapshot.completed_iterations)
    if failure is not None and failure.run_dir:
        words = ["ppo-tui", "run", f"{failure.run_dir}/config.toml"]
        for path in info.own_terms if info is not None else ():
            words += ["--terms", path]
        return shlex.join(words)
    return ""


def _remedies(snapshot: Snapshot) -> list[str]:
    failure = snapshot.failure
    assert failure is not None
    known = [part for part in advice(failure).split("; ") if part]
    if snapshot.info is not None and (command := experiment(failure, snapshot.info.preset)):
        known.append(f"a new run that shows whether this term is the cause: {command}")
    if not known:
        known = ["see the traceback below; the last frames name the place"]
    if failure.culprit is not None:
        known.append("a run that goes on unchanged may fail again at the same place")
    return known


def _troubles(events: EventLog, width: int) -> Iterator[Content]:
    """What was reported before it, the newest last."""
    _, kept = events.since(0)
    begun = max((at for at, event in enumerate(kept) if event.kind == "start"), default=0)
    texts = [event.text for event in kept[begun:] if event.kind in TROUBLES][-SHOWN_TROUBLES:]
    for number, text in enumerate(texts):
        label = "reported before" if number == 0 else ""
        yield from labelled_rows(label, printable(text), width, label_width=LABEL_WIDTH)


def _folder(snapshot: Snapshot) -> str:
    if snapshot.info is not None:
        return snapshot.info.run_dir
    return snapshot.failure.run_dir if snapshot.failure is not None else ""


def _end_of_log(snapshot: Snapshot) -> list[str]:
    """The last lines of the log, without the traceback that the page shows already."""
    folder, failure = _folder(snapshot), snapshot.failure
    if not folder or failure is None:
        return []
    try:
        lines = last_lines(Path(folder) / "log.txt", 1000)
    except OSError:
        return []
    known = {line for line in failure.traceback.splitlines() if line.strip()}
    while lines and lines[-1] in known:
        lines.pop()
    return lines[-LOG_LINES:]
