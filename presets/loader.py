"""From a preset's name and the changes of a command line to settings that are known to be right.

Nothing is allocated, imported from the engines, or written to disk here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any, Literal

from pydantic import ValidationError

from presets import files, overrides, term_files
from presets.adapters import run_name
from presets.files import PresetFile
from presets.layers import Layer, Layers
from presets.older_keys import translated
from presets.problems import PresetError, did_you_mean, locate, sentences
from presets.schema import Preset
from presets.toml import Path, format_key, format_table, leaves
from sim.catalog import check_terms
from sim.symmetry import check_symmetry
from sim.tasks import TASKS
from trainer.observation_sets import unknown_groups

DEFAULT = "default"
_CPU = " [cpu]"


@dataclass(frozen=True)
class Resolved:
    """A preset with all its layers merged and checked."""

    preset: Preset
    file: PresetFile
    """The file it was asked for by."""
    origins: Mapping[str, str]
    """Dotted key to the origin of its value: `default`, a file, a file's [cpu] table, `--set`, or
    the option that stands for the key."""
    own_terms: tuple[FilePath, ...] = ()
    """A person's own term files, which stand beside ours."""
    notes: tuple[str, ...] = ()
    """What was read otherwise than it is written, a sentence each."""

    @property
    def uses_cpu_table(self) -> bool:
        """Whether a [cpu] table set any value."""
        return any(origin.endswith(_CPU) for origin in self.origins.values())


def load(
    name: str,
    settings: Iterable[str] = (),
    device: Literal["cpu", "cuda"] = "cpu",
    flags: Mapping[str, Any] = MappingProxyType({}),
    own_terms: Iterable[FilePath] = (),
) -> Resolved:
    """Read a preset, lay the changes over it, and check every value.

    Later layers win: defaults, the presets it extends, its own file, the [cpu] tables of all of
    these when training on the CPU, and last the command line.

    Args:
        name: its name, or the path of a .toml file.
        settings: `key=value` texts of `--set`.
        device: where the worlds will live.
        flags: values of the options in `overrides.FLAGS`; None where one was not given.
        own_terms: Python files with a person's own terms; they are read, not run.

    Raises:
        PresetError: anything is wrong; its messages say what and where.
    """
    chain, notes = [], []
    for file, table in files.chain(name):
        today, told = translated(table, file.label)
        chain.append((file, today))
        notes += told
    file, _ = chain[-1]
    terms = term_files.checked(own_terms)
    changes = overrides.collect(settings, flags)
    layers = _stack(chain, device)
    if (source := flags.get("--env")) is not None:
        layers.lay(Layer("--env", {"name": run_name(source)}))
    for change in changes:
        layers.lay(Layer(change.origin, change.table))
    preset, problems = _validate(layers)
    if device != "cpu":
        problems += _problems_of_cpu_tables(chain)
    if preset is not None:
        problems += _problems_of_terms(preset, layers, terms)
        problems += _problems_of_obs_groups(preset, layers)
    if problems or preset is None:
        raise PresetError(problems)
    return Resolved(preset, file, MappingProxyType(_origins(preset, layers)), terms, tuple(notes))


def filed_under(name: str) -> str:
    """Return the name under which a preset's runs are kept.

    Args:
        name: the preset's name, or the path of a .toml file.

    Raises:
        PresetError: there is none, or it cannot be read.
    """
    file, table = files.chain(name)[-1]
    return str(table.get("name", file.name))


def differences(one: Preset, other: Preset) -> dict[Path, tuple[Any, Any]]:
    """Return the keys that differ, with both values; None where one has no such key."""
    ours, theirs = dict(leaves(_dump(one))), dict(leaves(_dump(other)))
    return {
        path: (ours.get(path), theirs.get(path))
        for path in ours | theirs
        if ours.get(path) != theirs.get(path)
    }


def describe(file: PresetFile) -> str:
    """Return what a preset trains, in a line; or why it cannot be read."""
    try:
        tables = [table for _, table in files.chain(str(file.path))]
    except PresetError as error:
        return error.messages[0]
    described = [str(table["description"]) for table in tables if "description" in table]
    return described[-1] if described else ""


