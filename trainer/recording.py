"""A run as its folder tells it: what was measured, iteration by iteration, at any point of it.

It is a `SessionView` with a cursor. Curves end at the cursor, and the update there is shown with
what was recorded of it: KL, learning rate and clip fraction of each mini-batch. Tensors, rollouts
and ratios are not kept on disk.
"""

from __future__ import annotations

import json
import math
import threading
import time
from array import array
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from trainer.control import Request
from trainer.history import Curve, History
from trainer.pose import RobotRequest
from trainer.rundir import ABOUT_THE_ROW, RunDir, writer
from trainer.stages import Stage
from trainer.telemetry import (
    Command,
    EventLog,
    Failure,
    Position,
    RunInfo,
    RunState,
    Snapshot,
    UpdateView,
)
from trainer.trace import TraceRequest
from trainer.wire import WireError, from_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


BEGINNING = 30.0
"""Seconds that a new run may take until its session writes where it stands."""


def standing(folder: Path) -> RunState:
    """Say where the run in a folder stands; one whose process is gone without a word was killed."""
    try:
        state = RunState(_object_in(RunDir(folder).status).get("state", ""))
    except ValueError:  # not written yet
        return RunState.STARTING if _is_new(folder) else RunState.KILLED
    return state if state.is_over or writer(folder) is not None else RunState.KILLED


def _is_new(folder: Path) -> bool:
    """Whether a run was made a moment ago, so that its session may not have begun."""
    try:
        made = RunDir(folder).config.stat().st_mtime
    except OSError:
        return False
    return time.time() - made < BEGINNING


class RecordedHistory(History):
    """A history that can be seen as it was at an earlier iteration."""

    def __init__(self) -> None:
        super().__init__()
        self.cursor = 0
        """Iterations that are seen."""
        self.newest = 0
        """Completed iterations at the cursor."""

    def __len__(self) -> int:
        """Iterations up to the cursor."""
        return self.cursor

    def curve(self, tag: str) -> Curve:
        """Return a metric's curve up to the cursor."""
        whole = super().curve(tag)
        seen = int(whole.iteration.searchsorted(self.newest, side="right"))
        iteration, mean, low, high = whole
        return Curve(iteration[:seen], mean[:seen], low[:seen], high[:seen])


