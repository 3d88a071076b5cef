"""Processes that tests leave behind: a run outlives its terminal, its parent, and a timeout."""

import contextlib
import os
import signal
import time
import uuid
from pathlib import Path


def new_mark(name):
    """A variable that nobody else has, to be set while processes are started."""
    return f"{name}={uuid.uuid4()}"


MARK = new_mark("PPO_TUI_TESTS")
"""For all processes that this one starts. It has none itself: the system keeps the environment
that a process was started with."""


def processes_with(mark):
    """Numbers of the processes that were started with a variable in their environment."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


def kill_all(mark):
    """Kill all processes with a mark, and those that they start meanwhile."""
    while marked := list(processes_with(mark)):
        for pid in marked:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
