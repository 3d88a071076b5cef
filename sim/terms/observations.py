"""What a robot senses; each term gives one row a world, [N, width]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sim.config import FiniteFloat, PositiveFloat
from sim.terms.parameters import ALL, Bodies, CommandName, ContactBodies, Joints
from sim.terms.registry import observation

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv


@observation
def base_pos_z(env: ManagerBasedEnv) -> Tensor:
    """Height of the base above its world's origin, m, [N, 1]."""
    return env.scene.robot.root_pos_w[:, 2:3] - env.scene.env_origins[:, 2:3]


@observation
def base_lin_vel(env: ManagerBasedEnv) -> Tensor:
    """Velocity of the base's centre of mass in the base frame, m/s, [N, 3]."""
    return env.scene.robot.root_lin_vel_b


@observation
def base_ang_vel(env: ManagerBasedEnv) -> Tensor:
    """Angular velocity of the base in the base frame, rad/s, [N, 3]."""
    return env.scene.robot.root_ang_vel_b


@observation
def projected_gravity(env: ManagerBasedEnv) -> Tensor:
    """Direction of gravity in the base frame, a unit vector; (0, 0, -1) when upright, [N, 3]."""
    return env.scene.robot.projected_gravity_b


@observation
def generated_commands(env: ManagerBasedEnv, command_name: CommandName = "base_velocity") -> Tensor:
    """The command in force, [N, k]."""
    return env.commands.value(command_name)


@observation
def velocity_commands(env: ManagerBasedEnv, command_name: CommandName = "base_velocity") -> Tensor:
    """The velocity command in force: forward, left (m/s) and turn (rad/s), [N, 3]."""
    return env.commands.value(command_name)


@observation
def joint_pos_rel(env: ManagerBasedEnv, joints: Joints = ALL) -> Tensor:
    """Joint positions less the default pose, rad or m, [N, joints]."""
    robot = env.scene.robot
    return robot.joint_pos[:, joints] - robot.default_joint_pos[:, joints]


@observation
def joint_vel_rel(env: ManagerBasedEnv, joints: Joints = ALL) -> Tensor:
    """Joint velocities less the default ones, rad/s or m/s, [N, joints]."""
    robot = env.scene.robot
    return robot.joint_vel[:, joints] - robot.default_joint_vel[:, joints]


@observation
def joint_effort(env: ManagerBasedEnv, joints: Joints = ALL) -> Tensor:
    """Efforts that the motors made in the last physics tick, N m or N, [N, joints]."""
    return env.scene.robot.applied_torque[:, joints]


@observation
def feet_contact(env: ManagerBasedEnv, bodies: ContactBodies = ALL) -> Tensor:
    """1 for each body in contact at the end of the step, else 0, [N, bodies]."""
    return (env.scene.contacts.current_contact_time[:, bodies] > 0.0).float()


@observation("body_mass_rel")
class BodyMassRel:
    """How much heavier the bodies are than the robot's file says: 0.1 for a tenth, [N, bodies].

    No sensor tells this; it is for a critic that sees more than the policy.
    """

    def __init__(self, env: ManagerBasedEnv, bodies: Bodies = ALL) -> None:
        physics, names = env.scene.physics, env.scene.robot.body_names
        chosen = torch.arange(len(names), device=env.device)[bodies].tolist()
        self._ids = torch.tensor(
            [physics.model.body(names[i]).id for i in chosen], device=env.device
        )
        self._nominal = torch.as_tensor(physics.model.body_mass, device=env.device)[self._ids]

    def __call__(self, env: ManagerBasedEnv) -> Tensor:
        """Read the masses of all worlds."""
        mass = env.scene.physics.present_field("body_mass")[:, self._ids]
        return (mass / self._nominal - 1.0).float().expand(env.num_envs, -1)


@observation
def last_action(env: ManagerBasedEnv) -> Tensor:
    """The policy's last action as it left the policy, no unit, [N, A]."""
    return env.actions.action


@observation
def remaining_time(env: ManagerBasedEnv) -> Tensor:
    """Share of the time limit that is left: 1 at the start, 0 at the limit, [N, 1]."""
    return (1.0 - env.episode_length / env.max_episode_length).unsqueeze(1)


@observation("height_scan")
class HeightScan:
    """Height of the base above the ground at a grid of points, less an offset, m, [N, points].

    The grid is `length` (along the base's heading) by `width`, a point every `resolution`; it turns
    with the heading alone. The point behind on the right comes first, then those ahead of it, then
    the next row to the left. A point beyond the edge of the ground reads `miss`: a deep drop, not a
    wall.
    """

    def __init__(
        self,
        env: ManagerBasedEnv,
        length: PositiveFloat = 1.6,
        width: PositiveFloat = 1.0,
        resolution: PositiveFloat = 0.1,
        offset: FiniteFloat = 0.5,
        miss: FiniteFloat = 1.0,
    ) -> None:
        # loads Warp, which only a scan needs
        from sim.terrain.height_scan import HeightScanner

        terrain = env.scene.terrain
        if terrain is None:
            raise ValueError("height_scan needs terrain; the ground here is flat")
        self._scanner = HeightScanner(
            terrain.map, env.device, (length, width), resolution, offset, miss, env.listener
        )

    def __call__(self, env: ManagerBasedEnv) -> Tensor:
        """Cast the rays of all worlds."""
        robot = env.scene.robot
        return self._scanner.scan(robot.root_pos_w, robot.root_quat_w)
