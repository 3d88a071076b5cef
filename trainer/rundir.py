"""A run on disk: configuration, metrics, events, status, checkpoints and the libraries' output.

Every file is appended to line by line, or written beside and renamed, so that a crash at any
moment leaves the last good one. A disk that fills up or goes read-only never stops training.
"""

from __future__ import annotations

import datetime as dt
import errno
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trainer import claim
from trainer.telemetry import Event, RunState
from trainer.whole import folder_made, written_whole

MetricValue = float | Sequence[float]


RUNS = Path("runs")
"""Where runs lie that were given no folder of their own."""

ABOUT_THE_ROW = ("iteration", "env_steps", "elapsed")
"""Keys of a row of metrics that are no tags."""


class RunDirError(Exception):
    """A folder that cannot hold a run; the message says which and why."""


class MetricsRow(NamedTuple):
    """One iteration of a run, read back."""

    iteration: int
    """Completed iterations, this one included."""
    metrics: Mapping[str, float]
    """All tags with one number; NaN where it was not finite."""
    env_steps: int = 0
    """Env steps of all worlds so far."""
    elapsed: float = math.nan
    """Seconds of training so far."""


class RunDir:
    """The folder of one run. Make one with `create`, or go on in one with `reopen`.

    Args:
        path: the folder, which exists.
        on_trouble: told once, in a sentence, when something can no longer be written.

    Its files are named from the root: a library or a term that changes the working directory
    must not move the run.
    """

    def __init__(self, path: Path, on_trouble: Callable[[str], object] | None = None) -> None:
        self.path = path
        """The folder, as it was named."""
        self.folder = path.absolute()
        """The folder, wherever the process goes."""
        self.on_trouble = on_trouble or (lambda sentence: None)
        self._troubled: set[str] = set()
        self._lasting: dict[Path, str] = {}  # what is written once, should it be deleted

    @property
    def config(self) -> Path:
        """The resolved preset."""
        return self.folder / "config.toml"

    @property
    def metrics(self) -> Path:
        """A JSON line an iteration."""
        return self.folder / "metrics.jsonl"

    @property
    def events(self) -> Path:
        """A JSON line an event."""
        return self.folder / "events.jsonl"

    @property
    def status(self) -> Path:
        """Where the run stands."""
        return self.folder / "status.json"

    @property
    def info(self) -> Path:
        """What stays the same for the whole run, for those who look at it later."""
        return self.folder / "info.json"

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.folder / "checkpoints"

    @property
    def log(self) -> Path:
        """All that libraries print, and tracebacks."""
        return self.folder / "log.txt"

    @classmethod
    def create(cls, path: Path, config_toml: str) -> RunDir:
        """Make the folder of a new run and write its configuration.

        Raises:
            RunDirError: the folder holds something already, or cannot be written.
        """
        try:
            with folder_made(path):
                _require_empty(path)
                claim.claim(path)
                _require_empty(path)  # another process may have been faster, and be done already
                run_dir = cls(path)
                run_dir._fill(config_toml)
        except claim.ClaimedError as error:
            raise RunDirError(f"--run-dir {path}: {error}") from None
        except NotADirectoryError:
            raise RunDirError(f"--run-dir {path}: a file is in the way") from None
        except FileExistsError:
            raise RunDirError(
                f"--run-dir {path}: is a file, or a broken link is in the way"
            ) from None
        except OSError as error:
            raise RunDirError(f"--run-dir {path}: cannot be written: {error.strerror}") from None
        return run_dir

    @classmethod
    def reopen(cls, path: Path, config_toml: str, iteration: int) -> RunDir:
        """Make the folder of a run that was ended or killed ready to go on in.

        Files half written are deleted, rows of iterations after `iteration` are dropped.

        Args:
            path: the run's folder, in which nobody writes.
            config_toml: the configuration from now on.
            iteration: completed iterations of the checkpoint from which the run goes on.

        Raises:
            RunDirError: another process trains into the folder, or it cannot be written.
        """
        run_dir = cls(path)
        try:
            claim.claim(path)
            for stray in (*path.glob(".*.tmp"), *run_dir.checkpoints.glob(".*.tmp")):
                stray.unlink()
            _keep_lines(run_dir.metrics, lambda row: row.get("iteration", math.inf) <= iteration)
            _keep_lines(run_dir.events, lambda event: True)
            run_dir._write_config(config_toml)
        except claim.ClaimedError as error:
            raise RunDirError(f"{path}: {error}") from None
        except OSError as error:
            raise RunDirError(f"{path}: cannot be written: {error.strerror}") from None
        return run_dir

    def release(self) -> None:
        """Let other processes train into the folder; this one will not any more."""
        claim.release(self.folder)

    def read_metrics(self) -> Iterator[MetricsRow]:
        """Read all rows that are whole.

        Raises:
            OSError: the file cannot be read.
        """
        for _, row in _json_lines(self.metrics):
            if isinstance(iteration := row.get("iteration"), int):
                numbers = {
                    tag: math.nan if value is None else float(value)
                    for tag, value in row.items()
                    if tag not in ABOUT_THE_ROW and not isinstance(value, list)
                }
                steps, elapsed = row.get("env_steps"), row.get("elapsed")
                yield MetricsRow(
                    iteration,
                    numbers,
                    steps if isinstance(steps, int) else 0,
                    elapsed if isinstance(elapsed, int | float) else math.nan,
                )

    def append_metrics(
        self, iteration: int, env_steps: int, elapsed: float, metrics: Mapping[str, MetricValue]
    ) -> None:
        """Append one iteration's line; values that are not finite become null."""
        line = {"iteration": iteration, "env_steps": env_steps, "elapsed": round(elapsed, 3)}
        self._append(self.metrics, line | {tag: _json(value) for tag, value in metrics.items()})

    def read_events(self) -> list[Event]:
        """Read all events that are whole; none where they cannot be read."""
        try:
            entries = [entry for _, entry in _json_lines(self.events)]
        except OSError:
            return []
        return [
            Event(
                entry["time"],
                str(entry.get("kind", "")),
                str(entry.get("text", "")),
                iteration if isinstance(iteration := entry.get("iteration"), int) else 0,
            )
            for entry in entries
            if isinstance(entry.get("time"), int | float)
        ]

    def append_event(self, event: Event) -> None:
        """Append one event."""
        self._append(self.events, event._asdict())

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Replace the status."""
        try:
            _write_whole(self.status, json.dumps(dict(status)) + "\n")
        except OSError as error:
            self._report(self.status, error)

    def restore(self) -> None:
        """Make the folder anew if it was deleted or moved: a checkpoint needs its settings.

        It is told each time.

        Raises:
            OSError: it cannot be written.
        """
        missing = [path for path in self._lasting if not path.exists()]
        if not missing:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / claim.NAME).exists():  # the claim has gone with it
            self.release()
            try:
                claim.claim(self.folder)
            except claim.ClaimedError as error:
                raise OSError(str(error)) from None
        for path in missing:
            _write_whole(path, self._lasting[path], durable=True)
        names = ", ".join(path.name for path in missing)
        self.on_trouble(f"{self.path}: {names} had gone, written again; training goes on")

    def write_info(self, text: str) -> None:
        """Replace what stays the same for the whole run; a JSON text."""
        self._lasting[self.info] = text + "\n"
        try:
            _write_whole(self.info, text + "\n")
        except OSError as error:
            self._report(self.info, error)

    def append_log(self, text: str) -> None:
        """Append lines to the log."""
        try:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(text if text.endswith("\n") else text + "\n")
        except OSError as error:
            self._report(self.log, error)

    def _write_config(self, text: str) -> None:
        _write_whole(self.config, text, durable=True)
        self._lasting[self.config] = text

    def _fill(self, config_toml: str) -> None:
        """Make what a new run begins with, or nothing."""
        try:
            self.checkpoints.mkdir()
            self.log.touch()
            self._write_config(config_toml)
        except OSError:
            self.release()
            for part in (self.config, self.log, self.folder / claim.NAME):
                part.unlink(missing_ok=True)
            if self.checkpoints.exists():
                self.checkpoints.rmdir()
            raise

    def _append(self, path: Path, line: Mapping[str, Any]) -> None:
        try:
            append_whole(path, (json.dumps(line) + "\n").encode())
        except OSError as error:
            self._report(path, error)

    def _report(self, path: Path, error: OSError) -> None:
        if path.name not in self._troubled:
            self._troubled.add(path.name)
            self.on_trouble(f"{path} cannot be written: {error.strerror}; training goes on")


def default_path(preset: str, name: str, now: dt.datetime | None = None) -> Path:
    """Make `runs/<preset>/<UTC time>_<name>`, with a number behind it where that exists already.

    Of two runs that begin in one second, each gets a folder of its own. A folder that cannot be
    made is returned all the same: `RunDir.create` says why.
    """
    stamp = (now or dt.datetime.now(dt.UTC)).strftime("%Y-%m-%d_%H-%M-%S")
    base = RUNS / preset / (f"{stamp}_{name}" if name else stamp)
    path, number = base, 2
    while True:
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            if not os.path.lexists(path):  # what is in the way lies above it, such as a broken link
                return path
            path, number = base.with_name(f"{base.name}_{number}"), number + 1
        except OSError:
            return path
        else:
            return path


def _require_empty(path: Path) -> None:
    """Refuse a folder that holds anything but a claim.

    Raises:
        RunDirError: says what it holds.
    """
    taken = next((entry for entry in path.iterdir() if entry.name != claim.NAME), None)
    if taken is not None:
        what = "another run" if (path / "config.toml").exists() else f"{taken.name!r}"
        raise RunDirError(f"--run-dir {path}: holds {what} already; name an empty or a new folder")


def append_whole(path: Path, data: bytes) -> None:
    """Append to a file, all of it or nothing.

    Raises:
        OSError: the disk is full, or the file cannot be written.
    """
    with path.open("ab", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        if file.write(data) != len(data):  # the disk took only a part
            file.truncate(end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def process_start(pid: int) -> int | None:
    """When a process started, in the kernel's ticks since boot; None if none of this number runs.

    Together with the number it names a process for good: numbers are given again.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = text.rpartition(")")[2].split()  # the name before it may hold anything
    return None if state in "ZX" else int(fields[18])