def to_toml(preset: Preset, origins: Mapping[str, str] = MappingProxyType({})) -> str:
    """Write a preset in full, so that it can be run again as it is.

    Args:
        preset: what to write.
        origins: for each dotted key a remark to put behind it.
    """
    return format_table(_dump(preset), lambda path: origins.get(format_key(path), ""))


def _stack(chain: list[tuple[PresetFile, dict[str, Any]]], device: str) -> Layers:
    file, table = chain[-1]
    layers = Layers(file.label)
    layers.lay(Layer(file.label, {"name": table.get("name", file.name)}))
    for file, table in chain:
        own = {key: value for key, value in table.items() if key not in ("cpu", "extends", "name")}
        layers.lay(Layer(file.label, own))
    if device == "cpu":
        for file, table in chain:
            cpu = table.get("cpu", {})
            if isinstance(cpu, Mapping):
                layers.lay(Layer(file.label + _CPU, cpu))
            else:
                layers.problems.append(f"{locate(('cpu',), cpu, file.label)}: must be a table")
    return layers


def _validate(layers: Layers) -> tuple[Preset | None, list[str]]:
    # Read as JSON, numbers and lists are taken as strictly as TOML writes them: no "3" for 3.
    text = json.dumps(layers.document, default=str)
    try:
        return Preset.model_validate_json(text, strict=True), layers.problems
    except ValidationError as error:
        return None, [*layers.problems, *sentences(error, layers.nearest_origin)]


def _problems_of_cpu_tables(chain: list[tuple[PresetFile, dict[str, Any]]]) -> list[str]:
    """Find what is wrong in the tables that a GPU does not use, so that it shows early."""
    _, problems = _validate(_stack(chain, "cpu"))
    return [problem for problem in problems if f"{_CPU}: " in problem]


def _problems_of_terms(
    preset: Preset, layers: Layers, own_terms: tuple[FilePath, ...]
) -> list[str]:
    problems = []
    found = check_terms(preset.env, own_terms)
    if preset.trainer.symmetry is not None and not found:
        found = check_symmetry(preset.env)
    for problem in found:
        value = _lookup(layers.document, problem.path)
        where = locate(problem.path, value, layers.nearest_origin(problem.path))
        wrong = value if isinstance(value, str) else problem.path[-1]
        hint = did_you_mean(wrong, problem.allowed)
        if problem.allowed and not hint:
            hint = f"; allowed: {', '.join(problem.allowed)}"
            if problem.names_term and not own_terms:  # before the list, which may be cut
                hint = f"; one of your own needs --terms FILE{hint}"
        problems.append(f"{where}: {problem.message}{hint}")
    return problems


def _problems_of_obs_groups(preset: Preset, layers: Layers) -> list[str]:
    """Find the observation groups that a network reads and the worlds do not have."""
    env = preset.env
    if env.adapter is not None or (env.task is not None and env.task not in TASKS):
        return []  # only building tells, or told already
    known = env.observations if env.task is None else TASKS[env.task].observations
    problems = []
    sets = ("actor", "critic", *(("rnd_state",) if preset.trainer.rnd is not None else ()))
    for unknown in unknown_groups(preset.trainer.obs_groups, known, sets):
        path = ("trainer", "obs_groups", unknown.set_name)
        where = locate(path, _lookup(layers.document, path), layers.nearest_origin(path))
        hint = did_you_mean(unknown.group, known) or f"; allowed: {', '.join(known) or 'none'}"
        problems.append(f"{where}: {unknown.message}{hint}")
    return problems


def _lookup(document: Any, path: Path) -> Any:  # noqa: ANN401 - any TOML value but a table
    for part in path:
        document = document.get(part) if isinstance(document, Mapping) else None
    return None if isinstance(document, Mapping) else document


def _origins(preset: Preset, layers: Layers) -> dict[str, str]:
    return {format_key(path): layers.origin(path) or DEFAULT for path, _ in leaves(_dump(preset))}


def _dump(preset: Preset) -> dict[str, Any]:
    """All values; keys that are unset are kept as None, but for the many of terms."""
    env = preset.env.model_dump(exclude_none=True)
    return {**preset.model_dump(exclude={"env"}), "env": env}
