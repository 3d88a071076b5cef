"""Changes to the worlds; each term acts on the worlds `ids` [n] alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from sim.config import Range
from sim.rotations import quat_from_euler_xyz, quat_multiply
from sim.sampling import log_uniform, uniform, uniform_axes
from sim.terms.parameters import ALL, AxisRanges, Bodies, Joints, PositiveRange
from sim.terms.registry import event

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv

MIN_MASS = 1e-6
"""kg; no randomised body gets lighter."""


@event
def reset_root_state_uniform(
    env: ManagerBasedEnv, ids: Tensor, pose_range: AxisRanges, velocity_range: AxisRanges
) -> None:
    """Place the base at its default state plus uniform offsets (m, rad; m/s, rad/s).

    Offsets of the position and of both velocities are along the world's axes, from the world's
    origin; the turn is applied in the default frame.
    """
    robot = env.scene.robot
    default = robot.default_root_state[ids]
    pose = uniform_axes(env.generator, pose_range, len(ids))
    velocity = uniform_axes(env.generator, velocity_range, len(ids)) + default[:, 7:13]
    turn = quat_from_euler_xyz(*pose[:, 3:].unbind(1))
    robot.write_root_pose(
        ids,
        default[:, :3] + env.scene.env_origins[ids] + pose[:, :3],
        quat_multiply(default[:, 3:7], turn),
    )
    robot.write_root_velocity(ids, velocity[:, :3], velocity[:, 3:])


@event
def push_by_setting_velocity(env: ManagerBasedEnv, ids: Tensor, velocity_range: AxisRanges) -> None:
    """Add uniform jumps to the base's velocity, along and about the world's axes (m/s, rad/s)."""
    robot = env.scene.robot
    jump = uniform_axes(env.generator, velocity_range, len(ids))
    robot.write_root_velocity(
        ids, robot.root_lin_vel_w[ids] + jump[:, :3], robot.root_ang_vel_w[ids] + jump[:, 3:]
    )


@event
def reset_joints_by_scale(
    env: ManagerBasedEnv,
    ids: Tensor,
    position_range: Range,
    velocity_range: Range = (0.0, 0.0),
    joints: Joints = ALL,
) -> None:
    """Set each joint to its default times a uniform factor, within the soft limits."""
    robot = env.scene.robot
    position = robot.default_joint_pos[ids][:, joints]
    velocity = robot.default_joint_vel[ids][:, joints]
    position = position * uniform(env.generator, position_range, *position.shape)
    velocity = velocity * uniform(env.generator, velocity_range, *velocity.shape)
    robot.write_joint_state(ids, _within_soft_limits(env, position, joints), velocity, joints)


@event
def reset_joints_by_offset(
    env: ManagerBasedEnv,
    ids: Tensor,
    position_range: Range,
    velocity_range: Range = (0.0, 0.0),
    joints: Joints = ALL,
) -> None:
    """Set the joints to their defaults plus uniform offsets, within the soft limits.

    Offsets in rad and rad/s, or m and m/s. Other joints stay as they are, so several such terms can
    each place their own.
    """
    robot = env.scene.robot
    position = robot.default_joint_pos[ids][:, joints]
    velocity = robot.default_joint_vel[ids][:, joints]
    position = position + uniform(env.generator, position_range, *position.shape)
    velocity = velocity + uniform(env.generator, velocity_range, *velocity.shape)
    robot.write_joint_state(ids, _within_soft_limits(env, position, joints), velocity, joints)


@event
def randomize_rigid_body_material(
    env: ManagerBasedEnv, ids: Tensor, friction_range: PositiveRange, bodies: Bodies = ALL
) -> None:
    """Draw the sliding friction of every shape of the bodies, no unit.

    The floor has lower priority, so this is the coefficient of the robot's contacts.
    """
    physics = env.scene.physics
    chosen = set(_model_bodies(env, bodies).tolist())
    geoms = [i for i, body in enumerate(physics.model.geom_bodyid.tolist()) if body in chosen]
    friction = _nominal(env, "geom_friction", torch.tensor(geoms, device=env.device))
    friction = friction.repeat(len(ids), 1, 1)
    friction[:, :, 0] = uniform(env.generator, friction_range, len(ids), len(geoms))
    _write(env, "geom_friction", ids, torch.tensor(geoms, device=env.device), friction)
    physics.model_changed()


@event
def randomize_rigid_body_mass(
    env: ManagerBasedEnv,
    ids: Tensor,
    bodies: Bodies,
    scale_range: PositiveRange,
    distribution: Literal["uniform", "log_uniform"] = "uniform",
) -> None:
    """Scale the bodies' nominal masses, and their inertias with them, as if denser or lighter."""
    body_ids = _model_bodies(env, bodies)
    draw_from = log_uniform if distribution == "log_uniform" else uniform
    factor = draw_from(env.generator, scale_range, len(ids), len(body_ids)).double()
    _write_mass(env, ids, body_ids, _nominal(env, "body_mass", body_ids) * factor)


