"""The end of the run's log: what libraries print while the screen is theirs no longer."""

from __future__ import annotations

import os
from pathlib import Path

from textual.content import Content
from textual.widgets import Static

from trainer.telemetry import SessionView, Snapshot
from tui.draw.search import matches

TAIL_BYTES = 16_384
"""Read from the end of the log; more than any screen shows."""


class OutputTail(Static):
    """The last lines of `log.txt`."""

    BORDER_TITLE = "output of libraries: log.txt"

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._bytes = -1
        self._filter = ""

    @property
    def filter(self) -> str:
        """What a line must hold to be shown; see `tui.draw.search`."""
        return self._filter

    @filter.setter
    def filter(self, wanted: str) -> None:
        if wanted != self._filter:
            self._filter, self._bytes = wanted, -1

    def show(self, snapshot: Snapshot, session: SessionView) -> None:
        """Show as many of the last lines as fit, if there are new ones."""
        if snapshot.info is None:
            return
        log = Path(snapshot.info.run_dir) / "log.txt"
        try:
            size = log.stat().st_size
            if size != self._bytes:
                self._bytes = size
                lines = last_lines(log, max(1, self.size.height), self._filter)
                self.update(Content("\n".join(lines)))
        except OSError:
            self.update(Content(""))

    def on_resize(self) -> None:
        """Read again: another number of lines fits."""
        self._bytes = -1


def last_lines(path: Path, count: int, wanted: str = "") -> list[str]:
    """Return the last `count` lines that hold `wanted`, escape sequences made harmless."""
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    lines = text.replace("\r", "\n").replace("\x1b", "␛").splitlines()
    return [line for line in lines if line.strip() and matches(wanted, line)][-count:]
