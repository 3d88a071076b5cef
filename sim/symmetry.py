"""Left and right exchanged: which column of an observation or action stands where in a mirror.

The mirror stands on the x-z plane of the robot's base. In it a vector's y changes sign; a turning
rate's x and z do; a joint's value becomes that of its twin on the other side. So a mirrored row is
the row itself with its columns exchanged and some of their signs changed. Free of torch, so that a
preset can be checked before anything is built; `sim.mirror` applies it to tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

from sim.catalog import Problem, robot_parts, signature
from sim.config import EnvConfig, TermSettings
from sim.names import match_names
from sim.robots import ROBOTS
from sim.robots.description import Sides

Params = Mapping[str, object]


class Reflection(NamedTuple):
    """A row in the mirror: its column i is column source[i] of the row, times sign[i]."""

    source: tuple[int, ...]
    sign: tuple[float, ...]


class Reflections(NamedTuple):
    """All that a policy sees and does, in the mirror."""

    observations: dict[str, Reflection]
    """For each observation group."""
    actions: Reflection


class NoMirrorError(ValueError):
    """Settings of which nobody can say how they look in a mirror.

    Args:
        path: where they stand.
        message: what cannot be mirrored, as a sentence without its place.
    """

    def __init__(self, path: tuple[str, ...], message: str) -> None:
        super().__init__(f"{'.'.join(path)}: {message}")
        self.problem = Problem(path, message)


def check_symmetry(config: EnvConfig) -> list[Problem]:
    """Find what keeps an env from being mirrored; empty if it can be.

    Args:
        config: the settings, in which `sim.catalog.check_terms` finds nothing wrong.
    """
    try:
        reflect(config)
    except NoMirrorError as error:
        return [error.problem]
    return []


def reflect(config: EnvConfig) -> Reflections:
    """Say how the observations and actions of an env look in the mirror.

    Args:
        config: the settings, in which `sim.catalog.check_terms` finds nothing wrong.

    Raises:
        NoMirrorError: the robot is no mirror image of itself, or a term has no known one.
    """
    sides = ROBOTS[config.robot].sides
    if sides is None or config.task is not None:
        what = f"robot {config.robot}" if config.task is None else f"task {config.task}"
        raise NoMirrorError(
            ("trainer", "symmetry"),
            f"the {what} has no left and right to exchange; robots that have: "
            + ", ".join(name for name, robot in ROBOTS.items() if robot.sides),
        )
    actions = _joined(
        [
            _place(("env", "actions", name), _joints, config, sides, settings.params)
            for name, settings in config.actions.items()
        ]
    )
    observations = {
        group: _joined(
            [
                _observation(("env", "observations", group, name), config, sides, settings, actions)
                for name, settings in terms.items()
            ]
        )
        for group, terms in config.observations.items()
    }
    return Reflections(observations, actions)


def _observation(
    path: tuple[str, ...],
    config: EnvConfig,
    sides: Sides,
    settings: TermSettings,
    actions: Reflection,
) -> Reflection:
    name = settings.term or path[-1]
    if name == "last_action":
        return actions
    if name not in _RULES:
        raise NoMirrorError(
            path, f"nobody knows how '{name}' looks in the mirror of trainer.symmetry"
        )
    rule = _RULES[name]
    if isinstance(rule, Reflection):
        return rule
    defaults = {key: param.default for key, param in signature("observations", name).params.items()}
    return _place(path, rule, config, sides, defaults | settings.params)


def _place(
    path: tuple[str, ...],
    rule: Callable[[EnvConfig, Sides, Params], Reflection],
    config: EnvConfig,
    sides: Sides,
    params: Params,
) -> Reflection:
    """Apply a rule; what it cannot do is said with the place of the term."""
    try:
        return rule(config, sides, params)
    except LookupError as error:
        raise NoMirrorError(path, str(error.args[0])) from None


def _joints(config: EnvConfig, sides: Sides, params: Params) -> Reflection:
    names = _chosen(params.get("joints", "ALL"), robot_parts(config.robot)["Joints"], "joint")
    return Reflection(_twins(names, sides), tuple(sides.joint_sign(name) for name in names))


def _contact_bodies(config: EnvConfig, sides: Sides, params: Params) -> Reflection:
    known = robot_parts(config.robot)["ContactBodies"]
    names = _chosen(params.get("bodies", "ALL"), known, "contact sensor")
    return Reflection(_twins(names, sides), (1.0,) * len(names))


def _command(config: EnvConfig, sides: Sides, params: Params) -> Reflection:
    name = str(params["command_name"])
    term = config.commands[name].term or name
    if term not in _COMMANDS:
        raise LookupError(
            f"nobody knows how the command '{term}' looks in the mirror of trainer.symmetry"
        )
    return _COMMANDS[term]


def _grid(config: EnvConfig, sides: Sides, params: Params) -> Reflection:
    """A grid of points that are even in y: its rows along x change places."""
    along_x, along_y = (
        int(cast(float, params[key]) / cast(float, params["resolution"]) + 1e-6) + 1
        for key in ("length", "width")
    )
    rows = (range(y * along_x, (y + 1) * along_x) for y in reversed(range(along_y)))
    return Reflection(tuple(i for row in rows for i in row), (1.0,) * (along_x * along_y))


def _chosen(patterns: object, names: Sequence[str], what: str) -> list[str]:
    if patterns == "ALL":
        return list(names)
    return [names[i] for i in match_names(cast("str | list[str]", patterns), names, what)]


def _twins(names: Sequence[str], sides: Sides) -> tuple[int, ...]:
    for name in names:
        if sides.twin(name) not in names:
            raise LookupError(
                f"{name} is among its parts, its twin {sides.twin(name)} is not: "
                "so it has no image in the mirror of trainer.symmetry"
            )
    return tuple(names.index(sides.twin(name)) for name in names)


def _joined(parts: Sequence[Reflection]) -> Reflection:
    """The reflection of rows whose columns lie side by side."""
    source: list[int] = []
    for part in parts:
        start = len(source)
        source += [start + column for column in part.source]
    return Reflection(tuple(source), tuple(sign for part in parts for sign in part.sign))


_NUMBER = Reflection((0,), (1.0,))
_VECTOR = Reflection((0, 1, 2), (1.0, -1.0, 1.0))
_TURN = Reflection((0, 1, 2), (-1.0, 1.0, -1.0))
"""A turning rate: a mirror keeps its axis and reverses its sense, unlike a vector's."""

_COMMANDS: Mapping[str, Reflection] = {
    "uniform_velocity": Reflection((0, 1, 2), (1.0, -1.0, -1.0)),
}
"""Commands by term: forward, left and turn of a velocity."""

_RULES: Mapping[str, Reflection | Callable[[EnvConfig, Sides, Params], Reflection]] = {
    "base_pos_z": _NUMBER,
    "base_lin_vel": _VECTOR,
    "base_ang_vel": _TURN,
    "projected_gravity": _VECTOR,
    "generated_commands": _command,
    "velocity_commands": _command,
    "joint_pos_rel": _joints,
    "joint_vel_rel": _joints,
    "joint_effort": _joints,
    "feet_contact": _contact_bodies,
    "remaining_time": _NUMBER,
    "height_scan": _grid,
}
"""Observation terms, but for `last_action`, which looks as the actions do."""
