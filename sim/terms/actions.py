"""How the action drives the robot."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from sim.managers.action import Action, ActionColumn
from sim.terms.parameters import ALL, Joints
from sim.terms.registry import action

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv


class JointAction(Action):
    """Joint targets from the action, target = offset + scale x action."""

    kind: ClassVar[str]
    """What the targets are of: position or effort."""

    def __init__(
        self, env: ManagerBasedEnv, joints: Joints, scale: float, offset: float | Tensor
    ) -> None:
        self._robot = env.scene.robot
        ids = torch.arange(len(self._robot.joint_names), device=env.device)[joints]
        self.names = tuple(self._robot.joint_names[i] for i in ids.tolist())
        passive = set(ids.tolist()) - set(self._robot.actuated_joint_ids)
        if passive:
            names = ", ".join(self._robot.joint_names[i] for i in sorted(passive))
            raise ValueError(f"{names} of the {self._robot.name} cannot be driven: no motor")
        self._joints = joints
        self._scale = scale
        self._offset = offset
        self.target = torch.zeros(env.num_envs, len(ids), device=env.device)

    def columns(self) -> tuple[ActionColumn, ...]:
        """Joint, scale and offset of each column; offsets are the same in all worlds."""
        offset = self._offset
        row = offset[0].tolist() if isinstance(offset, Tensor) else [offset] * len(self.names)
        return tuple(
            ActionColumn(name, self.kind, self._scale, at)
            for name, at in zip(self.names, row, strict=True)
        )

    def process(self, action: Tensor) -> None:
        """Compute the targets, [N, joints]."""
        torch.mul(action, self._scale, out=self.target).add_(self._offset)


@action("joint_position")
class JointPositionAction(JointAction):
    """Position targets of joints (rad or m): scale x action, from the default pose or from 0."""

    kind = "position"

    def __init__(
        self,
        env: ManagerBasedEnv,
        joints: Joints = ALL,
        scale: float = 1.0,
        use_default_offset: bool = True,
    ) -> None:
        default = env.scene.robot.default_joint_pos[:, joints]
        super().__init__(env, joints, scale, default.clone() if use_default_offset else 0.0)

    def apply(self) -> None:
        """Set the position targets."""
        self._robot.set_joint_position_target(self.target, self._joints)


@action("joint_effort")
class JointEffortAction(JointAction):
    """Efforts of joints (N m or N): scale x action."""

    kind = "effort"

    def __init__(self, env: ManagerBasedEnv, joints: Joints = ALL, scale: float = 1.0) -> None:
        super().__init__(env, joints, scale, 0.0)

    def apply(self) -> None:
        """Set the efforts."""
        self._robot.set_joint_effort_target(self.target, self._joints)
