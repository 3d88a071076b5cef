"""The command `run`: train a preset."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tui.commands.looks import choose_looks
from tui.commands.options import (
    CharsetName,
    Colours,
    DeviceChoice,
    Iterations,
    Logger,
    NumEnvs,
    OptionalPresetName,
    Processes,
    RunFolder,
    RunName,
    Seed,
    Settings,
    Terms,
    ThemeName,
    Worlds,
)
from tui.commands.refusing import refuse, refusing_bad_input
from tui.commands.terminal import has_screen
from tui.launcher import launch

if TYPE_CHECKING:
    from presets.ranks import Ranks


def run(
    preset: OptionalPresetName = None,
    env: Worlds = None,
    device: DeviceChoice = "auto",
    num_envs: NumEnvs = None,
    iterations: Iterations = None,
    seed: Seed = None,
    settings: Settings = None,
    terms: Terms = None,
    logger: Logger = None,
    processes: Processes = None,
    headless: Annotated[
        bool, typer.Option("--headless", help="Print a line an iteration, no full screen.")
    ] = False,
    run_dir: RunFolder = None,
    name: RunName = "",
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="RUN",
            help="Go on with a run: its folder, its name under runs/PRESET/, or latest. "
            "No PRESET is needed.",
        ),
    ] = None,
    theme: ThemeName = None,
    charset: CharsetName = None,
    color: Colours = None,
) -> None:
    """Train a preset, with a dashboard if there is a terminal."""
    choose_looks(theme, charset, color)
    check_folder_name(name, run_dir, resume)
    ranks = ranks_of(processes)
    # torchrun puts its processes into sessions of their own, out of the terminal's reach
    full_screen = not headless and not ranks.by_torchrun and has_screen()
    launcher = launch() if full_screen else None  # before anything heavy is imported
    with refusing_bad_input():
        from presets.build import new_session, resolve_device
        from presets.loader import load

        if preset is None:
            preset = base_preset(env, resume)
        chosen = resolve_device(device, ranks)
        flags = {
            "--env": env,
            "--num-envs": num_envs,
            "--iterations": iterations,
            "--seed": seed,
            "--logger": logger,
        }
        if resume is not None:
            from presets.resume import resumed_session

            session = resumed_session(
                preset, resume, chosen, settings or (), flags, terms or (), ranks
            )
        else:
            resolved = load(preset, settings or (), chosen.kind, flags, terms or ())
            session = new_session(resolved, chosen, run_dir, name, ranks)
    if not full_screen:
        from tui.headless import run_headless

        raise typer.Exit(run_headless(session))
    from tui.app import run_dashboard

    raise typer.Exit(run_dashboard(session, launcher=launcher))


def base_preset(env: str | None, resume: str | None = None) -> str:
    """Return the preset to start from where none is named: a run's own, or one for the worlds."""
    if env is None:
        from presets.files import names
        from presets.runs import find_run

        if resume:
            return str(find_run(resume, option="--resume") / "config.toml")
        what = "name a preset, or worlds with --env, or a run with --resume"
        refuse([what, f"presets: {', '.join(names())}"])
    from presets.adapters import base_for

    return base_for(env)


def ranks_of(processes: int | None) -> Ranks:
    """Who is to train; does not return on a rank other than 0, which does as that says."""
    with refusing_bad_input():
        from presets.ranks import wanted_ranks

        ranks = wanted_ranks(processes)
    if ranks.own.rank > 0:
        from presets.follow import main

        main()
    return ranks


def check_folder_name(name: str, run_dir: Path | None, resume: str | None = None) -> None:
    """Refuse a --name that is no part of a folder's name, or options that name the folder twice."""
    if resume is not None and (name or run_dir is not None):
        given = f"--name {name}" if name else f"--run-dir {run_dir}"
        refuse([f"--resume {resume} goes on in that run's own folder; leave out {given}"])
    if name and run_dir is not None:
        refuse([f"--name {name} and --run-dir {run_dir} both name the folder; give one of them"])
    if not re.fullmatch(r"[\w.+-]*", name):
        refuse([f"--name {name}: must be letters, digits, and any of . _ + -"])
