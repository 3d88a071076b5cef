"""Which column of an observation or action is which, where another program counts otherwise."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree

from presets.problems import PresetError, did_you_mean
from sim.catalog import names, robot_parts, signature
from sim.config import EnvConfig, TermSettings
from sim.names import match_names
from sim.robots import ROBOTS

ISAAC = "isaac"
DEPTH_FIRST = "depth-first"
JOINT_ORDERS = (ISAAC, DEPTH_FIRST)
"""Orders by name: that of Isaac Lab with PhysX (all joints of one depth of the tree, then those of
the next), and that of the model file (one leg after the other), as Newton and MuJoCo count."""


def joint_order(robot: str, order: str) -> tuple[str, ...]:
    """The joints of a robot in another program's order.

    Args:
        robot: its name.
        order: one of `JOINT_ORDERS`, or the names of all joints with commas between them.

    Raises:
        PresetError: the order is neither.
    """
    ours = ROBOTS[robot].joint_names
    if order == DEPTH_FIRST:
        return tuple(_depth_first(_tree(robot), ours))
    if order == ISAAC:
        return tuple(_breadth_first(_tree(robot), ours))
    given = tuple(name.strip() for name in order.split(","))
    if len(given) == 1:
        hint = did_you_mean(order, JOINT_ORDERS)
        raise PresetError(
            [
                f"--joint-order {order}: must be {' or '.join(JOINT_ORDERS)}, or the names of all "
                f"joints with commas between them{hint}"
            ]
        )
    _require_all(f"--joint-order {order}", given, ours, f"joint of the {robot}")
    return given


def action_columns(env: EnvConfig, joints: Sequence[str]) -> tuple[int, ...]:
    """For each of our action columns its column where joints are counted in the order given."""
    columns: list[int] = []
    for settings in env.actions.values():
        start = len(columns)
        columns += [start + column for column in _places(_joints(env, settings), joints)]
    return tuple(columns)


def observation_columns(
    env: EnvConfig,
    groups: Sequence[str],
    widths: Mapping[str, Sequence[tuple[str, int]]],
    joints: Sequence[str],
    terms: Sequence[str],
) -> tuple[int, ...]:
    """For each of our columns of what a network reads its column in another program's order.

    Args:
        env: the worlds.
        groups: the observation groups that the network reads, in our order.
        widths: for each group its terms in order, with their widths.
        joints: the other program's order of the joints.
        terms: its order of the terms; empty: ours.

    Raises:
        PresetError: the terms named are not those that the network reads.
    """
    ours = [(group, name, width) for group in groups for name, width in widths[group]]
    known = [name for _, name, _ in ours]
    if terms:
        where = f"--observation-order {','.join(terms)}"
        if len(set(known)) != len(known):
            raise PresetError([f"{where}: {' and '.join(groups)} have terms of one name"])
        _require_all(where, terms, known, "observation term")
    starts: dict[str, int] = {}
    total = 0
    by_name = {name: width for _, name, width in ours}
    for name in terms:
        starts[name] = total
        total += by_name[name]
    columns: list[int] = []
    for group, name, width in ours:
        start = starts[name] if terms else len(columns)
        columns += [start + column for column in _within(env, group, name, width, joints)]
    return tuple(columns)


def _within(
    env: EnvConfig, group: str, name: str, width: int, joints: Sequence[str]
) -> Sequence[int]:
    """Columns of one term in the other order."""
    settings = env.observations.get(group, {}).get(name)
    if settings is None:  # a direct task's
        return range(width)
    term = settings.term or name
    if term == "last_action":
        return action_columns(env, joints)
    if term in names("observations") and any(
        param.annotation == "Joints" for param in signature("observations", term).params.values()
    ):
        return _places(_joints(env, settings), joints)
    return range(width)


def _joints(env: EnvConfig, settings: TermSettings) -> list[str]:
    known = robot_parts(env.robot)["Joints"]
    patterns = settings.params.get("joints", "ALL")
    if patterns == "ALL":
        return list(known)
    return [known[i] for i in match_names(patterns, known, "joint")]


def _places(chosen: Sequence[str], joints: Sequence[str]) -> list[int]:
    """Where each of the chosen joints stands among them, counted in the order of `joints`."""
    there = [name for name in joints if name in chosen]
    return [there.index(name) for name in chosen]


def _require_all(where: str, given: Sequence[str], known: Sequence[str], what: str) -> None:
    problems = [
        f"{where}: no {what} is called {name}{did_you_mean(name, known)}"
        for name in given
        if name not in known
    ]
    problems += [f"{where}: {name} is missing" for name in known if name not in given]
    problems += [f"{where}: {name} stands twice" for name in known if given.count(name) > 1]
    if problems:
        raise PresetError(problems)


def _tree(robot: str) -> ElementTree.Element:
    world = ElementTree.parse(ROBOTS[robot].mjcf).getroot().find("worldbody")
    assert world is not None
    return world


def _depth_first(body: ElementTree.Element, known: Sequence[str]) -> Iterator[str]:
    return (name for joint in body.iter("joint") if (name := joint.get("name", "")) in known)


def _breadth_first(world: ElementTree.Element, known: Sequence[str]) -> Iterator[str]:
    waiting = deque([world])
    while waiting:
        body = waiting.popleft()
        for joint in body.findall("joint"):
            if (name := joint.get("name", "")) in known:
                yield name
        waiting.extend(body.findall("body"))
