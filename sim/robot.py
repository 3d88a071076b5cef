"""The robot in every world: its state as the terms read it, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import torch
from torch import Tensor

from sim.actuators import JointTargets
from sim.arrays import Array, columns, quick
from sim.delay import TargetDelay
from sim.names import match_names
from sim.physics.base import Physics
from sim.robots import RobotDescription
from sim.rotations import matrix_from_quat, quat_normalize

Columns = Tensor | Sequence[int] | slice
ALL = slice(None)


class Robot:
    """State of one robot in N worlds: J joints in the policy's order, B bodies in the tree's.

    All readings are float32 and are brought up to date in place by `Scene.update` and
    `Scene.commit`; what a `write_*` method sets, its readings follow at once, only the positions
    of the other bodies wait for `Scene.commit`. Suffix `_w` is for world axes, `_b` for the base's.
    Linear velocities are those of the base's centre of mass (as in Isaac Lab), positions those of
    its frame. A robot that is fixed to the ground has a constant root pose (its place in the model,
    the world's origin not added), and root velocities of 0.

    Args:
        description: Which robot.
        physics: The engine with its model in every world.
        env_origins: Where the worlds stand, [N, 3] m.
    """

    def __init__(
        self, description: RobotDescription, physics: Physics, env_origins: Tensor
    ) -> None:
        self.name = description.name
        self.description = description
        """Which robot it is."""
        self._physics = physics
        self._env_origins = env_origins
        self._actuator = description.actuator
        model = physics.model
        n, device, exact = physics.num_worlds, physics.device, physics.qpos.dtype
        self.num_worlds = n

        self.joint_names = description.joint_names
        """The J joints, in the order of actions and observations."""
        self.body_names = tuple(model.body(i).name for i in range(1, model.nbody))
        """The B bodies, in the order of the model's tree; the world itself is not one."""
        joints = [model.joint(name).id for name in self.joint_names]
        self.base_id = self.body_names.index(description.base)
        """Column of the base among the bodies."""
        self._base = self.base_id + 1
        root = model.body_jntadr[self._base]
        self.is_fixed_base = root < 0 or model.jnt_type[root] != mujoco.mjtJoint.mjJNT_FREE
        """Whether the base is fixed to the ground."""
        self._qpos_columns = torch.tensor(model.jnt_qposadr[joints], device=device).long()
        self._qvel_columns = torch.tensor(model.jnt_dofadr[joints], device=device).long()
        self._qpos_index, self._qvel_index = map(quick, (self._qpos_columns, self._qvel_columns))
        self._all_columns = torch.arange(len(joints), device=device)

        driven = [joints.index(model.actuator_trnid[i, 0]) for i in range(model.nu)]
        self._all_driven_in_order = driven == list(range(len(joints)))
        self._driven = quick(torch.tensor(driven, dtype=torch.int64, device=device))
        self.actuated_joint_ids = sorted(driven)
        """Columns of the joints that have a motor."""
        passive = [j for j in range(len(joints)) if j not in driven]
        self._passive = quick(torch.tensor(passive, dtype=torch.int64, device=device))

        limits = torch.tensor(model.jnt_range[joints], dtype=torch.float32)
        limits[model.jnt_limited[joints] == 0] = torch.tensor([-torch.inf, torch.inf])
        limits = limits.to(device)
        self.joint_pos_limits = limits
        """Lowest and highest position, [J, 2]; infinite where the joint has none."""
        middle, half = limits.mean(dim=1), (limits[:, 1] - limits[:, 0]) / 2
        reach = half * description.soft_joint_pos_limit_factor
        soft = torch.stack((middle - reach, middle + reach), dim=1)
        self.soft_joint_pos_limits = torch.where(limits.isfinite(), soft, limits)
        """The part of the range about its middle that rewards and resets keep to, [J, 2]."""

        j = len(joints)
        # one row a world, of which every reading is a slice: a reset writes it at once
        self._readings = torch.zeros((n, 4 * j + 23), device=device)
        columns = iter(torch.split(self._readings, [j, j, j, j, 3, 4, 3, 3, 3, 3, 3, 1], dim=1))

        def buffer() -> Tensor:
            return next(columns)

        self.joint_pos, self.joint_vel = buffer(), buffer()
        """[N, J] rad or m, and rad/s or m/s."""
        self.joint_acc = buffer()
        """Change of joint_vel over the last physics tick, [N, J] rad/s^2 or m/s^2."""
        self.applied_torque = buffer()
        """What the motors delivered in the last physics tick, [N, J] N m or N."""
        self.root_pos_w, self.root_quat_w = buffer(), buffer()
        """Base frame: position [N, 3] m, orientation [N, 4] wxyz."""
        self.root_lin_vel_w, self.root_ang_vel_w = buffer(), buffer()
        """[N, 3] m/s, rad/s."""
        self.root_lin_vel_b, self.root_ang_vel_b = buffer(), buffer()
        """[N, 3] m/s, rad/s."""
        self.projected_gravity_b = buffer()
        """Direction of gravity, [N, 3], length 1."""
        self.heading_w = buffer().squeeze(1)
        """Yaw of the base's x axis, [N] rad in (-pi, pi]."""
        of_base = self._readings[:, 4 * j :]
        self._root_pose_w = of_base[:, :7]
        self._root_vel = of_base[:, 7:19]
        self._root_vel_w, self._root_vel_b = self._root_vel.view(n, 2, 2, 3).unbind(1)
        self._tilt_and_heading = of_base[:, 19:]

        default = torch.tensor(
            model.key_qpos[0] if model.nkey else model.qpos0, dtype=exact, device=device
        )
        self.default_joint_pos = default[self._qpos_columns].float().repeat(n, 1)
        """[N, J]."""
        self.default_joint_vel = torch.zeros_like(self.default_joint_pos)
        """[N, J], zeros."""
        pose = default.new_zeros(13, dtype=torch.float32)
        if self.is_fixed_base:
            rotation = physics.body_rotation[:, self._base]
            self.projected_gravity_b.copy_(rotation[:, 2]).neg_()
            self.heading_w.copy_(torch.atan2(rotation[:, 1, 0], rotation[:, 0, 0]))
            self.root_pos_w.copy_(physics.body_pos[:, self._base])
            self.root_quat_w[:, 0] = 1.0
        else:
            pose[:7] = default[:7]
        self.default_root_state = pose.repeat(n, 1)
        """Position (without the world's origin), orientation, velocities, [N, 13]."""

        # the motors work in the engine's own precision, tick by tick
        nothing = quick(torch.zeros((n, j), dtype=exact, device=device))
        self._torque, self._velocity_before = nothing, nothing
        self._targets = JointTargets(
            self.default_joint_pos.to(exact),
            torch.zeros((n, j), dtype=exact, device=device),
            torch.zeros((n, j), dtype=exact, device=device),
        )
        ticks = description.delay_ticks
        self._delay = TargetDelay(ticks, self._targets) if ticks else None

        self.refresh()
        self._default_readings = self._readings[0].clone()

    @property
    def body_pos_w(self) -> Tensor:
        """Position of every body's frame, [N, B, 3] m; a write shows at `Scene.commit`."""
        return self._physics.body_pos[:, 1:].float()

    @property
    def body_rotation_w(self) -> Tensor:
        """Orientation of every body's frame as a matrix, [N, B, 3, 3], in the engine's precision.

        A write shows at `Scene.commit`.
        """
        return self._physics.body_rotation[:, 1:]

    def joint_ids(self, patterns: str | Sequence[str]) -> list[int]:
        """Columns of the joints that match, in the order of `joint_names`.

        Raises:
            ValueError: A pattern matches no joint.
        """
        return match_names(patterns, self.joint_names, "joint")

    def body_ids(self, patterns: str | Sequence[str]) -> list[int]:
        """Columns of the bodies that match, in the order of `body_names`.

        Raises:
            ValueError: A pattern matches no body.
        """
        return match_names(patterns, self.body_names, "body")

    def set_joint_position_target(self, target: Tensor, joint_ids: Columns = ALL) -> None:
        """Ask for positions [N, J'] of the joints in the columns `joint_ids`."""
        _set_columns(self._targets.position, joint_ids, target)

    def set_joint_effort_target(self, effort: Tensor, joint_ids: Columns = ALL) -> None:
        """Ask for efforts [N, J'] of the joints in the columns `joint_ids`."""
        _set_columns(self._targets.effort, joint_ids, effort)

    def drive(self) -> None:
        """Evaluate the motors on the present state and write the engine's inputs."""
        asked = self._targets if self._delay is None else self._delay.push(self._targets)
        targets = JointTargets(*map(quick, (asked.position, asked.velocity, asked.effort)))
        velocity = self._joint_velocity()
        torque = self._actuator.compute(targets, self._joint_position(), velocity)
        if len(self._passive):
            torque[:, self._passive] = 0
        inputs = targets.position if self._actuator.is_implicit else torque
        if not self._all_driven_in_order:
            inputs = columns(inputs, self._driven)
        quick(self._physics.ctrl)[:] = inputs
        self._torque, self._velocity_before = torque, velocity

    def measure_acceleration(self) -> None:
        """Compare the joint velocities with those that the last `drive` saw, one tick ago."""
        change = self._joint_velocity() - self._velocity_before
        quick(self.joint_acc)[:] = change / self._physics.dt
        quick(self.applied_torque)[:] = self._torque

    def _joint_position(self) -> Array:
        """In the engine's precision, copied, [N, J]."""
        return columns(quick(self._physics.qpos), self._qpos_index)

    def _joint_velocity(self) -> Array:
        """In the engine's precision, copied, [N, J]."""
        return columns(quick(self._physics.qvel), self._qvel_index)

    def refresh(self) -> None:
        """Bring all readings but acceleration and torque up to the engine's state."""
        quick(self.joint_pos)[:] = self._joint_position()
        quick(self.joint_vel)[:] = self._joint_velocity()
        if self.is_fixed_base:
            return
        self._root_pose_w.copy_(self._physics.qpos[:, :7])
        rotation = matrix_from_quat(self.root_quat_w)
        # rows of the matrix are the world's axes seen from the base
        torch.neg(rotation[:, 2], out=self.projected_gravity_b)
        torch.atan2(rotation[:, 1, 0], rotation[:, 0, 0], out=self.heading_w)
        # MuJoCo: velocity of the frame's origin in world axes, turning rate in the base's own
        velocity = self._physics.qvel[:, :6].float()
        ang_b = velocity[:, 3:]
        self.root_ang_vel_b.copy_(ang_b)
        of_origin = torch.bmm(velocity[:, None, :3], rotation).squeeze(1)
        about_origin = torch.linalg.cross(ang_b, self._centre_of_mass().float())
        torch.add(of_origin, about_origin, out=self.root_lin_vel_b)
        self._root_vel_w.copy_(torch.bmm(self._root_vel_b, rotation.transpose(1, 2)))

    def _centre_of_mass(self) -> Tensor:
        """Of the base, in its frame, [N, 3] or [1, 3] m."""
        return self._physics.present_field("body_ipos")[:, self._base]

    def write_root_pose(self, ids: Tensor, pos: Tensor, quat: Tensor) -> None:
        """Move the base of the worlds `ids` [K] to `pos` [K, 3] and `quat` [K, 4], world frame.

        Write the pose before the velocity, which depends on it.
        """
        self._must_be_free("pose")
        qpos, unit = self._physics.qpos, quat_normalize(quat)
        pose = torch.cat((pos, unit), dim=1)
        qpos[ids, :7] = pose.to(qpos.dtype)
        self._root_pose_w[ids] = pose
        rotation = matrix_from_quat(unit)
        heading = torch.atan2(rotation[:, 1, 0], rotation[:, 0, 0])
        self._tilt_and_heading[ids] = torch.cat((-rotation[:, 2], heading[:, None]), dim=1)

    def write_root_velocity(self, ids: Tensor, lin_w: Tensor, ang_w: Tensor) -> None:
        """Give the base of the worlds `ids` [K] a velocity in world axes, [K, 3] each.

        The linear one is that of the centre of mass. Serves for pushes within an episode too.
        """
        self._must_be_free("velocity")
        qpos, qvel = self._physics.qpos, self._physics.qvel
        world = torch.cat((lin_w, ang_w), dim=1)
        exact = world.to(qvel.dtype).view(-1, 2, 3)
        rotation = matrix_from_quat(qpos[ids, 3:7])
        base = torch.bmm(exact, rotation)
        centre = self._centre_of_mass()
        centre = centre[ids] if len(centre) > 1 else centre.expand(len(ids), 3)
        arm = torch.bmm(rotation, centre.to(qvel.dtype)[:, :, None]).squeeze(2)
        of_origin = exact[:, 0] - torch.linalg.cross(exact[:, 1], arm)
        qvel[ids, :6] = torch.cat((of_origin, base[:, 1]), dim=1)
        self._root_vel[ids] = torch.cat((world, base.flatten(1).float()), dim=1)

    def _must_be_free(self, what: str) -> None:
        if self.is_fixed_base:
            raise ValueError(f"{self.name} is fixed to the ground: it has no root {what} to write")

    def write_joint_state(
        self, ids: Tensor, pos: Tensor, vel: Tensor, joint_ids: Columns = ALL
    ) -> None:
        """Set the joints in the columns `joint_ids` of the worlds `ids` [K], [K, J'] each."""
        qpos, qvel = self._physics.qpos, self._physics.qvel
        rows = ids[:, None]
        qpos[rows, self._qpos_columns[joint_ids]] = pos.to(qpos.dtype)
        qvel[rows, self._qvel_columns[joint_ids]] = vel.to(qvel.dtype)
        columns = self._all_columns[joint_ids]
        self.joint_pos[rows, columns] = pos
        self.joint_vel[rows, columns] = vel

    def reset(self, ids: Tensor) -> None:
        """Move the worlds `ids` to their origins and ask nothing of them.

        The engine must have put them to the default state already.
        """
        self._readings[ids] = self._default_readings
        if not self.is_fixed_base:
            position = self.default_root_state[ids, :3] + self._env_origins[ids]
            self._physics.qpos[ids, :3] = position.to(self._physics.qpos.dtype)
            self.root_pos_w[ids] = position
        self._targets.position[ids] = self.default_joint_pos[ids].to(self._targets.position.dtype)
        self._targets.velocity[ids] = 0
        self._targets.effort[ids] = 0
        if self._delay is not None:
            self._delay.reset(ids)

    def state_dict(self) -> dict[str, Any]:
        """Targets, and the readings that only a tick can make."""
        state: dict[str, Any] = {name: tensor.clone() for name, tensor in self._state().items()}
        if self._delay is not None:
            state["delay"] = self._delay.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned; the engine's state must be there already."""
        for name, tensor in self._state().items():
            tensor.copy_(state[name])
        if self._delay is not None:
            self._delay.load_state_dict(state["delay"])
        self.refresh()

    def _state(self) -> dict[str, Tensor]:
        return {
            "position_target": self._targets.position,
            "velocity_target": self._targets.velocity,
            "effort_target": self._targets.effort,
            "joint_acc": self.joint_acc,
            "applied_torque": self.applied_torque,
        }


def _set_columns(tensor: Tensor, columns: Columns, values: Tensor) -> None:
    """Write `values`, of any precision, into columns of `tensor` [N, J]."""
    if isinstance(columns, slice):
        tensor[:, columns].copy_(values)
    else:
        tensor[:, columns] = values.to(tensor.dtype)