def writer(path: Path) -> int | None:
    """Number of the process that trains in a run's folder right now; None if there is none."""
    try:
        status = json.loads((path / "status.json").read_text(encoding="utf-8"))
        pid, over = status["pid"], RunState(status["state"]).is_over
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if over or not isinstance(pid, int) or (started := process_start(pid)) is None:
        return None
    return pid if status.get("pid_started", started) == started else None


def _json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Lines of a file that hold a JSON object each, as text and read; none if it is missing."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # a crash or a full disk cut it short
            if isinstance(entry, dict) and line.endswith("\n"):
                yield line, entry


def _keep_lines(path: Path, wanted: Callable[[dict[str, Any]], bool]) -> None:
    """Drop all lines but the whole ones that are wanted."""
    if path.exists():
        kept = "".join(line for line, entry in _json_lines(path) if wanted(entry))
        if len(kept.encode()) != path.stat().st_size:
            _write_whole(path, kept, durable=True)


def _json(value: MetricValue) -> float | list[float | None] | None:
    if isinstance(value, Sequence):
        return [entry if math.isfinite(entry) else None for entry in value]
    return value if math.isfinite(value) else None


def _write_whole(path: Path, text: str, *, durable: bool = False) -> None:
    with written_whole(path) as beside, beside.open("w", encoding="utf-8") as file:
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())
