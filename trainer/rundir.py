"""A run on disk: configuration, metrics, events, status, checkpoints and the libraries' output.

Every file is appended to line by line, or written beside and renamed, so that a crash at any
moment leaves the last good one. A disk that fills up or goes read-only never stops training.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.telemetry import Event

MetricValue = float | Sequence[float]


class RunDirError(Exception):
    """A folder that cannot hold a new run; the message says which and why."""


class RunDir:
    """The folder of one run. Make one with `create`.

    Args:
        path: the folder, which exists.
        on_trouble: told once, in a sentence, when something can no longer be written.
    """

    def __init__(self, path: Path, on_trouble: Callable[[str], object] | None = None) -> None:
        self.path = path
        self.on_trouble = on_trouble or (lambda sentence: None)
        self._troubled: set[str] = set()

    @property
    def config(self) -> Path:
        """The resolved preset."""
        return self.path / "config.toml"

    @property
    def metrics(self) -> Path:
        """A JSON line an iteration."""
        return self.path / "metrics.jsonl"

    @property
    def events(self) -> Path:
        """A JSON line an event."""
        return self.path / "events.jsonl"

    @property
    def status(self) -> Path:
        """Where the run stands."""
        return self.path / "status.json"

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def log(self) -> Path:
        """All that libraries print, and tracebacks."""
        return self.path / "log.txt"

    @classmethod
    def create(cls, path: Path, config_toml: str) -> RunDir:
        """Make the folder of a new run and write its configuration.

        Raises:
            RunDirError: the folder holds something already, or cannot be written.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            taken = next(path.iterdir(), None)
            if taken is not None:
                what = "another run" if (path / "config.toml").exists() else f"{taken.name!r}"
                raise RunDirError(
                    f"--run-dir {path}: holds {what} already; name an empty or a new folder"
                )
            run_dir = cls(path)
            run_dir.checkpoints.mkdir()
            run_dir.log.touch()
            _write_whole(run_dir.config, config_toml, durable=True)
        except NotADirectoryError:
            raise RunDirError(f"--run-dir {path}: a file is in the way") from None
        except FileExistsError:
            raise RunDirError(f"--run-dir {path}: is a file, not a folder") from None
        except OSError as error:
            raise RunDirError(f"--run-dir {path}: cannot be written: {error.strerror}") from None
        return run_dir

    def append_metrics(
        self, iteration: int, env_steps: int, elapsed: float, metrics: Mapping[str, MetricValue]
    ) -> None:
        """Append one iteration's line; values that are not finite become null."""
        line = {"iteration": iteration, "env_steps": env_steps, "elapsed": round(elapsed, 3)}
        self._append(self.metrics, line | {tag: _json(value) for tag, value in metrics.items()})

    def append_event(self, event: Event) -> None:
        """Append one event."""
        self._append(self.events, event._asdict())

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Replace the status."""
        try:
            _write_whole(self.status, json.dumps(dict(status)) + "\n")
        except OSError as error:
            self._report(self.status, error)

    def append_log(self, text: str) -> None:
        """Append lines to the log."""
        try:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(text if text.endswith("\n") else text + "\n")
        except OSError as error:
            self._report(self.log, error)

    def _append(self, path: Path, line: Mapping[str, Any]) -> None:
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            self._report(path, error)

    def _report(self, path: Path, error: OSError) -> None:
        if path.name not in self._troubled:
            self._troubled.add(path.name)
            self.on_trouble(f"{path} cannot be written: {error.strerror}; training goes on")


def default_path(preset: str, name: str, now: dt.datetime | None = None) -> Path:
    """`runs/<preset>/<UTC time>_<name>`, with a number behind it where that exists already."""
    stamp = (now or dt.datetime.now(dt.UTC)).strftime("%Y-%m-%d_%H-%M-%S")
    base = Path("runs") / preset / (f"{stamp}_{name}" if name else stamp)
    path, number = base, 2
    while path.exists():
        path, number = base.with_name(f"{base.name}_{number}"), number + 1
    return path


def _json(value: MetricValue) -> float | list[float | None] | None:
    if isinstance(value, Sequence):
        return [entry if math.isfinite(entry) else None for entry in value]
    return value if math.isfinite(value) else None


def _write_whole(path: Path, text: str, *, durable: bool = False) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    beside.replace(path)
