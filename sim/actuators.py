"""Motor laws: from joint targets and the joints' present state to torques, once a physics tick.

A law is evaluated on every joint of every world at once. MuJoCo's native `dcmotor` (4.0.0) is not
used. With a voltage input it has the torque-speed lines of `DCMotor`, but no position controller;
with a position input its controller's torque is held by constant limits, whatever the speed. So
the PD law would be ours in either case, and the limits are three lines more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sim.arrays import Array, row_like


@dataclass
class JointTargets:
    """What the policy asks of the joints; J columns in the robot's joint order."""

    position: Array
    """[N, J], rad or m."""
    velocity: Array
    """[N, J], rad/s or m/s."""
    effort: Array
    """[N, J], N m or N, added to what the law computes."""


class Gains(NamedTuple):
    """The numbers of a motor law that a controller needs, one a joint."""

    stiffness: tuple[float, ...]
    """N m/rad or N/m; 0 where the law looks at no position."""
    damping: tuple[float, ...]
    """N m s/rad or N s/m; 0 where the law looks at no velocity."""
    effort_limit: tuple[float, ...]
    """N m or N."""


class Actuator(Protocol):
    """A motor law."""

    @property
    def is_implicit(self) -> bool:
        """Whether the engine evaluates the law itself, on position targets as its inputs.

        Else its inputs are the torques.
        """
        ...

    def gains(self, num_joints: int) -> Gains:
        """Its numbers, joint by joint."""
        ...

    def compute(self, targets: JointTargets, joint_pos: Array, joint_vel: Array) -> Array:
        """The torques [N, J] (N m or N) under the present state [N, J]; a new array."""
        ...


@dataclass(frozen=True)
class DCMotor:
    """A PD law whose torque a DC motor of limited power can deliver (as Isaac Lab's `DCMotor`).

    tau = stiffness (q* - q) + damping (qd* - qd) + effort*, held within the torque-speed lines
    saturation_effort (+-1 - qd / velocity_limit) and within +-effort_limit. The speed enters the
    lines clipped at velocity_limit (1 + effort_limit / saturation_effort), where they meet the
    limit.
    """

    stiffness: float
    """N m/rad."""
    damping: float
    """N m s/rad."""
    effort_limit: float
    """Largest torque of the joint, N m."""
    saturation_effort: float
    """Torque of the motor at standstill, N m."""
    velocity_limit: float
    """Speed at which the motor has no torque left, rad/s."""

    is_implicit = False

    def gains(self, num_joints: int) -> Gains:
        """The same numbers for all joints."""
        numbers = (self.stiffness, self.damping, self.effort_limit)
        return Gains(*((number,) * num_joints for number in numbers))

    def compute(self, targets: JointTargets, joint_pos: Array, joint_vel: Array) -> Array:
        """The torques [N, J] (N m) under the present state [N, J]; a new array."""
        torque = (targets.position - joint_pos) * self.stiffness
        torque += (targets.velocity - joint_vel) * self.damping
        torque += targets.effort

        corner = self.velocity_limit * (1 + self.effort_limit / self.saturation_effort)
        slope = -self.saturation_effort / self.velocity_limit
        back_emf = joint_vel.clip(-corner, corner) * slope
        top, bottom = back_emf + self.saturation_effort, back_emf - self.saturation_effort
        # the limits meet the lines nowhere but at the corners, so one may follow the other
        return torque.clip(-self.effort_limit, self.effort_limit).clip(bottom, top)


@dataclass(frozen=True)
class EffortMotor:
    """A drive that applies the effort asked for, within its limit.

    Position and velocity targets are ignored; a drive's damping belongs to the joint in the MJCF,
    where the integrator treats it implicitly.
    """

    effort_limit: float
    """Largest effort, N m or N."""

    is_implicit = False

    def gains(self, num_joints: int) -> Gains:
        """No stiffness, no damping."""
        nothing = (0.0,) * num_joints
        return Gains(nothing, nothing, (self.effort_limit,) * num_joints)

    def compute(self, targets: JointTargets, joint_pos: Array, joint_vel: Array) -> Array:
        """The efforts [N, J]; a new array."""
        return targets.effort.clip(-self.effort_limit, self.effort_limit)


@dataclass(frozen=True)
class ImplicitPD:
    """A PD law that the engine evaluates, its damping implicit in the integrator.

    tau = stiffness (q* - q) - damping qd, held within +-effort_limit. The MJCF's position servos
    make it (kp, kv, forcerange), with the numbers given here; what is computed here is the torque
    that they deliver. Velocity and effort targets are ignored. Its numbers differ from joint to
    joint, in the order of the robot's joints.
    """

    stiffness: tuple[float, ...]
    """N m/rad or N/m."""
    damping: tuple[float, ...]
    """N m s/rad or N s/m."""
    effort_limit: tuple[float, ...]
    """Largest torque, N m, or force, N."""

    is_implicit = True

    def gains(self, num_joints: int) -> Gains:
        """Its numbers as they are."""
        return Gains(self.stiffness, self.damping, self.effort_limit)

    def compute(self, targets: JointTargets, joint_pos: Array, joint_vel: Array) -> Array:
        """The torques [N, J] (N m or N) under the present state [N, J]; a new array."""
        stiffness, damping, limit = (
            row_like(joint_pos, row) for row in (self.stiffness, self.damping, self.effort_limit)
        )
        torque = (targets.position - joint_pos) * stiffness
        torque -= joint_vel * damping
        return torque.clip(-limit, limit)
