"""The lines that remain in the terminal after the screen has gone."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

from presets.loader import filed_under
from presets.problems import PresetError
from trainer.rundir import RUNS
from trainer.telemetry import EventLog, RunInfo, RunState, Snapshot
from tui.advice import advice, place, where
from tui.draw.numbers import plural
from tui.draw.spans import printable


def last_checkpoint(events: EventLog) -> str:
    """Return what the newest checkpoint event says, or that there is none."""
    saved = _checkpoints(events)
    return saved[-1] if saved else "no checkpoint yet"


def resume_command(info: RunInfo, completed_iterations: int) -> str:
    """Return the command that goes on with a run.

    Args:
        info: the run.
        completed_iterations: how far it has come; a run that is done goes on to twice that.
    """
    is_done = completed_iterations >= info.num_iterations
    return continuing_command(
        info.preset, Path(info.run_dir), info, 2 * completed_iterations if is_done else None
    )


def continuing_command(
    preset: str, folder: Path, info: RunInfo | None, total: int | None, device: str = ""
) -> str:
    """Return the command that goes on with a run as it was started.

    Args:
        preset: what it trains.
        folder: where it lies now.
        info: what it was started with, as far as it is known.
        total: iterations to go on to; None: its own.
        device: where to train, unless that is chosen by itself.
    """
    run = folder.name if folder == RUNS / preset / folder.name else str(folder)
    words = ["ppo-tui", "run", _preset_argument(preset, folder), "--resume", run]
    for path in info.own_terms if info is not None else ():
        words += ["--terms", path]
    if info is not None and info.world_size > 1:
        words += ["--processes", str(info.world_size)]
    if device:
        words += ["--device", device]
    if total is not None:
        words += ["--iterations", str(total)]
    return shlex.join(words)


def _preset_argument(preset: str, folder: Path) -> str:
    """The preset's name, or the run's own configuration where that name leads elsewhere."""
    try:
        if filed_under(preset) == preset:
            return preset
    except PresetError:
        pass
    return str(folder / "config.toml")


def _checkpoints(events: EventLog) -> list[str]:
    _, kept = events.since(0)
    return [event.text for event in kept if event.kind == "checkpoint"]


def farewell(snapshot: Snapshot, events: EventLog, *, ended: bool) -> str:
    """Say in a few lines how a run ended and where it lies.

    Args:
        snapshot: the run's last one.
        events: the run's events.
        ended: whether its thread has ended.
    """
    info = snapshot.info
    name = info.preset if info is not None else "run"
    done = plural(snapshot.completed_iterations, "iteration")
    if info is not None:
        total = plural(info.num_iterations, "iteration")
        done = f"{snapshot.completed_iterations} of {total}"
    how = {RunState.FAILED: "failed", RunState.KILLED: "was killed"}.get(snapshot.state, "ended")
    how = how if ended else "was left, still busy,"
    reward = snapshot.metrics.get("Train/mean_reward", math.nan)
    learnt = f", mean reward {reward:.4g}" if math.isfinite(reward) else ""
    lines = [f"{name} {how} after {done}{learnt}"]
    if snapshot.failure is not None:
        lines.append(snapshot.failure.message)
        lines.append(f"  failed in      {place(snapshot.failure)}")
        if snapshot.failure.culprit is not None:
            lines.append(f"  it began with  {where(snapshot.failure.culprit)}")
        lines += [f"  looked at      {side}" for side in snapshot.failure.looked_at]
        if hint := advice(snapshot.failure):
            lines.append(f"  what to try    {hint}")
    if info is not None:
        lines.append(f"  run directory  {info.run_dir}")
        lines.append(f"  checkpoint     {last_checkpoint(events)}")
        if _checkpoints(events):
            lines.append(f"  to go on       {resume_command(info, snapshot.completed_iterations)}")
    elif snapshot.failure is not None and snapshot.failure.run_dir:
        lines.append(f"  run directory  {snapshot.failure.run_dir}")
    if not ended:
        lines.append("  what came after the last checkpoint is lost")
    return printable("\n".join(lines))
