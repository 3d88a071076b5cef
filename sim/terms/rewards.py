"""Parts of the reward; each term gives one value a world, [N], before weight and step_dt.

The formulas are those of Isaac Lab's velocity, reach and cartpole tasks where the name is theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.linalg import vector_norm

from sim.config import PositiveFloat
from sim.rotations import wrap_to_pi
from sim.terms.commands import orientation_error, position_error
from sim.terms.parameters import ALL, Body, CommandName, ContactBodies, Joints
from sim.terms.registry import reward

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv


@reward
def is_alive(env: ManagerBasedEnv) -> Tensor:
    """1 in every world whose episode did not end in a state of its own, [N]."""
    return (~env.terminations.terminated).float()


@reward
def is_terminated(env: ManagerBasedEnv) -> Tensor:
    """1 in every world whose episode ended in a state of its own (not at the time limit), [N]."""
    return env.terminations.terminated.float()


@reward
def track_lin_vel_xy_exp(
    env: ManagerBasedEnv, std: PositiveFloat, command_name: CommandName = "base_velocity"
) -> Tensor:
    """exp(-|error|^2 / std^2) of the planar velocity in the base frame; 0..1, [N]."""
    error = env.commands.value(command_name)[:, :2] - env.scene.robot.root_lin_vel_b[:, :2]
    return torch.exp(error.square().sum(1) / -(std**2))


@reward
def track_ang_vel_z_exp(
    env: ManagerBasedEnv, std: PositiveFloat, command_name: CommandName = "base_velocity"
) -> Tensor:
    """exp(-error^2 / std^2) of the turning rate in the base frame; 0..1, [N]."""
    error = env.commands.value(command_name)[:, 2] - env.scene.robot.root_ang_vel_b[:, 2]
    return torch.exp(error.square() / -(std**2))


@reward
def lin_vel_z_l2(env: ManagerBasedEnv) -> Tensor:
    """Square of the base's velocity along its own z, (m/s)^2, [N]."""
    return env.scene.robot.root_lin_vel_b[:, 2].square()


@reward
def ang_vel_xy_l2(env: ManagerBasedEnv) -> Tensor:
    """Sum of squares of the base's roll and pitch rates, (rad/s)^2, [N]."""
    return env.scene.robot.root_ang_vel_b[:, :2].square().sum(1)


@reward
def flat_orientation_l2(env: ManagerBasedEnv) -> Tensor:
    """Squared sine of the base's tilt: 0 upright, 1 on its side, [N]."""
    return env.scene.robot.projected_gravity_b[:, :2].square().sum(1)


@reward
def base_height_l2(env: ManagerBasedEnv, target_height: float) -> Tensor:
    """Square of the base's height above its origin less the target (m), m^2, [N]."""
    height = env.scene.robot.root_pos_w[:, 2] - env.scene.env_origins[:, 2]
    return (height - target_height).square()


@reward
def dof_torques_l2(env: ManagerBasedEnv, joints: Joints = ALL) -> Tensor:
    """Sum of squares of the joints' torques in the last physics tick, (N m)^2, [N]."""
    return env.scene.robot.applied_torque[:, joints].square().sum(1)


@reward
def joint_vel_l2(env: ManagerBasedEnv, joints: Joints = ALL) -> Tensor:
    """Sum of squares of the joints' velocities, (rad/s)^2, [N]."""
    return env.scene.robot.joint_vel[:, joints].square().sum(1)


@reward
def dof_vel_l1(env: ManagerBasedEnv, joints: Joints = ALL) -> Tensor:
    """Sum of the joints' speeds, rad/s or m/s, [N]."""
    return env.scene.robot.joint_vel[:, joints].abs().sum(1)


@reward
def dof_acc_l2(env: ManagerBasedEnv, joints: Joints = ALL) -> Tensor:
    """Sum of squares of the joints' accelerations over the last physics tick, (rad/s^2)^2, [N]."""
    return env.scene.robot.joint_acc[:, joints].square().sum(1)


@reward
def dof_pos_limits(env: ManagerBasedEnv, joints: Joints = ALL) -> Tensor:
    """How far the joints are beyond their soft limits, summed, rad or m, [N]."""
    position = env.scene.robot.joint_pos[:, joints]
    limits = env.scene.robot.soft_joint_pos_limits[joints]
    below = (limits[:, 0] - position).clamp(min=0.0)
    above = (position - limits[:, 1]).clamp(min=0.0)
    return (below + above).sum(1)


