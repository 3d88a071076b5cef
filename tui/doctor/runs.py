"""Runs that train right now, and whether they can be watched."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from presets.runs import runs
from trainer.address import NAME
from trainer.rundir import writer
from tui.doctor.findings import Finding, Verdict


def live_runs() -> Iterator[Finding]:
    """Each live run under `runs/` with its socket, and sockets that were left over."""
    live = 0
    for folder in runs():
        socket = folder / NAME
        pid = writer(folder)
        if pid is None:
            if socket.exists():
                yield Finding(
                    f"{folder.parent.name}/{folder.name}",
                    "its process is gone without a farewell",
                    "watch shows its record, --resume goes on from its last checkpoint",
                    Verdict.NOTE,
                    f"ppo-tui watch {folder.parent.name}/{folder.name}",
                )
            continue
        live += 1
        yield _live(f"{folder.parent.name}/{folder.name}", pid, socket)
    if not live:
        yield Finding("live runs", "none under runs/ here")


def _live(name: str, pid: int, socket: os.PathLike[str]) -> Finding:
    trains = f"trains in process {pid}"
    try:
        about = os.stat(socket)
    except OSError:
        return Finding(
            name, f"{trains}, no socket", "cannot be watched live", Verdict.NOTE,
            f"ppo-tui watch {name} --replay shows its record",
        )  # fmt: skip
    if about.st_uid != os.getuid():
        return Finding(name, f"{trains} of another user", "only its owner can watch it live")
    if stat.S_ISSOCK(about.st_mode) and about.st_mode & 0o077:
        return Finding(
            name, f"{trains}, its socket is open to others", "they could steer it",
            Verdict.PROBLEM, f"chmod 600 {os.fspath(socket)}",
        )  # fmt: skip
    return Finding(name, trains, f"ppo-tui watch {name} shows it")
