"""The lines that remain in the terminal after the screen has gone."""

from __future__ import annotations

import math

from trainer.telemetry import EventLog, RunState, Snapshot


def last_checkpoint(events: EventLog) -> str:
    """Return what the newest checkpoint event says, or that there is none."""
    _, kept = events.since(0)
    saved = [event.text for event in kept if event.kind == "checkpoint"]
    return saved[-1] if saved else "no checkpoint yet"


def farewell(snapshot: Snapshot, events: EventLog, *, ended: bool) -> str:
    """Say in a few lines how a run ended and where it lies.

    Args:
        snapshot: the run's last one.
        events: the run's events.
        ended: whether its thread has ended.
    """
    info = snapshot.info
    name = info.preset if info is not None else "run"
    done = f"{snapshot.completed_iterations}"
    if info is not None:
        done += f" of {info.num_iterations}"
    how = "failed" if snapshot.state is RunState.FAILED else "ended"
    how = how if ended else "was left, still busy,"
    reward = snapshot.metrics.get("Train/mean_reward", math.nan)
    learnt = f", mean reward {reward:.4g}" if math.isfinite(reward) else ""
    lines = [f"{name} {how} after {done} iterations{learnt}"]
    if snapshot.failure is not None:
        lines.append(snapshot.failure.message)
    if info is not None:
        lines.append(f"  run directory  {info.run_dir}")
        lines.append(f"  checkpoint     {last_checkpoint(events)}")
    if not ended:
        lines.append("  what came after the last checkpoint is lost")
    return "\n".join(lines)
