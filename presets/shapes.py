"""Widths of observations and actions, worked out from a preset alone, before anything is built.

A term's docstring ends its first line with its shape, such as `[N, 3]` or `[N, joints]`; the
robot's description and the term's parameters say how many joints or points that makes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sim.catalog import robot_parts, signature
from sim.config import EnvConfig, TermSettings
from sim.names import match_names
from sim.robots import ROBOTS
from sim.signatures import TermSignature
from sim.tasks import TASKS

_SHAPE = re.compile(r"\[N, (\w+)\]")


def num_actions(env: EnvConfig) -> int:
    """Return A, the width of the action: a value for each joint that a term drives."""
    if env.task is not None:
        return len(TASKS[env.task].action_names)
    return sum(_num_joints(env, settings.params) for settings in env.actions.values())


def observation_widths(env: EnvConfig) -> dict[str, dict[str, int | None]]:
    """Return the width of each term of each observation group; None where only building tells."""
    if env.task is not None:
        return {group: dict(parts) for group, parts in TASKS[env.task].observations.items()}
    return {
        group: {name: _width(env, name, settings) for name, settings in terms.items()}
        for group, terms in env.observations.items()
    }


def _width(env: EnvConfig, name: str, settings: TermSettings) -> int | None:
    term = signature("observations", settings.term or name)
    match _shape(term):
        case width if width.isdecimal():
            return int(width)
        case "A":
            return num_actions(env)
        case "joints":
            return _num_joints(env, settings.params)
        case "k":
            return _command_width(env, term, settings.params)
        case "bodies":
            return _num_bodies(env, term, settings.params)
        case "points":
            return _num_points(term, settings.params)
        case _:
            return None


def _shape(term: TermSignature) -> str:
    """What a docstring writes for the width: a number, a word, or nothing."""
    found = _SHAPE.search(term.doc)
    return found[1] if found else ""


def _command_width(env: EnvConfig, term: TermSignature, params: Mapping[str, Any]) -> int | None:
    """The width of the command that an observation term shows."""
    name = str(params.get("command_name", term.params["command_name"].default))
    width = _shape(signature("commands", env.commands[name].term or name))
    return int(width) if width.isdecimal() else None


def _num_joints(env: EnvConfig, params: Mapping[str, Any]) -> int:
    names = ROBOTS[env.robot].joint_names
    patterns = params.get("joints", "ALL")
    return len(names) if patterns == "ALL" else len(match_names(patterns, names, "joint"))


def _num_bodies(env: EnvConfig, term: TermSignature, params: Mapping[str, Any]) -> int:
    """Count the bodies, or the sensed ones, that a term picks by their names."""
    parameter = term.params["bodies"]
    names = robot_parts(env.robot)[parameter.annotation]
    patterns = params.get("bodies", parameter.default)
    return len(names) if patterns == "ALL" else len(match_names(patterns, names, "body"))


def _num_points(term: TermSignature, params: Mapping[str, Any]) -> int:
    """Count the points of a grid that has one at both ends of each side."""
    length, width, resolution = (
        float(params.get(key, term.params[key].default))
        for key in ("length", "width", "resolution")
    )
    return (round(length / resolution) + 1) * (round(width / resolution) + 1)