@reward
def joint_pos_target_l2(env: ManagerBasedEnv, target: float, joints: Joints = ALL) -> Tensor:
    """Sum of squares of the joints' angles less a target, the difference wrapped to a turn, [N]."""
    error = env.scene.robot.joint_pos[:, joints] - target
    return wrap_to_pi(error).square().sum(1)


@reward
def joint_deviation_l1(env: ManagerBasedEnv, joints: Joints = ALL) -> Tensor:
    """Sum of the joints' distances from the default pose, rad or m, [N]."""
    robot = env.scene.robot
    return (robot.joint_pos[:, joints] - robot.default_joint_pos[:, joints]).abs().sum(1)


@reward
def stand_still(
    env: ManagerBasedEnv,
    threshold: float = 0.1,
    command_name: CommandName = "base_velocity",
    joints: Joints = ALL,
) -> Tensor:
    """`joint_deviation_l1` while the planar command is at most `threshold` (m/s), else 0, [N]."""
    planar = vector_norm(env.commands.value(command_name)[:, :2], dim=1)
    return joint_deviation_l1(env, joints).mul_(planar <= threshold)


@reward
def position_command_error(
    env: ManagerBasedEnv, body: Body, command_name: CommandName = "ee_pose"
) -> Tensor:
    """Distance of the body from its commanded position, m, [N]."""
    error = position_error(env.scene.robot, env.commands.value(command_name), body)
    distance: Tensor = vector_norm(error, dim=1)
    return distance


@reward
def position_command_error_tanh(
    env: ManagerBasedEnv, body: Body, std: PositiveFloat, command_name: CommandName = "ee_pose"
) -> Tensor:
    """1 - tanh(distance / std): 1 at the commanded position, falling to 0 with distance, [N]."""
    return 1.0 - torch.tanh(position_command_error(env, body, command_name) / std)


@reward
def orientation_command_error(
    env: ManagerBasedEnv, body: Body, command_name: CommandName = "ee_pose"
) -> Tensor:
    """Smallest angle between the body's and its commanded orientation, rad, [N]."""
    return orientation_error(env.scene.robot, env.commands.value(command_name), body)


@reward
def action_l2(env: ManagerBasedEnv) -> Tensor:
    """Sum of squares of the raw action, no unit, [N]."""
    return env.actions.action.square().sum(1)


@reward
def action_rate_l2(env: ManagerBasedEnv) -> Tensor:
    """Sum of squares of the raw action's change; an episode's first action follows 0, [N]."""
    return (env.actions.action - env.actions.previous_action).square().sum(1)


@reward
def feet_air_time(
    env: ManagerBasedEnv,
    bodies: ContactBodies,
    threshold: float,
    command_name: CommandName = "base_velocity",
) -> Tensor:
    """On each touch-down the seconds in the air less `threshold`, summed over the feet, s, [N].

    Negative for short steps; 0 while the planar command is at most 0.1 m/s.
    """
    contacts = env.scene.contacts
    touch_down = contacts.first_contact(env.config.decimation)[:, bodies]
    air_time = contacts.last_air_time[:, bodies] - threshold
    moving = vector_norm(env.commands.value(command_name)[:, :2], dim=1) > 0.1
    return (air_time * touch_down).sum(1).mul_(moving)


@reward
def undesired_contacts(
    env: ManagerBasedEnv, bodies: ContactBodies, threshold: float = 1.0
) -> Tensor:
    """Number of bodies with more than `threshold` N of contact in one of the last ticks, [N]."""
    forces: Tensor = vector_norm(env.scene.contacts.net_forces_history[:, :, bodies], dim=-1)
    return forces.amax(1).gt(threshold).sum(1).float()


@reward
def contact_forces(env: ManagerBasedEnv, bodies: ContactBodies, threshold: float) -> Tensor:
    """Contact force beyond `threshold` (N), largest of the last ticks, summed over bodies, [N]."""
    forces: Tensor = vector_norm(env.scene.contacts.net_forces_history[:, :, bodies], dim=-1)
    return (forces.amax(1) - threshold).clamp(min=0.0).sum(1)
