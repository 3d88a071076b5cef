"""A run of the past in words, for the menu."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from textual.content import Content

from trainer.summary import RunSummary
from tui.draw.numbers import duration, number
from tui.farewell import continuing_command
from tui.screens.labels import labelled_rows

LIVE = ("starting", "running", "paused", "stopping")

SHORT = {"finished": "done", "stopped": "stop", "failed": "FAIL", "killed": "KILL", "unknown": "?"}
"""States of runs in four letters; those that want a person's eye in capitals."""


def is_live(run: RunSummary) -> bool:
    """Whether a process trains it right now."""
    return run.pid is not None and run.state in LIVE


def run_line(run: RunSummary, now: dt.datetime) -> str:
    """Name a run in a short line: how it stands, how long ago it began, and what it trains."""
    state = "live" if is_live(run) else SHORT.get(run.state, run.state[:4])
    return f"{state:<4} {age(run, now):>4} {run.preset}"


def age(run: RunSummary, now: dt.datetime) -> str:
    """Write how long ago a run began: "5m", "3h", "12d"."""
    if run.started is None:
        return "?"
    seconds = max(0.0, (now - run.started).total_seconds())
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "now"


def more_iterations(run: RunSummary) -> int | None:
    """The total that a run which is done goes on to; None where it is not done."""
    if run.iterations is None or run.num_iterations is None or run.iterations < run.num_iterations:
        return None
    return 2 * run.iterations


def own_device(run: RunSummary, machine: str) -> str:
    """Name the device that a run was started on, where `auto` would choose another; "" else.

    Args:
        run: what its folder says.
        machine: the device that `auto` chooses here, as torch names it.
    """
    if run.info is None or run.info.device == machine:
        return ""
    kind = run.info.device.partition(":")[0]
    if run.info.world_size > 1:  # each process has a GPU of its own number
        return "" if kind == machine.partition(":")[0] else kind
    return run.info.device


def resume_line(run: RunSummary, machine: str = "") -> str:
    """Write the command that goes on with a run as it was started.

    Args:
        run: what its folder says.
        machine: the device that `auto` chooses here; unset: no device is named.
    """
    device = own_device(run, machine) if machine else ""
    return continuing_command(run.preset, run.folder, run.info, more_iterations(run), device)


def run_text(run: RunSummary, now: dt.datetime, width: int) -> Content:
    """Describe a run.

    Args:
        run: what its folder says.
        now: the present time.
        width: columns to fold to.
    """
    rows: dict[str, str] = {"run": run.folder.name, "state": run.state}
    if is_live(run):
        rows["state"] += f", in process {run.pid}: w watches it"
    elif run.failure:
        rows["failed"] = run.failure
    rows["iterations"] = f"{_shown(run.iterations)} of {_shown(run.num_iterations)}"
    if (total := more_iterations(run)) is not None and not is_live(run):
        rows["iterations"] += f"; to go on means to {total:,}"
    if run.last_reward is not None and run.best_reward is not None:
        last, best = number(run.last_reward).strip(), number(run.best_reward).strip()
        rows["mean reward"] = f"{last}, at best {best}"
    if run.env_steps is not None:
        rows["env steps"] = number(run.env_steps).strip()
    if run.elapsed is not None:
        rows["trained for"] = duration(run.elapsed)
    if run.started is not None:
        rows["started"] = f"{run.started:%Y-%m-%d %H:%M} UTC, {age(run, now)} ago"
    rows["folder"] = str(run.folder)
    return Content("\n").join(_lines(rows, width))


def _lines(rows: dict[str, str], width: int) -> Iterator[Content]:
    for label, text in rows.items():
        yield from labelled_rows(label, " ".join(text.split()), width)


def _shown(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"
