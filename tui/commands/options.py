"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def as_typed(path: Path | None) -> Path | None:
    """Write out a path's `~`."""
    from presets.paths import typed

    return None if path is None else typed(path)


PresetName = Annotated[
    str, typer.Argument(metavar="PRESET", help="Name of a preset, or path of a .toml file.")
]
OptionalPresetName = Annotated[
    str | None,
    typer.Argument(
        metavar="PRESET",
        help="Name of a preset, or path of a .toml file; may be left out with --env.",
    ),
]
Worlds = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="WORLDS",
        help="Worlds of another program, such as gymnasium:CartPole-v1; see docs/adapters.md.",
    ),
]
DeviceChoice = Annotated[
    str, typer.Option("--device", help="auto, cpu, cuda or cuda:i.", metavar="DEVICE")
]
NumEnvs = Annotated[
    int | None, typer.Option("--num-envs", help="N, the number of worlds of each process.")
]
Processes = Annotated[
    int | None,
    typer.Option(
        "--processes", help="Processes that train together, each on its own GPU or share of cores."
    ),
]
Iterations = Annotated[
    int | None, typer.Option("--iterations", help="Iterations of the whole run.")
]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed; one is drawn where unset.")]
Logger = Annotated[
    str | None,
    typer.Option(
        "--logger",
        metavar="LOGGER",
        help="Who else gets the metrics: tensorboard, wandb (both), or none.",
    ),
]
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
RunFolder = Annotated[
    Path | None,
    typer.Option(
        "--run-dir", metavar="DIR", help="The run's own folder, new or empty.", callback=as_typed
    ),
]
RunName = Annotated[
    str,
    typer.Option("--name", metavar="NAME", help="Last part of the folder's name under runs/."),
]
ThemeName = Annotated[
    str | None,
    typer.Option(
        "--theme", metavar="THEME", help="dark, light, or a theme of Textual, such as ansi-dark."
    ),
]
CharsetName = Annotated[
    str | None, typer.Option("--charset", metavar="CHARSET", help="braille, block or ascii.")
]
Colours = Annotated[
    str | None,
    typer.Option(
        "--color",
        metavar="COLORS",
        help="auto, 16, 256 or truecolor, for a terminal that knows more than it says.",
    ),
]
