"""Goals that a robot is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.linalg import vector_norm

from sim.config import FiniteFloat, NonNegativeFloat, PositiveFloat, Range, UnitInterval
from sim.managers.command import Axis, Command
from sim.rotations import (
    angle_between,
    matrix_from_quat,
    quat_from_euler_xyz,
    quat_multiply,
    quat_rotate,
    quat_rotate_inverse,
    wrap_to_pi,
)
from sim.sampling import uniform_axes
from sim.terms.parameters import Body, TimeRange
from sim.terms.registry import command

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv
    from sim.robot import Robot

PI = 3.141592653589793


@command("uniform_velocity")
class UniformVelocityCommand(Command):
    """A velocity of the base in its own frame: forward, left (m/s), turn (rad/s), [N, 3].

    All are uniform in their ranges. A share `rel_heading_envs` of the worlds is given a heading in
    the world instead of a turning rate; at every step their turning rate is
    `heading_control_stiffness` times the heading error, within `ang_vel_z`. A share
    `rel_standing_envs` is told to stand. Both are redrawn with the command. A planar command of at
    most `small_command_threshold` (m/s) is drawn as 0; its turning rate stays.

    A new env's first observation shows the command as drawn: heading and standing act from the
    first step on.
    """

    buffers = (*Command.buffers, "heading_target", "is_heading", "is_standing")
    metric_names = ("error_vel_xy", "error_vel_yaw")
    kind = "velocity"
    takes_ranges = True

    def __init__(
        self,
        env: ManagerBasedEnv,
        lin_vel_x: Range = (-1.0, 1.0),
        lin_vel_y: Range = (-1.0, 1.0),
        ang_vel_z: Range = (-1.0, 1.0),
        heading: Range = (-PI, PI),
        resampling_time: TimeRange = (10.0, 10.0),
        rel_heading_envs: UnitInterval = 1.0,
        rel_standing_envs: UnitInterval = 0.02,
        heading_control_stiffness: FiniteFloat = 0.5,
        small_command_threshold: NonNegativeFloat = 0.0,
        vel_xy_success_threshold: FiniteFloat = 0.5,
        vel_yaw_success_threshold: FiniteFloat = 0.4,
    ) -> None:
        super().__init__(env, width=3, resampling_time=resampling_time)
        self._ranges = {
            "lin_vel_x": lin_vel_x,
            "lin_vel_y": lin_vel_y,
            "ang_vel_z": ang_vel_z,
            "heading": heading,
        }
        self._take_in_ranges()
        self._rel_heading_envs = rel_heading_envs
        self._rel_standing_envs = rel_standing_envs
        self._stiffness = heading_control_stiffness
        self._small_command = small_command_threshold
        self._success = torch.tensor(
            [[vel_xy_success_threshold], [vel_yaw_success_threshold]], device=env.device
        )
        self.heading_target = torch.zeros(env.num_envs, device=env.device)
        self.is_heading = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)
        self.is_standing = torch.zeros_like(self.is_heading)

    def _take_in_ranges(self) -> None:
        limits = torch.tensor(list(self._ranges.values()), device=self.env.device)
        self._low, self._span = limits[:, 0], limits[:, 1] - limits[:, 0]
        self._ang_vel_z = self._ranges["ang_vel_z"]
        self.axes = (
            Axis("forward", "m/s", *self._ranges["lin_vel_x"]),
            Axis("left", "m/s", *self._ranges["lin_vel_y"]),
            Axis("turn", "rad/s", *self._ang_vel_z),
        )

    def set_range(self, name: str, limits: Range) -> None:
        """Draw from another range from now on; a heading's turning rate keeps to it at once."""
        self._ranges[name] = limits
        self._take_in_ranges()

    def draw(self, ids: Tensor) -> None:
        """Draw velocities, heading targets, and which of these worlds steer or stand."""
        u = torch.rand(len(ids), 6, generator=self.env.generator, device=ids.device)
        drawn = self._low + self._span * u[:, :4]
        moves = vector_norm(drawn[:, :2], dim=1, keepdim=True) > self._small_command
        drawn[:, :2] *= moves
        self.value[ids] = drawn[:, :3]
        self.heading_target[ids] = drawn[:, 3]
        # A draw lies in [0, 1), so a share of 1 takes all worlds and a share of 0 none.
        self.is_heading[ids] = u[:, 4] < self._rel_heading_envs
        self.is_standing[ids] = u[:, 5] < self._rel_standing_envs

    def update(self) -> None:
        """Steer towards the heading targets, then stop the worlds that stand."""
        error = wrap_to_pi(self.heading_target - self.env.scene.robot.heading_w)
        turn = (error * self._stiffness).clamp_(*self._ang_vel_z)
        self.value[:, 2] = torch.where(self.is_heading, turn, self.value[:, 2])
        self.value.masked_fill_(self.is_standing.unsqueeze(1), 0.0)

    def actual(self) -> Tensor:
        """Velocity of the base in its own frame, in the order of the command, [N, 3]."""
        robot = self.env.scene.robot
        return torch.cat((robot.root_lin_vel_b[:, :2], robot.root_ang_vel_b[:, 2:]), dim=1)

    def put(self, ids: Tensor, values: Tensor) -> None:
        """Set velocities from outside; these worlds neither follow a heading nor stand."""
        super().put(ids, values)
        self.is_heading[ids] = False
        self.is_standing[ids] = False

    def measure(self) -> Tensor:
        """Planar (m/s) and turning (rad/s) distance from the command, [2, N]."""
        robot = self.env.scene.robot
        planar = vector_norm(self.value[:, :2] - robot.root_lin_vel_b[:, :2], dim=1)
        turning = (self.value[:, 2] - robot.root_ang_vel_b[:, 2]).abs()
        return torch.stack((planar, turning))

    def metrics(self, ids: Tensor) -> dict[str, Tensor]:
        """The mean errors, and 1 for episodes in which both were below the thresholds."""
        success = (self._episode_means(ids) < self._success).all(0)
        return {**super().metrics(ids), "success_rate": success.float()}


