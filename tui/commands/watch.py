"""The command `watch`: a run of another terminal, live or as it was recorded."""

from __future__ import annotations

from typing import Annotated

import typer

from tui.commands.looks import choose_looks
from tui.commands.options import CharsetName, Colours, ThemeName
from tui.commands.refusing import refuse, refusing_bad_input
from tui.commands.terminal import has_screen
from tui.launcher import launch


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
    theme: ThemeName = None,
    charset: CharsetName = None,
    color: Colours = None,
) -> None:
    """Show a run that trains elsewhere, live and with control; one that is over is replayed."""
    choose_looks(theme, charset, color)
    if not has_screen():
        refuse(["watch needs a terminal; without one: ppo-tui runs"])
    launcher = launch()  # before anything heavy is imported
    with refusing_bad_input():
        from presets.runs import find_run

        folder = find_run(run)
    from trainer.recording import Recording
    from tui.remote.app import run_watch
    from tui.remote.attaching import attached
    from tui.remote.session import Refused

    try:
        session = None if replay else attached(folder, read_only=read_only)
    except Refused as error:
        refuse([str(error)])
    raise typer.Exit(run_watch(session or Recording(folder), launcher))
