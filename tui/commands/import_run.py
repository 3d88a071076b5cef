"""The command `import`: go on with a training of RSL-RL's."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from tui.commands.options import (
    DeviceChoice,
    NumEnvs,
    RunFolder,
    RunName,
    Settings,
    Terms,
    as_typed,
)
from tui.commands.refusing import refusing_bad_input
from tui.commands.run import check_folder_name


def import_run(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            metavar="CHECKPOINT", help="A model_*.pt of RSL-RL 3 to 5.", callback=as_typed
        ),
    ],
    preset: Annotated[
        str,
        typer.Option("--preset", metavar="PRESET", help="What it was trained on, in our terms."),
    ],
    run_dir: RunFolder = None,
    name: RunName = "",
    joint_order: Annotated[
        str | None,
        typer.Option(
            "--joint-order",
            metavar="ORDER",
            help="The checkpoint's order of joints: isaac (as ours), depth-first (leg by leg, as "
            "Newton and MuJoCo count), or all names with commas between them.",
        ),
    ] = None,
    observation_order: Annotated[
        str | None,
        typer.Option(
            "--observation-order",
            metavar="TERMS",
            help="The checkpoint's order of observation terms, with commas between them.",
        ),
    ] = None,
    device: DeviceChoice = "auto",
    num_envs: NumEnvs = None,
    settings: Settings = None,
    terms: Terms = None,
) -> None:
    """Make a run from a checkpoint of RSL-RL, to go on with, play or export."""
    check_folder_name(name, run_dir)
    with refusing_bad_input():
        from presets.build import resolve_device
        from presets.importing import import_checkpoint
        from presets.loader import load

        chosen = resolve_device(device)
        flags = {"--num-envs": num_envs}
        resolved = load(preset, settings or (), chosen.kind, flags, terms or ())
        order = [term.strip() for term in (observation_order or "").split(",") if term.strip()]
        imported = import_checkpoint(
            checkpoint, resolved, chosen, run_dir, name, joint_order, order
        )
    done, total = imported.completed_iterations, resolved.preset.trainer.num_iterations
    print(f"{imported.folder}: a run of {resolved.preset.name} after {done} iterations")
    for note in imported.notes:
        print(f"note: {note}")
    more = f" --iterations {2 * done}" if done >= total else ""
    folder = shlex.quote(str(imported.folder))
    print(f"go on with it: ppo-tui run {shlex.quote(preset)} --resume {folder}{more}")
