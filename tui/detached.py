"""A training whose terminal has gone: it goes on in the same process, in the same thread.

Nothing is drawn and nothing is read any more. The main thread sleeps until the session ends; a
signal stops it as it would with a screen, and `ppo-tui watch` shows it from another terminal.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from trainer.rundir import RUNS, RunDir
from trainer.serving import Server
from trainer.telemetry import Command, SessionView
from tui.exit_codes import exit_code
from tui.launcher import Launcher
from tui.stopping import listening

LOOK_INTERVAL = 1.0
"""Seconds after which a signal is followed at the latest."""


class DetachableSession(SessionView, Protocol):
    """A session that can do without its screen."""

    @property
    def run_dir(self) -> RunDir:
        """Where it keeps its run."""
        ...

    def note(self, kind: str, text: str) -> None:
        """Keep an event with the run's, and in its log."""
        ...

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; returns whether it has come."""
        ...


def carry_on(session: DetachableSession, launcher: Launcher | None, *, by_hand: bool) -> int:
    """Train on without a terminal, and return the exit code.

    Args:
        session: the session, started.
        launcher: the process that waits in the terminal, if there is one.
        by_hand: whether a person asked for it; the shell gets its terminal back then. Where the
            terminal was lost, the launcher stays and ends with the exit code.
    """
    watch = watch_command(session.run_dir.path)
    with listening() as signals:
        with contextlib.suppress(OSError):  # the terminal may be there, or not
            print(f"training goes on as process {os.getpid()}\n  to watch it    {watch}")
            print(f"  to stop it     kill {os.getpid()}", flush=True)
        lead_streams_to(session.run_dir.log)
        with contextlib.suppress(OSError):
            if launcher is None:
                os.setsid()
            elif by_hand:
                launcher.detach()
            else:
                launcher.leave_session()
        why = "detached by a person" if by_hand else "terminal lost"
        session.note("terminal", f"{why}, training goes on; {watch}")
        if not by_hand:
            session.command(Command.LET_GO)
        while not session.join(LOOK_INTERVAL):
            if signals.first is not None:
                session.command(Command.STOP_NOW)
    if signals.first is not None:
        return 128 + signals.first
    return exit_code(session.snapshot())


@contextlib.contextmanager
def served(session: DetachableSession) -> Iterator[None]:
    """Let a session be watched from other terminals; one that cannot be says so and trains on."""
    server = None
    try:
        server = Server(session, session.run_dir.folder)
    except OSError as error:
        session.note("alert", f"no other terminal can watch this run: {error}")
    try:
        yield
    finally:
        if server is not None:
            server.close()


def watch_command(folder: Path) -> str:
    """Return the command that shows a run from another terminal."""
    filed = folder.parent.parent == RUNS
    return shlex.join(["ppo-tui", "watch", folder.name if filed else str(folder)])


def lead_streams_to(log: Path) -> None:
    """Let nothing lead to the terminal any more: input is empty, output goes to the log."""
    with contextlib.suppress(OSError):
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
    try:
        output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError:
        output = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.close(output)
    for number in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
