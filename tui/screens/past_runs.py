"""What the menu can do with runs of the past."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.summary import RunSummary


@dataclass(frozen=True)
class PastRuns:
    """What the menu can do with runs of the past."""

    find: Callable[[], Sequence[RunSummary]]
    """Returns the newest ones; may take a while."""
    resume: Callable[[RunSummary], Callable[[], None]]
    """Reads a run's checkpoint, which may take seconds; returns what goes on with it. Raises
    PresetError."""
    watch: Callable[[RunSummary], Callable[[], None]]
    """Reaches a live run, or opens its record; returns what leaves the menu to watch it."""
    play: Callable[[RunSummary], Callable[[], None]]
    """Reads a run's policy; returns what leaves the menu to play it. Raises PresetError."""
    machine: str = ""
    """The device on which a run trains where none is named."""
    at: Path | None = None
    """Folder of the run to begin at: the one that the menu was left for."""
    problem: str = ""
    """What went wrong there."""
