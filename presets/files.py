"""Finding and reading preset files: ours, those of the current folder, and the user's own."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from presets.paths import typed
from presets.problems import NULL_BYTES, PresetError, did_you_mean, not_utf8

OURS = Path(__file__).parent


@dataclass(frozen=True)
class PresetFile:
    """Where a preset is written."""

    path: Path
    label: str
    """How messages call the file: its bare name if it is ours, else its path."""

    @property
    def name(self) -> str:
        """The name by which it is asked for."""
        return self.path.stem

    @property
    def is_ours(self) -> bool:
        """Whether it came with this program."""
        return self.path.parent.resolve() == OURS


def folders() -> list[Path]:
    """Where names are looked up, the first that has one wins: here, the user's folder, ours."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return [Path("presets"), Path(config) / "ppo-tui" / "presets", OURS]


def files() -> list[PresetFile]:
    """All presets that can be asked for by name, sorted by it."""
    found: dict[str, PresetFile] = {}
    for file in _all_files():
        found.setdefault(file.name, file)
    return [found[name] for name in sorted(found)]


def names() -> list[str]:
    """All names that `find` knows, sorted."""
    return [file.name for file in files()]


def find(name: str) -> PresetFile:
    """Return the file of a preset, given by name or as a path to a .toml file.

    Raises:
        PresetError: there is none.
    """
    if _is_path(name):
        return _at_path(typed(name), name)
    for file in _all_files():
        if file.name == name:
            return file
    known = names()
    raise PresetError(
        [f'no preset "{name}"{did_you_mean(name, known)}', f"presets: {', '.join(known)}"]
    )


def read(file: PresetFile) -> dict[str, Any]:
    """Read a preset's file as it stands.

    Raises:
        PresetError: it cannot be read, or is not TOML; the message names the line.
    """
    try:
        text = file.path.read_text(encoding="utf-8-sig")
        if "\0" in text:
            raise PresetError([f"{file.label}: {NULL_BYTES}"])
        return tomllib.loads(text)
    except OSError as error:
        raise PresetError([f"{file.label}: cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        raise PresetError([f"{file.label}: {not_utf8(error)}"]) from None
    except tomllib.TOMLDecodeError as error:
        what, _, where = str(error).partition(" (at ")
        where = where.rstrip(")").replace("end of document", "end of the file")
        raise PresetError([f"{file.label}: {where}: not TOML: {what}"]) from None


def chain(name: str) -> list[tuple[PresetFile, dict[str, Any]]]:
    """Read a preset and all that it extends, the first ancestor first.

    A preset may extend one of its own name that it hides: mine that extends ours.

    Raises:
        PresetError: a file is missing or cannot be read, or presets extend each other in a circle.
    """
    first = find(name)
    links = [(first, read(first))]
    while (base := links[-1][1].get("extends")) is not None:
        child = links[-1][0]
        if not isinstance(base, str):
            raise PresetError([f"{child.label}: extends = {base!r}: must be a preset's name"])
        file = _find_base(base, child, [file for file, _ in links])
        links.append((file, read(file)))
    return links[::-1]


def _find_base(base: str, child: PresetFile, seen: list[PresetFile]) -> PresetFile:
    taken = {file.path.resolve() for file in seen}
    if _is_path(base):
        candidates = [_at_path(child.path.parent / typed(base), base, child.label)]
    else:
        candidates = [file for file in _all_files() if file.name == base]
    free = [file for file in candidates if file.path.resolve() not in taken]
    if free:
        return free[0]
    if candidates:
        circle = " -> ".join([*(file.label for file in seen), candidates[0].label])
        raise PresetError([f"presets extend each other in a circle: {circle}"])
    known = names()
    raise PresetError(
        [
            f'{child.label}: extends = "{base}": no such preset{did_you_mean(base, known)}',
            f"presets: {', '.join(known)}",
        ]
    )


def _all_files() -> Iterator[PresetFile]:
    for folder in folders():
        if folder.is_dir():
            ours = folder.resolve() == OURS
            for path in sorted(folder.glob("*.toml")):
                yield PresetFile(path, path.name if ours else str(path))


def _is_path(name: str) -> bool:
    return name.endswith(".toml") or os.sep in name


def _at_path(path: Path, name: str, whose: str = "") -> PresetFile:
    before = f'{whose}: extends = "{name}": ' if whose else f"{name}: "
    if path.is_dir():
        inside = path / "config.toml"
        hint = f"; did you mean {inside}?" if inside.is_file() else ""
        raise PresetError([f"{before}is a folder, not a preset{hint}"])
    if not path.is_file():
        raise PresetError([f"{before}no such file"])
    return PresetFile(path, path.name if path.parent.resolve() == OURS else str(path))
