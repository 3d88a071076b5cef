"""What a session shows to others: its newest snapshot, its events, and its status on disk."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from trainer.describe import status
from trainer.keeping import CheckpointKeeper
from trainer.rundir import RunDir
from trainer.telemetry import EventLog, Position, Snapshot

_STATUS_INTERVAL = 1.0
"""Seconds between two writings of the status while iterations go by."""


class Board:
    """Written to by the session's thread; read from any other, which never waits.

    Args:
        run_dir: the run's folder.
        preset: the preset's name.
        num_iterations: iterations of the whole run.
        first: what is known before anything is built.
    """

    def __init__(self, run_dir: RunDir, preset: str, num_iterations: int, first: Snapshot) -> None:
        self.events = EventLog()
        self.newest = first
        """Replaced at iterations and changes of state."""
        self.position = Position()
        """Where the loop is; replaced at every stage boundary."""
        self._seq = 0
        self._run_dir = run_dir
        self._preset = preset
        self._num_iterations = num_iterations
        self._status_time = 0.0
        run_dir.on_trouble = self._trouble
        self.events.recall(run_dir.read_events())  # of a run that is gone on with

    def read(self, **parts: Any) -> Snapshot:  # noqa: ANN401 - fields of Snapshot
        """Return the newest snapshot, with the parts that others keep."""
        return replace(self.newest, seq=self._seq, position=self.position, **parts)

    def publish(self, **changes: Any) -> None:  # noqa: ANN401 - fields of Snapshot
        """Replace some fields."""
        self.newest = replace(self.newest, **changes)
        self.changed()

    def moved(self, position: Position) -> None:
        """Say where the loop is."""
        self.position = position
        self.changed()

    def changed(self) -> None:
        """Let those who read know that there is something new."""
        self._seq += 1

    def record(self, kind: str, text: str) -> None:
        """Keep an event, on disk too."""
        self._run_dir.append_event(self.events.add(kind, text, self._iteration))

    def write_status(self, keeper: CheckpointKeeper, *, even_if_recent: bool = True) -> None:
        """Write `status.json`, whole, unless it may stay as it is for now."""
        now = time.monotonic()
        if even_if_recent or now - self._status_time >= _STATUS_INTERVAL:
            self._status_time = now
            self._run_dir.write_status(
                status(self.newest, self._preset, self._num_iterations, keeper)
            )

    def _trouble(self, sentence: str) -> None:
        self.events.add("alert", sentence, self._iteration)

    @property
    def _iteration(self) -> int:
        """The one that runs or has just ended, from 1."""
        return self.position.iteration + 1
