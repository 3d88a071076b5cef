"""The command line: what `ppo-tui` understands. Opens nothing heavy, so help is there at once."""

from __future__ import annotations

import signal
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tui.commands import doctor, export, import_run, play, presets, run, runs, watch
from tui.commands.once import OnceEach
from tui.commands.refusing import refuse
from tui.commands.terminal import has_screen
from tui.launcher import launch
from tui.output import standard_streams


class Commands(TyperGroup):
    """The commands, with a good word for those who mistype one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - typer's own types
        """Find the command that was asked for."""
        if self.get_command(ctx, args[0]) is None:
            self._refuse(ctx, args[0])
        return super().resolve_command(ctx, args)

    def _refuse(self, ctx: Any, wrong: str) -> None:  # noqa: ANN401 - typer's own type
        from presets.files import names
        from presets.problems import did_you_mean

        commands, presets = self.list_commands(ctx), names()
        hint = did_you_mean(wrong, commands)
        if not hint and (near := did_you_mean(wrong, presets)):
            hint = near.replace("mean ", "mean run ")
        ctx.fail(
            f'no command "{wrong}"{hint}\n'
            f"commands: {', '.join(commands)}\npresets: {', '.join(presets)}"
        )


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
) -> None:
    """Train robots with PPO in thousands of simulated worlds, and watch every stage of it.

    Without a command: a menu of the presets.
    """
    if version:
        from importlib.metadata import version as version_of

        print(version_of("ppo-tui"))
        raise typer.Exit
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