@command("uniform_pose")
class UniformPoseCommand(Command):
    """A pose of a body in the base's frame: position (m) and quaternion wxyz, [N, 7].

    Position and angles are uniform in their ranges; the angles turn about the base's x, then y,
    then z. The metrics are the errors at the end of the episode, and the share of episodes that
    were once nearer than `success_threshold` (m) to their position.
    """

    buffers = (*Command.buffers, "reached")
    metric_names = ("position_error", "orientation_error")
    kind = "pose"
    takes_ranges = True

    def __init__(
        self,
        env: ManagerBasedEnv,
        body: Body,
        pos_x: Range,
        pos_y: Range,
        pos_z: Range,
        roll: Range = (0.0, 0.0),
        pitch: Range = (0.0, 0.0),
        yaw: Range = (0.0, 0.0),
        resampling_time: TimeRange = (4.0, 4.0),
        success_threshold: PositiveFloat = 0.05,
    ) -> None:
        super().__init__(env, width=7, resampling_time=resampling_time)
        self._body = body
        self._ranges = {"x": pos_x, "y": pos_y, "z": pos_z}
        self._ranges |= {"roll": roll, "pitch": pitch, "yaw": yaw}
        self._success_threshold = success_threshold
        self._name_axes()
        self.value[:, 3] = 1.0
        self.reached = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)

    def _name_axes(self) -> None:
        x, y, z = (self._ranges[axis] for axis in "xyz")
        self.axes = (Axis("ahead", "m", *x), Axis("left", "m", *y), Axis("up", "m", *z))

    def set_range(self, name: str, limits: Range) -> None:
        """Draw from another range from now on."""
        self._ranges[name.removeprefix("pos_")] = limits
        self._name_axes()

    def draw(self, ids: Tensor) -> None:
        """Draw poses for these worlds."""
        pose = uniform_axes(self.env.generator, self._ranges, len(ids))
        self.value[ids, :3] = pose[:, :3]
        self.value[ids, 3:] = quat_from_euler_xyz(*pose[:, 3:].unbind(1))

    def actual(self) -> Tensor:
        """Position of the body in the base's frame, m, [N, 3]."""
        robot = self.env.scene.robot
        away = robot.body_pos_w[:, self._body] - robot.root_pos_w
        return quat_rotate_inverse(robot.root_quat_w, away)

    def measure(self) -> Tensor:
        """Distance (m) and angle (rad) of the body from its commanded pose, [2, N]."""
        robot = self.env.scene.robot
        distance = vector_norm(position_error(robot, self.value, self._body), dim=1)
        return torch.stack((distance, orientation_error(robot, self.value, self._body)))

    def record(self, measured: Tensor) -> None:
        """Keep the errors of this step alone, and whether a world was ever near."""
        self.metric_sums.copy_(measured)
        self.metric_steps.fill_(1.0)
        self.reached |= measured[0] < self._success_threshold

    def reset(self, ids: Tensor) -> dict[str, Tensor]:
        """Redraw the poses of these worlds; return and forget how their episodes went."""
        metrics = super().reset(ids)
        self.reached[ids] = False
        return metrics

    def metrics(self, ids: Tensor) -> dict[str, Tensor]:
        """The last errors, and 1 for episodes that reached their position."""
        return {**super().metrics(ids), "success_rate": self.reached[ids].float()}


def position_error(robot: Robot, pose: Tensor, body: int) -> Tensor:
    """From a commanded position to the body, world axes, [N, 3] m; pose [N, 7] is the base's."""
    wanted = robot.root_pos_w + quat_rotate(robot.root_quat_w, pose[:, :3])
    return robot.body_pos_w[:, body] - wanted


def orientation_error(robot: Robot, pose: Tensor, body: int) -> Tensor:
    """Smallest angle between a commanded orientation (pose [N, 7]) and the body's, [N] rad."""
    wanted = matrix_from_quat(quat_multiply(robot.root_quat_w, pose[:, 3:]))
    return angle_between(wanted, robot.body_rotation_w[:, body].to(wanted.dtype))