@event
def add_rigid_body_mass(
    env: ManagerBasedEnv, ids: Tensor, bodies: Bodies, mass_range: Range
) -> None:
    """Add to the bodies' nominal masses (kg); their inertias grow by the ratio of the masses."""
    body_ids = _model_bodies(env, bodies)
    extra = uniform(env.generator, mass_range, len(ids), len(body_ids)).double()
    _write_mass(env, ids, body_ids, _nominal(env, "body_mass", body_ids) + extra)


@event
def randomize_rigid_body_com(
    env: ManagerBasedEnv, ids: Tensor, bodies: Bodies, com_range: AxisRanges
) -> None:
    """Shift the bodies' centres of mass from their nominal place, in the body frame, m."""
    body_ids = _model_bodies(env, bodies)
    shift = uniform_axes(env.generator, com_range, len(ids) * len(body_ids))[:, :3]
    shift = shift.view(len(ids), len(body_ids), 3)
    _write(env, "body_ipos", ids, body_ids, _nominal(env, "body_ipos", body_ids) + shift)
    env.scene.physics.model_changed()


def _write_mass(env: ManagerBasedEnv, ids: Tensor, body_ids: Tensor, mass: Tensor) -> None:
    mass = mass.clamp(min=MIN_MASS)
    ratio = (mass / _nominal(env, "body_mass", body_ids)).unsqueeze(-1)
    _write(env, "body_mass", ids, body_ids, mass)
    _write(env, "body_inertia", ids, body_ids, _nominal(env, "body_inertia", body_ids) * ratio)
    env.scene.physics.model_changed()


def _nominal(env: ManagerBasedEnv, field: str, columns: Tensor) -> Tensor:
    """A model field as the robot's file has it, [columns, ...] float64."""
    values = torch.as_tensor(getattr(env.scene.physics.model, field), device=env.device)
    return values[columns]


def _write(env: ManagerBasedEnv, field: str, ids: Tensor, columns: Tensor, values: Tensor) -> None:
    """Write values [n, columns, ...] into the worlds' own copies of a model field."""
    own = env.scene.physics.model_field(field)
    own[ids[:, None], columns] = values.to(own.dtype)


def _within_soft_limits(env: ManagerBasedEnv, position: Tensor, joints: Joints) -> Tensor:
    limits = env.scene.robot.soft_joint_pos_limits[joints]
    return position.clamp(limits[:, 0], limits[:, 1])


def _model_bodies(env: ManagerBasedEnv, bodies: Bodies) -> Tensor:
    """Numbers of the robot's bodies in the physics model."""
    names = env.scene.robot.body_names
    chosen = torch.arange(len(names), device=env.device)[bodies].tolist()
    ids = [env.scene.physics.model.body(names[i]).id for i in chosen]
    return torch.tensor(ids, device=env.device)
