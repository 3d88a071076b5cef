"""The command `play`: watch a trained policy act, or count its episodes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tui.commands.looks import choose_looks
from tui.commands.options import CharsetName, Colours, DeviceChoice, Terms, ThemeName
from tui.commands.refusing import refuse, refusing_bad_input
from tui.commands.terminal import has_screen
from tui.play.staging import WORLDS_ON_SCREEN, names_of, performance_of, player_of

if TYPE_CHECKING:
    from presets.build import Device
    from presets.trained import Trained

MOST_WORLDS = 64
"""Worlds that play side by side without a screen, where nothing else is asked for."""

Run = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run's folder or name, PRESET/latest, latest, or a checkpoint of a run.",
    ),
]


def play(
    run: Run,
    headless: Annotated[
        bool, typer.Option("--headless", help="Print a table of episodes, no full screen.")
    ] = False,
    episodes: Annotated[
        int | None, typer.Option("--episodes", help="Episodes to count (20); no full screen.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of a table; no full screen.")
    ] = False,
    num_envs: Annotated[
        int | None, typer.Option("--num-envs", help="Worlds that play side by side.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of the worlds; the run's own where unset.")
    ] = None,
    device: DeviceChoice = "cpu",
    terms: Terms = None,
    theme: ThemeName = None,
    charset: CharsetName = None,
    color: Colours = None,
) -> None:
    """Watch a trained policy act, and steer it; or count its episodes.

    It acts without noise, nobody pushes it, and no curriculum moves.
    """
    choose_looks(theme, charset, color)
    for name, value in {"--episodes": episodes, "--num-envs": num_envs}.items():
        if value is not None and value < 1:
            refuse([f"{name} {value}: must be at least 1"])
    if seed is not None and not 0 <= seed < 2**32:
        refuse([f"--seed {seed}: must be from 0 to {2**32 - 1}"])
    with refusing_bad_input():
        from presets.build import resolve_device
        from presets.trained import find_trained

        chosen = resolve_device(device)
        trained = find_trained(run, terms or ())
        for sentence in trained.notes:
            print(f"note: {sentence}", file=sys.stderr)
        if headless or json or episodes is not None or not has_screen():
            _count(trained, chosen, episodes or 20, num_envs, seed, as_json=json)
            return
    raise typer.Exit(_show(trained, chosen, num_envs or WORLDS_ON_SCREEN, seed))


def _show(trained: Trained, device: Device, num_envs: int, seed: int | None) -> int:
    from tui.play.app import run_play

    return run_play(performance_of(trained, device, num_envs, seed), names_of(trained))


def _count(
    trained: Trained,
    device: Device,
    episodes: int,
    num_envs: int | None,
    seed: int | None,
    *,
    as_json: bool,
) -> None:
    from trainer.playing import play_episodes
    from tui.play import table

    worlds = min(num_envs or MOST_WORLDS, episodes)
    player = player_of(trained, device, worlds, seed)
    played = play_episodes(player, episodes)
    preset = trained.resolved.preset
    about = {
        "preset": preset.name,
        "run": str(trained.folder),
        "checkpoint": trained.checkpoint.name,
        "iterations": trained.state.get("completed_iterations"),
        "seed": preset.trainer.seed if seed is None else seed,
        "episodes": episodes,
        "worlds": worlds,
    }
    write = table.as_json if as_json else table.as_table
    print(write(about, played, player.env.step_dt))
    player.env.close()
