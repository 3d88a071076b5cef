"""The commands. Each imports what it needs when it runs, so help and menu are there at once."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

PLAIN_TERMINALS = ("", "dumb", "unknown")
"""Values of TERM that promise no full-screen mode."""

BAD_INPUT = 2
"""Exit code for what a person can put right on the command line or in a file."""


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

PresetName = Annotated[
    str, typer.Argument(metavar="PRESET", help="Name of a preset, or path of a .toml file.")
]
DeviceChoice = Annotated[
    str, typer.Option("--device", help="auto, cpu, cuda or cuda:i.", metavar="DEVICE")
]
NumEnvs = Annotated[int | None, typer.Option("--num-envs", help="N, the number of worlds.")]
Iterations = Annotated[
    int | None, typer.Option("--iterations", help="Iterations of the whole run.")
]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed; one is drawn where unset.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change any key; can be given many times."),
]

Terms = Annotated[
    list[Path] | None,
    typer.Option(
        "--terms", metavar="FILE", help="Python file with terms of your own; see docs/new_task.md."
    ),
]


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
    from tui.app import run_menu

    raise typer.Exit(run_menu())


@app.command()
def run(
    preset: PresetName,
    device: DeviceChoice = "auto",
    num_envs: NumEnvs = None,
    iterations: Iterations = None,
    seed: Seed = None,
    settings: Settings = None,
    terms: Terms = None,
    headless: Annotated[
        bool, typer.Option("--headless", help="Print a line an iteration, no full screen.")
    ] = False,
    run_dir: Annotated[
        Path | None,
        typer.Option("--run-dir", metavar="DIR", help="The run's own folder, new or empty."),
    ] = None,
    name: Annotated[
        str,
        typer.Option("--name", metavar="NAME", help="Last part of the folder's name under runs/."),
    ] = "",
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="RUN",
            help="Go on with a run: its folder, its name under runs/PRESET/, or latest.",
        ),
    ] = None,
) -> None:
    """Train a preset, with a dashboard if there is a terminal."""
    check_folder_name(name, run_dir, resume)
    with refusing_bad_input():
        from presets.build import new_session, resolve_device
        from presets.loader import load

        chosen = resolve_device(device)
        flags = {"--num-envs": num_envs, "--iterations": iterations, "--seed": seed}
        if resume is not None:
            from presets.resume import resumed_session

            session = resumed_session(preset, resume, chosen, settings or (), flags, terms or ())
        else:
            resolved = load(preset, settings or (), chosen.kind, flags, terms or ())
            session = new_session(resolved, chosen, run_dir, name)
    if headless or not has_screen():
        from tui.headless import run_headless

        raise typer.Exit(run_headless(session))
    from tui.app import run_dashboard

    raise typer.Exit(run_dashboard(session))


@app.command()
def presets() -> None:
    """List the presets: ours, those in ./presets, and your own."""
    from presets.files import files
    from presets.loader import describe

    found = files()
    width = max(len(file.name) for file in found)
    for file in found:
        where = "" if file.is_ours else f"  ({file.label})"
        print(f"{file.name:<{width}}  {describe(file)}{where}".rstrip())


@app.command()
def show(
    preset: PresetName,
    device: DeviceChoice = "auto",
    num_envs: NumEnvs = None,
    iterations: Iterations = None,
    seed: Seed = None,
    settings: Settings = None,
    terms: Terms = None,
) -> None:
    """Show every value of a preset, and its origin."""
    with refusing_bad_input():
        from presets.build import resolve_device
        from presets.loader import load, to_toml
        from presets.time_scales import time_scales

        chosen = resolve_device(device)
        flags = {"--num-envs": num_envs, "--iterations": iterations, "--seed": seed}
        resolved = load(preset, settings or (), chosen.kind, flags, terms or ())
    print(f"# {resolved.file.label} on {chosen.name}; behind each value its origin")
    print("#", *time_scales(resolved.preset.env), sep="\n# ", end="\n\n")
    print(to_toml(resolved.preset, resolved.origins), end="")


def has_screen() -> bool:
    """Whether a full-screen program can run here: a terminal on both ends that knows how."""
    ends = (sys.stdin, sys.stdout)
    terminal = all(end is not None and not end.closed and end.isatty() for end in ends)
    return terminal and os.environ.get("TERM", "") not in PLAIN_TERMINALS


def check_folder_name(name: str, run_dir: Path | None, resume: str | None = None) -> None:
    """Refuse a --name that is no part of a folder's name, or options that name the folder twice."""
    if resume is not None and (name or run_dir is not None):
        given = f"--name {name}" if name else f"--run-dir {run_dir}"
        refuse([f"--resume {resume} goes on in that run's own folder; leave out {given}"])
    if name and run_dir is not None:
        refuse([f"--name {name} and --run-dir {run_dir} both name the folder; give one of them"])
    if not re.fullmatch(r"[\w.+-]*", name):
        refuse([f"--name {name}: must be letters, digits, and any of . _ + -"])


@contextlib.contextmanager
def refusing_bad_input() -> Iterator[None]:
    """Turn what a person can put right into sentences and exit code 2."""
    from presets.problems import PresetError

    try:
        yield
    except PresetError as error:
        refuse(error.messages)


def refuse(messages: list[str]) -> NoReturn:
    """Say what is wrong and leave with code 2."""
    for message in messages:
        print(message, file=sys.stderr)
    raise typer.Exit(BAD_INPUT)


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: sys.exit(128 + number))
    app(prog_name="ppo-tui")
