"""What the command line changes in a preset: `--set key=value`, and options that mean a key."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from presets.problems import PresetError, locate
from presets.toml import Path, leaves

FLAGS: Mapping[str, Path] = {
    "--num-envs": ("env", "num_envs"),
    "--iterations": ("trainer", "num_iterations"),
    "--seed": ("trainer", "seed"),
    "--logger": ("trainer", "logger"),
    "--env": ("env", "adapter"),
}
"""Options that stand for a key."""


class Override(NamedTuple):
    """One change."""

    origin: str
    """`--set` or the option."""
    table: dict[str, Any]
    """The change as a table that holds nothing else."""


def collect(settings: Iterable[str], flags: Mapping[str, Any]) -> list[Override]:
    """Read all changes of a command line, in order.

    Args:
        settings: texts such as `trainer.gamma=0.98`, with a TOML key and value; what is no TOML
            value is taken as a text.
        flags: values of the options in `FLAGS`; None where one was not given.

    Raises:
        PresetError: a text that is no `key=value`, or two different values for one key.
    """
    overrides = [parse(text) for text in settings]
    for flag, value in flags.items():
        if value is not None:
            overrides.append(Override(flag, _nest(FLAGS[flag], value)))
    given: dict[Path, tuple[Any, str]] = {}
    problems = []
    for override in overrides:
        for path, value in leaves(override.table):
            here = locate(path, value, override.origin)
            other, there = given.setdefault(path, (value, here))
            if (type(other), other) != (type(value), value):
                problems.append(f"{there} and {here} disagree; give one of them")
    if problems:
        raise PresetError(problems)
    return overrides


def parse(text: str) -> Override:
    """Read one `key=value`.

    Raises:
        PresetError: it is none.
    """
    key, equals, value = text.partition("=")
    path = _parse_key(key.strip())
    if not equals or path is None:
        raise PresetError(
            [f"--set {text}: must be key=value with a dotted key, such as trainer.gamma=0.98"]
        )
    return Override("--set", _nest(path, _parse_value(value.strip(), text)))


def _parse_key(key: str) -> Path | None:
    """Return the parts of a dotted key, some perhaps in quotes; None if it is none."""
    try:
        table: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return None
    path: Path = ()
    while isinstance(table, dict):
        if len(table) != 1:
            return None
        (part, table), *_ = table.items()
        path += (part,)
    return path


def _parse_value(value: str, text: str) -> object:
    if not value:
        raise PresetError([f'--set {text}: has no value; an empty text is written ""'])
    try:
        table = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError as error:
        if value[0] in "\"'[{":
            what = str(error).partition(" (at ")[0]
            raise PresetError([f"--set {text}: not a TOML value: {what}"]) from None
        return _number(value) if value[0] in "+-.0123456789" else value
    return table["value"] if len(table) == 1 else value


def _number(value: str) -> float | str:
    """Read numbers such as .5 and 5. that TOML does not know; leave anything else a text."""
    try:
        return float(value)
    except ValueError:
        return value


def _nest(path: Path, value: object) -> dict[str, Any]:
    table = {path[-1]: value}
    for part in reversed(path[:-1]):
        table = {part: table}
    return table
