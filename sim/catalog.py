"""What terms and robots there are, and whether settings fit them, before torch is imported."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

from sim.config import EnvConfig, TerminationSettings, TermSettings
from sim.names import match_names
from sim.robots import ROBOTS
from sim.signatures import KINDS, REQUIRED, Param, Terms, TermSignature, read_terms
from sim.tasks import TASKS
from sim.terrain.config import FLOOR
from sim.values import choices, complaint

__all__ = [
    "KINDS",
    "REQUIRED",
    "Param",
    "Problem",
    "TermSignature",
    "check_terms",
    "names",
    "robot_parts",
    "signature",
]

_TERMS = Path(__file__).parent / "terms"

PARTS = {"Joints": "joint", "Bodies": "body", "Body": "body", "ContactBodies": "contact sensor"}
"""Parameter types that pick parts of the robot by patterns of their names, and what they pick."""

NEEDS_TERRAIN = ("terrain_levels_vel", "height_scan")
"""Terms that mean nothing on flat ground."""

MOVES_BASE = ("reset_root_state_uniform", "push_by_setting_velocity")
"""Terms that mean nothing where the robot's base is fixed."""

TIME_LIMIT_NAMES = ("time_out", "timeout", "time_limit")
"""Terminations of these names are time limits, and must say so."""


@dataclass(frozen=True)
class Problem:
    """Something in the settings that cannot work."""

    path: tuple[str, ...]
    """Where it stands, such as ("env", "rewards", "feet_air_tme")."""
    message: str
    """What is wrong, as a sentence without its place."""
    allowed: tuple[str, ...] = ()
    """Names that could stand there, if it is a name."""
    names_term: bool = False
    """Whether it is the name of a term."""


def all_terms(own_terms: Sequence[Path] = ()) -> Terms:
    """Our terms, and those of a person's own files, which win."""
    paths = [_TERMS / f"{kind}.py" for kind in KINDS]
    merged: dict[str, dict[str, TermSignature]] = {kind: {} for kind in KINDS}
    for path in (*paths, *own_terms):
        for kind, terms in read_terms(path).items():
            merged[kind].update(terms)
    return merged


def names(kind: str, own_terms: Sequence[Path] = ()) -> tuple[str, ...]:
    """Names of all terms of a kind."""
    return tuple(all_terms(own_terms)[kind])


def signature(kind: str, name: str, own_terms: Sequence[Path] = ()) -> TermSignature:
    """What a term does and takes.

    Raises:
        KeyError: There is no such kind or term.
    """
    return all_terms(own_terms)[kind][name]


def check_terms(config: EnvConfig, own_terms: Sequence[Path] = ()) -> list[Problem]:
    """Find what the settings' types cannot tell: unknown terms, wrong parameters, contradictions.

    Args:
        config: The settings, already valid by their own types.
        own_terms: A person's own term files.

    Returns:
        The problems in the order of the settings; empty if an env can be built.
    """
    return list(_problems(config, all_terms(own_terms)))


def _problems(config: EnvConfig, terms: Terms) -> Iterator[Problem]:
    if config.adapter is not None:
        yield from _check_adapter(config)
        return
    if config.adapter_options:
        yield Problem(("env", "adapter_options"), "these go with env.adapter, which is unset")
    if not config.robot:
        yield Problem(("env", "robot"), "is missing", tuple(ROBOTS))
    elif config.robot not in ROBOTS:
        yield Problem(("env", "robot"), f"there is no robot '{config.robot}'", tuple(ROBOTS))
    yield from _check_managers(config) if config.task is None else _check_task(config)
    if config.terrain is not None and config.robot in ROBOTS and not _has_floor(config.robot):
        yield Problem(("env", "terrain"), f"the {config.robot} does not stand on the ground")
    for path, settings in _entries(config):
        kind, name = path[1], settings.term or path[-1]
        if name in NEEDS_TERRAIN and config.terrain is None:
            message = f"'{name}' needs terrain with levels (env.terrain); the ground here is flat"
            yield Problem(path, message)
        elif name in MOVES_BASE and config.robot in ROBOTS and not _is_free(config.robot):
            message = f"the {config.robot} is fixed to the ground: '{name}' cannot move its base"
            yield Problem(path, message)
        elif name not in terms[kind]:
            where = path if settings.term is None else (*path, "term")
            article = "an" if _SINGULAR[kind][0] in "aeo" else "a"
            message = f"'{name}' is not {article} {_SINGULAR[kind]} term"
            # a key beside its neighbours may be one of them, misspelt
            known = (*terms[kind], *_neighbours(config, path)) if where == path else terms[kind]
            yield Problem(where, message, tuple(dict.fromkeys(known)), names_term=True)
        else:
            yield from _check_params(config, path, terms[kind][name], settings)
        yield from _check_own_keys(path, name, settings)


def _check_adapter(config: EnvConfig) -> Iterator[Problem]:
    for key in ("robot", "task", "params", "terrain", *KINDS):
        if getattr(config, key):
            yield Problem(("env", key), f"the worlds of {config.adapter} bring their own")
    if not config.nan_guard:
        yield Problem(("env", "nan_guard"), f"the worlds of {config.adapter} have no such guard")


def _check_managers(config: EnvConfig) -> Iterator[Problem]:
    if not config.actions:
        yield Problem(("env", "actions"), "at least one action is needed")
    if not any(config.observations.values()):
        yield Problem(("env", "observations"), "at least one observation is needed")
    else:
        for group, terms in config.observations.items():
            if not terms:
                yield Problem(("env", "observations", group), "the group has no observation in it")
    if config.params is not None:
        yield Problem(("env", "params"), "these are a direct task's numbers; env.task names none")


