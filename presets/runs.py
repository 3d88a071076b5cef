"""Finding a run by what a person calls it."""

from __future__ import annotations

import os
from pathlib import Path

from presets.paths import typed
from presets.problems import PresetError, did_you_mean
from trainer.rundir import RUNS

LATEST = "latest"
"""Stands for the newest run."""


def runs(preset: str | None = None) -> list[Path]:
    """Return the folders of all runs under `runs/`, the newest first.

    Args:
        preset: the preset they are filed under; unset: any.
    """
    folders = [path.parent for path in RUNS.glob("*/*/config.toml")]
    # names begin with the time of their start
    return sorted(
        (folder for folder in folders if preset in (None, folder.parent.name)),
        key=lambda folder: (folder.name, folder.parent.name),
        reverse=True,
    )


def require_readable() -> None:
    """Refuse a `runs/` in which nothing can be found; where there is none there are no runs.

    Raises:
        PresetError: it is no folder, or cannot be read.
    """
    try:
        with os.scandir(RUNS):
            return
    except FileNotFoundError:
        return
    except OSError as error:
        raise PresetError([f"{RUNS}: cannot be read: {error.strerror}"]) from None


def find_run(name: str, preset: str | None = None, option: str = "") -> Path:
    """Return the folder of a run, by what a person calls it.

    Args:
        name: the run's folder, its name under `runs/<preset>/`, that with the preset before it
            (`<preset>/<name>`), `latest`, or `<preset>/latest`.
        preset: the preset that its name is looked up under; unset: any.
        option: what the name was given with, such as `--resume`; messages begin with it.

    Raises:
        PresetError: there is no such run, or there are several.
    """
    said = f"{option} {name}".strip()
    if name.endswith(f"/{LATEST}") and not Path(name).exists():
        preset, name = name.removesuffix(f"/{LATEST}"), LATEST
    if name == LATEST:
        require_readable()
        newest = runs(preset)
        if not newest:
            raise PresetError([f"{said}: {RUNS / (preset or '')} holds no run"])
        return newest[0]
    if name and (folder := typed(name)).exists():
        return _checked(folder, said)
    require_readable()
    named = [
        folder
        for folder in runs(preset)
        if name in (folder.name, f"{folder.parent.name}/{folder.name}")
    ]
    if len(named) > 1:
        which = " or ".join(f"{folder.parent.name}/{folder.name}" for folder in named)
        raise PresetError([f"{said}: there are several; which one? {which}"])
    if named:
        return named[0]
    if name and (folder := RUNS / (preset or "") / name).exists():
        return _checked(folder, said)
    raise PresetError([f'{said}: no run "{name}"{_hint(name, preset)}'])


def _checked(folder: Path, said: str) -> Path:
    """Return a path that a person wrote out, if it is a run's folder."""
    if folder.is_file():
        raise PresetError([f"{said}: is a file; give the run's folder"])
    if not (folder / "config.toml").is_file():
        inside = sorted(path.parent for path in folder.glob("*/config.toml"))
        hint = f"; did you mean {inside[-1]}?" if inside else ""
        raise PresetError([f"{said}: holds no run, there is no config.toml{hint}"])
    return folder


def _hint(name: str, preset: str | None) -> str:
    known = [folder.name for folder in runs(preset)]
    parts = [folder for folder in known if name and name in folder]
    if parts:
        return f"; did you mean {parts[0]}?"
    if near := did_you_mean(name, known):
        return near
    return f"; the newest: {known[0]}" if known else f"; {RUNS / (preset or '')} holds none"
