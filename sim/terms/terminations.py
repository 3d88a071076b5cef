"""Reasons to end an episode; each term gives one flag a world, [N] bool."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from torch import Tensor
from torch.linalg import vector_norm

from sim.config import Range
from sim.terms.parameters import ALL, ContactBodies, Joints
from sim.terms.registry import termination

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv


@termination
def time_out(env: ManagerBasedEnv) -> Tensor:
    """The episode has lasted its whole time limit, [N]."""
    return env.episode_length.ge(env.max_episode_length)


@termination
def illegal_contact(env: ManagerBasedEnv, bodies: ContactBodies, threshold: float = 1.0) -> Tensor:
    """One of the bodies had more than `threshold` N of contact in one of the last ticks, [N]."""
    forces: Tensor = vector_norm(env.scene.contacts.net_forces_history[:, :, bodies], dim=-1)
    return forces.gt(threshold).flatten(1).any(1)


@termination
def bad_orientation(env: ManagerBasedEnv, limit_angle: float) -> Tensor:
    """The base is tilted from upright by more than `limit_angle` (rad), [N]."""
    # Gravity's z in the base frame is -cos(tilt).
    return env.scene.robot.projected_gravity_b[:, 2] > -math.cos(limit_angle)


@termination
def root_height_below_minimum(env: ManagerBasedEnv, minimum_height: float) -> Tensor:
    """The base is less than `minimum_height` (m) above its world's origin, [N]."""
    height = env.scene.robot.root_pos_w[:, 2] - env.scene.env_origins[:, 2]
    return height < minimum_height


@termination
def joint_pos_out_of_limit(env: ManagerBasedEnv, joints: Joints = ALL) -> Tensor:
    """One of the joints is beyond its soft limits, [N]."""
    limits = env.scene.robot.soft_joint_pos_limits[joints]
    position = env.scene.robot.joint_pos[:, joints]
    return ((position < limits[:, 0]) | (position > limits[:, 1])).any(1)


@termination
def joint_pos_out_of_manual_limit(
    env: ManagerBasedEnv, bounds: Range, joints: Joints = ALL
) -> Tensor:
    """One of the joints is outside the bounds (rad or m), [N]."""
    position = env.scene.robot.joint_pos[:, joints]
    return ((position < bounds[0]) | (position > bounds[1])).any(1)
