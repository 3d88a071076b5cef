"""What a run's folder says of the run, however much of it is missing or damaged."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.recording import read_info
from trainer.rundir import MetricsRow, RunDir, writer
from trainer.telemetry import RunInfo, RunState

REWARD = "Train/mean_reward"
"""The tag by which runs are compared."""

_STAMP = re.compile(r"(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)(?:_(.*))?")
_REWARDS = re.compile(rb'"' + REWARD.encode() + rb'": (-?[\d.]+(?:e[-+]?\d+)?)')


@dataclass(frozen=True)
class RunSummary:
    """One run in a few values; what cannot be known is None."""

    folder: Path
    preset: str
    """The preset it trains; the name of the folder above where the run does not say."""
    name: str
    """What it was named; empty where it was not."""
    state: str
    """starting, running or paused; finished, stopped (before its last iteration) or failed; killed:
    it says that it goes on, but no such process is there; unknown: it says nothing."""
    pid: int | None
    """The process that trains it right now."""
    iterations: int | None
    """Completed ones."""
    num_iterations: int | None
    """Those of the whole run."""
    env_steps: int | None
    last_reward: float | None
    """Mean return of the last finished episodes."""
    best_reward: float | None
    """The highest that this has been."""
    started: dt.datetime | None
    elapsed: float | None
    """Seconds of training, pauses left out."""
    failure: str | None
    info: RunInfo | None = None
    """What it was started with, and what stays the same; None where it did not get so far."""


def summarize_run(folder: Path) -> RunSummary:
    """Read what a run's folder says. Raises nothing for what is missing or damaged in it.

    Args:
        folder: one that holds a `config.toml`.
    """
    status, config, last = _status(folder), settings(folder), _last_row(folder)
    trainer = config.get("trainer")
    asked = trainer.get("num_iterations") if isinstance(trainer, dict) else None
    total = _whole(status.get("num_iterations", asked))
    done = _whole(last.get("iteration", status.get("completed_iterations")))
    rewards = _rewards(folder)
    stamp = _STAMP.fullmatch(folder.name)
    return RunSummary(
        folder=folder,
        preset=str(config.get("name", folder.resolve().parent.name)),
        name=(stamp[2] or "") if stamp else folder.name,
        state=_state(folder, status, done, total),
        pid=writer(folder),
        iterations=done,
        num_iterations=total,
        env_steps=_whole(last.get("env_steps", status.get("env_steps"))),
        last_reward=rewards[-1] if rewards else None,
        best_reward=max(rewards, default=None),
        started=_started(folder, stamp),
        elapsed=_number(last.get("elapsed", status.get("elapsed"))),
        failure=_text(status.get("failure")),
        info=read_info(RunDir(folder)),
    )


def settings(folder: Path) -> Mapping[str, Any]:
    """The resolved preset of a run as it stands in the file; empty where it cannot be read."""
    try:
        return tomllib.loads((folder / "config.toml").read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return {}


def curve(folder: Path, tag: str = REWARD) -> tuple[list[int], list[float]]:
    """Env steps and values of one tag, where the run has it; empty where nothing can be read."""
    rows = [row for row in _rows(folder) if tag in row.metrics]
    return [row.env_steps for row in rows], [row.metrics[tag] for row in rows]


def last_metrics(folder: Path) -> Mapping[str, float]:
    """Every tag of a run with its last value; empty where nothing can be read."""
    found: dict[str, float] = {}
    for row in _rows(folder):
        found.update(row.metrics)
    return found


def _rows(folder: Path) -> list[MetricsRow]:
    try:
        return list(RunDir(folder).read_metrics())
    except (OSError, ValueError, TypeError):  # or a file of this name that is not ours
        return []


def _state(folder: Path, status: Mapping[str, Any], done: int | None, total: int | None) -> str:
    try:
        state = RunState(status["state"])
    except (KeyError, ValueError):
        return "unknown"
    if not state.is_over:
        return str(state) if writer(folder) is not None else "killed"
    stopped_early = done is not None and total is not None and done < total
    return "stopped" if state is RunState.FINISHED and stopped_early else str(state)


def _status(folder: Path) -> Mapping[str, Any]:
    try:
        status = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return status if isinstance(status, dict) else {}


def _last_row(folder: Path) -> Mapping[str, Any]:
    """The last whole line of the metrics."""
    try:
        with (folder / "metrics.jsonl").open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 65_536))
            lines = file.read().split(b"\n")[:-1]  # behind the last "\n" stands half a line
    except OSError:
        return {}
    for line in reversed(lines):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            return row
    return {}


def _rewards(folder: Path) -> list[float]:
    """All rewards. Found in the text: a list of runs would take seconds to read line by line."""
    try:
        text = (folder / "metrics.jsonl").read_bytes()
    except OSError:
        return []
    return [float(found) for found in _REWARDS.findall(text[: text.rfind(b"\n") + 1])]


def _started(folder: Path, stamp: re.Match[str] | None) -> dt.datetime | None:
    if stamp is not None:
        try:
            return dt.datetime.strptime(stamp[1], "%Y-%m-%d_%H-%M-%S").replace(tzinfo=dt.UTC)
        except ValueError:
            pass
    try:
        with (folder / "events.jsonl").open(encoding="utf-8", errors="replace") as file:
            return dt.datetime.fromtimestamp(json.loads(file.readline())["time"], dt.UTC)
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
