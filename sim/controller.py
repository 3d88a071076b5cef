"""What a controller of the real robot must know of the worlds in which its policy was trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.catalog import signature
from sim.config import EnvConfig, ObservationSettings
from sim.step import SteppedEnv

Terms = Mapping[str, Sequence[tuple[str, int]]]
"""For each observation group its terms in order, each with its width."""


def describe_controller(
    env: SteppedEnv, groups: Sequence[str], own_terms: Sequence[Path] = ()
) -> dict[str, Any]:
    """Describe actions, motors, observations and the clock, as numbers, texts, lists and dicts.

    Args:
        env: The worlds.
        groups: The observation groups that the policy reads, in its order.
        own_terms: A person's own term files.

    Returns:
        One number for each of the A actions under joint_names, action_kind, action_scale,
        action_offset, default_joint_pos, stiffness, damping and effort_limit; one for each of the
        robot's J joints, the order of joint observations, under observed_joint_names and
        observed_default_joint_pos; the observation's parts in order; and how time runs.
    """
    robot = env.scene.robot
    columns = env.action_columns()
    known = {name: column for column, name in enumerate(robot.joint_names)}
    joints = [known.get(column.joint) for column in columns]
    default = robot.default_joint_pos[0].tolist()
    gains = robot.description.actuator.gains(len(robot.joint_names))
    return {
        "robot": robot.name,
        "joint_names": [column.joint for column in columns],
        "action_kind": [column.kind for column in columns],
        "action_scale": [column.scale for column in columns],
        "action_offset": [column.offset for column in columns],
        "action_formula": "target = action_offset + action_scale * action",
        "default_joint_pos": [_of(default, joint) for joint in joints],
        **{
            name: [_of(values, joint) for joint in joints]
            for name, values in gains._asdict().items()
        },
        "target_delay_ticks": robot.description.delay_ticks,
        "observed_joint_names": list(robot.joint_names),
        "observed_default_joint_pos": default,
        "observations": list(_observations(env.config, env.observation_terms, groups, own_terms)),
        "observation_noise": "none: the policy is to be given what is measured",
        "quaternion_order": "wxyz",
        "physics_dt": env.config.physics_dt,
        "decimation": env.config.decimation,
        "control_dt": env.step_dt,
    }


def _of(values: Sequence[float], joint: int | None) -> float | None:
    return None if joint is None else values[joint]


def _observations(
    config: EnvConfig, terms: Terms, groups: Sequence[str], own_terms: Sequence[Path]
) -> Any:  # noqa: ANN401 - an iterator of JSON objects
    """Describe each part of the observation: where it stands, and how to make it."""
    start = 0
    for group in groups:
        settings = config.observations.get(group, {})
        for name, size in terms[group]:
            term = settings.get(name, ObservationSettings())
            function = term.term or name
            described = name in settings
            yield {
                "name": name,
                "group": group,
                "start": start,
                "size": size,
                "scale": term.scale,
                "clip": None if term.clip is None else list(term.clip),
                "history": 1,
                "term": function if described else None,
                "params": term.params,
                "meaning": signature("observations", function, own_terms).doc if described else "",
            }
            start += size
