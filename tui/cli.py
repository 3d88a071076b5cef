"""The command line: what `ppo-tui` understands. Opens nothing heavy, so help is there at once."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from tui.commands import doctor, export, import_run, play, presets, run, runs, watch
from tui.commands.looks import choose_looks
from tui.commands.mistyped import Commands
from tui.commands.once import OnceEach
from tui.commands.options import CharsetName, Colours, ThemeName
from tui.commands.refusing import refuse
from tui.commands.terminal import has_screen
from tui.launcher import launch
from tui.output import standard_streams

app = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def menu(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    theme: ThemeName = None,
    charset: CharsetName = None,
    color: Colours = None,
) -> None:
    """Train robots with PPO in thousands of simulated worlds, and watch every stage of it.

    Without a command: a menu of the presets.
    """
    if version:
        from importlib.metadata import version as version_of

        print(version_of("ppo-tui"))
        raise typer.Exit
    choose_looks(theme, charset, color)
    if ctx.invoked_subcommand is not None:
        return
    if not has_screen():
        refuse(["the menu needs a terminal; without one: ppo-tui presets, ppo-tui run PRESET"])
    launcher = launch()  # before anything heavy is imported
    from tui.opening import run_menu

    raise typer.Exit(run_menu(launcher=launcher))


for command in (run.run, presets.presets, presets.show, watch.watch, play.play, export.export):
    app.command(cls=OnceEach)(command)
app.command("import", cls=OnceEach)(import_run.import_run)
app.command(cls=OnceEach)(doctor.doctor)
app.add_typer(runs.app, name="runs")


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: sys.exit(128 + number))
    with standard_streams():
        app(prog_name="ppo-tui")
