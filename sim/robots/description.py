"""What the program must know of a robot beside its MJCF."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sim.actuators import Actuator


@dataclass(frozen=True)
class RobotDescription:
    """A robot: its model file, the order of its joints, and its motors.

    The default state (root pose, joint positions) is the model file's keyframe. Bodies whose
    contacts are sensed are those that a `contact` sensor of the model file names.
    """

    name: str
    """What a preset calls it."""
    mjcf: Path
    """The model file."""
    base: str
    """The body whose pose and velocity are the robot's."""
    joint_names: tuple[str, ...]
    """The joints in the order of actions and observations."""
    actuator: Actuator
    """The motor law of all joints that have a motor in the model file."""
    soft_joint_pos_limit_factor: float = 1.0
    """Part of a joint's range, about its middle, that the soft limits leave."""
    delay_ticks: int = 0
    """Physics ticks by which the motors receive their targets late."""
