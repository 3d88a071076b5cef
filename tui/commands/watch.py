"""The command `watch`: a run of another terminal, live or as it was recorded."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tui.commands.refusing import refuse, refusing_bad_input
from tui.commands.terminal import has_screen
from tui.launcher import launch

if TYPE_CHECKING:
    from tui.remote.session import RemoteSession

START_PATIENCE = 30.0
"""Seconds in which a run that has just begun may open its socket."""


def watch(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run's folder, its name, or latest.")
    ] = "latest",
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Look, but give no commands.")
    ] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Show what is recorded, even while it trains.")
    ] = False,
) -> None:
    """Show a run that trains elsewhere, live and with control; one that is over is replayed."""
    if not has_screen():
        refuse(["watch needs a terminal; without one: ppo-tui runs"])
    launcher = launch()  # before anything heavy is imported
    with refusing_bad_input():
        from presets.runs import find_run

        folder = find_run(run)
    session = None if replay else attached(folder, read_only=read_only)
    from trainer.recording import Recording
    from tui.remote.app import run_watch

    raise typer.Exit(run_watch(session or Recording(folder), launcher))


def attached(folder: Path, *, read_only: bool) -> RemoteSession | None:
    """Reach the session that trains in a folder; None where no process does."""
    from trainer import address
    from trainer.recording import standing
    from tui.remote.session import Refused, RemoteSession

    deadline = time.monotonic() + START_PATIENCE
    while True:
        connection = address.connect(folder)
        if connection is not None:
            try:
                return RemoteSession(folder, connection, only_reads=read_only)
            except Refused as error:
                refuse([f"{folder}: {error}"])
            except OSError:
                connection.close()
        if standing(folder).is_over:
            address.remove(folder)  # left over from a process that was killed
            return None
        if time.monotonic() > deadline:
            refuse([f"{folder}: trains, but cannot be reached; --replay shows its record"])
        time.sleep(0.2)