class Recording:
    """A run that nobody trains any more, with a cursor over its iterations.

    Args:
        folder: the run's.
    """

    def __init__(self, folder: Path) -> None:
        self.run_dir = RunDir(folder)
        self.history = RecordedHistory()
        self.events = EventLog()
        self._state = standing(folder)
        self._status = _object_in(self.run_dir.status)
        self._info = read_info(self.run_dir)
        self._places = array("Q")  # where each row begins in the file
        self._cursor = -1
        self._snapshot = self._before_any_row()
        self._thread = threading.Thread(target=self._read, name="reading", daemon=True)

    def __len__(self) -> int:
        """Iterations that have been read so far."""
        return len(self._places)

    @property
    def cursor(self) -> int:
        """Index of the iteration that is shown, from 0; -1: none."""
        return self._cursor

    def start(self) -> None:
        """Begin to read; the newest iteration that is read is shown until `seek`."""
        self._thread.start()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all is read; returns whether it is."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def snapshot(self) -> Snapshot:
        """Return what there was at the cursor."""
        return self._snapshot

    def command(self, command: Command) -> None:
        """Do nothing: what is recorded takes no commands."""

    def control(self, request: Request) -> None:
        """Do nothing: what is recorded takes no requests."""

    def look(self, request: TraceRequest | None) -> None:
        """Do nothing: tensors are not recorded."""

    def watch_robot(self, request: RobotRequest | None) -> None:
        """Do nothing: what the robots did is not recorded."""

    def note(self, kind: str, text: str) -> None:
        """Keep nothing: the run is over."""

    def seek(self, index: int) -> None:
        """Show an iteration, the nearest there is."""
        index = max(0, min(index, len(self._places) - 1))
        if not self._places or index == self._cursor:
            return
        row = self._row(self._places[index])
        self._cursor = index
        self.history.cursor, self.history.newest = index + 1, row["iteration"]
        self._snapshot = self._at(row)

    # Reading.

    def _read(self) -> None:
        self.events.recall(self.run_dir.read_events())
        try:
            file = self.run_dir.metrics.open("rb")
        except OSError:
            return
        with file:
            place = 0
            for line in file:
                row = _object(line)
                if isinstance(row.get("iteration"), int) and line.endswith(b"\n"):
                    self.history.append(row["iteration"], _numbers(row))
                    self._places.append(place)
                place += len(line)
        if self._cursor < 0:
            self.seek(len(self) - 1)

    def _row(self, place: int) -> dict[str, Any]:
        with self.run_dir.metrics.open("rb") as file:
            file.seek(place)
            return _object(file.readline())

    # What is shown.

    def _before_any_row(self) -> Snapshot:
        return Snapshot(state=self._state, info=self._info, failure=self._failure())

    def _failure(self) -> Failure | None:
        if self._state is not RunState.FAILED:
            return None
        message = str(self._status.get("failure") or "unknown")
        done = self._status.get("completed_iterations", 0)
        return Failure(message, "log.txt holds the traceback", None, int(done) + 1)

    def _at(self, row: Mapping[str, Any]) -> Snapshot:
        done, elapsed = int(row["iteration"]), float(row.get("elapsed", math.nan))
        numbers = _numbers(row)
        metrics = {tag: numbers.get(tag, math.nan) for tag in self.history.tags}
        for tag in metrics.keys() - numbers.keys():
            metrics[tag] = _last_finite(self.history.curve(tag).mean)
        left = (self._info.num_iterations if self._info is not None else done) - done
        seconds = row.get("Perf/stage_seconds")
        return Snapshot(
            seq=self._snapshot.seq + 1,
            state=self._state,
            position=Position(max(done - 1, 0), Stage.FRESH),
            info=self._info,
            completed_iterations=done,
            env_steps=int(row.get("env_steps", 0)),
            elapsed=elapsed,
            eta=elapsed / done * left if done else math.nan,
            steps_per_second=metrics.get("Perf/total_fps", math.nan),
            stage_seconds=tuple(seconds) if seconds else (0.0,) * len(Stage),
            metrics=MappingProxyType(metrics),
            update=_update(row),
            failure=self._failure(),
        )


def read_info(run_dir: RunDir) -> RunInfo | None:
    """Return what stays the same for the whole run; None where the run did not get so far.

    The folder is named as it is reached from here: the run was started elsewhere, or moved since.
    """
    try:
        info = from_json(run_dir.info.read_text(encoding="utf-8"))
    except (OSError, WireError):
        return None
    return replace(info, run_dir=str(run_dir.path)) if isinstance(info, RunInfo) else None


def _update(row: Mapping[str, Any]) -> UpdateView | None:
    """Return the update of an iteration as far as it was recorded."""
    import numpy as np

    def floats(tag: str) -> NDArray[np.float32]:
        values = row.get(tag) or ()
        return np.array([math.nan if v is None else v for v in values], np.float32)

    kl = floats("Loss/kl_per_mini_batch")
    if not kl.size:
        return None
    nothing = np.zeros(0, np.int64)
    return UpdateView(
        kl=kl,
        learning_rate=floats("Loss/learning_rate_per_mini_batch"),
        clip_fraction=floats("Loss/clip_fraction_per_mini_batch"),
        ratio_edges=np.zeros(0, np.float32),
        ratio_first=nothing,
        ratio_last=nothing,
        action_std=floats("Policy/std_per_action"),
    )


def _numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """All tags of a row that hold one number."""
    return {
        tag: math.nan if value is None else float(value)
        for tag, value in row.items()
        if tag not in ABOUT_THE_ROW and (value is None or isinstance(value, int | float))
    }


def _last_finite(values: NDArray[np.float32]) -> float:
    import numpy as np

    finite = values[np.isfinite(values)]
    return float(finite[-1]) if finite.size else math.nan


def _object_in(path: Path) -> dict[str, Any]:
    try:
        return _object(path.read_bytes())
    except OSError:
        return {}


def _object(text: bytes) -> dict[str, Any]:
    """Read a JSON object; empty where it is something else, or cut short."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