def _check_task(config: EnvConfig) -> Iterator[Problem]:
    task = TASKS.get(config.task or "")
    if task is None:
        yield Problem(("env", "task"), f"there is no direct task '{config.task}'", tuple(TASKS))
        return
    if config.robot != task.robot:
        yield Problem(("env", "robot"), f"the task '{task.name}' needs the robot {task.robot}")
    for kind in KINDS:
        if kind != "events" and getattr(config, kind):
            message = f"the task '{task.name}' brings its own; only events can be added to it"
            yield Problem(("env", kind), message)
    for name in config.params or {}:
        if name not in task.params:
            message = f"the task '{task.name}' has no number '{name}'"
            yield Problem(("env", "params", name), message, tuple(task.params))


def _entries(config: EnvConfig) -> Iterator[tuple[tuple[str, ...], TermSettings]]:
    """All term settings with their places."""
    for kind in KINDS:
        table: Mapping[str, Any] = getattr(config, kind)
        for key, value in table.items():
            if kind == "observations":
                for name, settings in value.items():
                    yield ("env", kind, key, name), settings
            else:
                yield ("env", kind, key), value


def _neighbours(config: EnvConfig, path: tuple[str, ...]) -> Iterator[str]:
    """Keys of the other terms in the table of the term at `path`."""
    return (other[-1] for other, _ in _entries(config) if other[:-1] == path[:-1] and other != path)


def _check_params(
    config: EnvConfig, path: tuple[str, ...], term: TermSignature, settings: TermSettings
) -> Iterator[Problem]:
    given = settings.params
    for key in given:
        if key not in term.params:
            message = f"'{term.name}' has no parameter '{key}'"
            yield Problem((*path, key), message, (*term.params, *type(settings).model_fields))
    for key, param in term.params.items():
        value = given.get(key, param.default)
        if value is REQUIRED:
            yield Problem(path, f"'{term.name}' needs the parameter '{key}' ({param.annotation})")
        elif key in given and (reason := complaint(param.annotation, value)) is not None:
            yield Problem((*path, key), reason, choices(param.annotation))
        else:
            yield from _check_reference(config, (*path, key), param.annotation, value)


def _check_reference(
    config: EnvConfig, path: tuple[str, ...], annotation: str, value: object
) -> Iterator[Problem]:
    """Check a value that names something else: a command, a reward, a part of the robot."""
    if annotation == "CommandName" and value not in config.commands:
        yield Problem(path, f"there is no command '{value}'", tuple(config.commands))
    elif annotation == "RewardName" and value not in config.rewards:
        yield Problem(path, f"there is no reward term '{value}'", tuple(config.rewards))
    elif annotation in PARTS and value != "ALL" and config.robot in ROBOTS:
        parts = robot_parts(config.robot)[annotation]
        try:
            found = match_names(cast("str | list[str]", value), parts, PARTS[annotation])
            if annotation == "Body" and len(found) > 1:
                matched = ", ".join(parts[i] for i in found)
                yield Problem(path, f"must match one body, not {len(found)}: {matched}")
        except ValueError as error:
            what = str(error).partition("; near are ")[0]
            none = "" if parts else ", which has none"
            yield Problem(path, f"{what} (robot {config.robot}{none})", parts)


def _check_own_keys(path: tuple[str, ...], name: str, settings: TermSettings) -> Iterator[Problem]:
    for key, kind in (("noise", "Range"), ("clip", "Range"), ("interval_range_s", "TimeRange")):
        limits = getattr(settings, key, None)
        if limits is not None and (reason := complaint(kind, limits)) is not None:
            yield Problem((*path, key), reason)
    is_time_limit = name in TIME_LIMIT_NAMES or path[-1] in TIME_LIMIT_NAMES
    if isinstance(settings, TerminationSettings) and is_time_limit and not settings.time_out:
        yield Problem(
            (*path, "time_out"),
            "a time limit needs time_out = true; else its endings would be taken for falls",
        )


@functools.cache
def _has_floor(robot: str) -> bool:
    """Whether a robot's model has the floor that terrain takes the place of."""
    geoms = ElementTree.parse(ROBOTS[robot].mjcf).getroot().iterfind("worldbody/geom")
    return any(geom.get("name") == FLOOR for geom in geoms)


@functools.cache
def _is_free(robot: str) -> bool:
    """Whether a robot's base moves freely."""
    return ElementTree.parse(ROBOTS[robot].mjcf).getroot().find(".//freejoint") is not None


@functools.cache
def robot_parts(robot: str) -> Mapping[str, tuple[str, ...]]:
    """Names of a robot's joints, bodies and sensed bodies, by the type that picks them."""
    root = ElementTree.parse(ROBOTS[robot].mjcf).getroot()
    bodies = [body.get("name", "") for body in root.iter("body")]
    sensors = [sensor.get("name", "") for sensor in root.iterfind("sensor/contact")]
    return {
        "Joints": ROBOTS[robot].joint_names,
        "Bodies": tuple(bodies),
        "Body": tuple(bodies),
        "ContactBodies": tuple(sensors),
    }


_SINGULAR = {
    "actions": "action",
    "commands": "command",
    "observations": "observation",
    "rewards": "reward",
    "terminations": "termination",
    "events": "event",
    "curriculum": "curriculum",
}
