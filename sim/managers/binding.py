"""From a term's settings to something to call: find the function, turn names into indices."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sim.catalog import PARTS
from sim.names import match_names
from sim.signatures import read_terms
from sim.terms import registry
from sim.terms.parameters import ALL, Index

if TYPE_CHECKING:
    from sim.config import TermSettings
    from sim.step import SteppedEnv


def bind(env: SteppedEnv, path: tuple[str, ...], settings: TermSettings) -> functools.partial[Any]:
    """Return the term of `settings` with its parameters in place; `env` (and ids) are still open.

    Args:
        env: The env whose robot gives the names of joints and bodies.
        path: Where the settings stand in the config, such as ("rewards", "feet_air_time").
        settings: The term's settings.

    Raises:
        ValueError: A pattern matches no joint or body of the robot.
    """
    kind, name = path[0], settings.term or path[-1]
    term = registry.find(kind, name)
    signature = read_terms(Path(inspect.getfile(term)))[kind][name]
    params: dict[str, Any] = {}
    given = settings.params
    for key, param in signature.params.items():
        # Other defaults are values as the function takes them.
        if key in given or (param.annotation in PARTS and param.default != "ALL"):
            value = given.get(key, param.default)
            try:
                params[key] = _resolve(env, param.annotation, value)
            except ValueError as error:
                raise ValueError(f"{'.'.join(('env', *path, key))}: {error}") from None
    return functools.partial(term, **params)


def _resolve(env: SteppedEnv, annotation: str, value: Any) -> Any:  # noqa: ANN401
    """Turn a preset's value into what a parameter of this annotation receives."""
    match annotation:
        case "Joints":
            return _columns(env, value, env.scene.robot.joint_names, PARTS[annotation])
        case "Bodies":
            return _columns(env, value, env.scene.robot.body_names, PARTS[annotation])
        case "Body":
            return match_names(value, env.scene.robot.body_names, PARTS[annotation])[0]
        case "ContactBodies":
            return _columns(env, value, env.scene.contacts.body_names, PARTS[annotation])
        case "AxisRanges":
            return {axis: (float(low), float(high)) for axis, (low, high) in value.items()}
        case "Range" | "PositiveRange" | "TimeRange":
            return float(value[0]), float(value[1])
        case _:
            return value


def _columns(
    env: SteppedEnv, patterns: str | Sequence[str], names: Sequence[str], what: str
) -> Index:
    """Find the columns whose whole names match one of the patterns, in the order of `names`."""
    found = match_names(patterns, names, what)
    if len(found) == len(names):
        return ALL
    if found == list(range(found[0], found[-1] + 1)):
        return slice(found[0], found[-1] + 1)
    return torch.tensor(found, device=env.device)
