"""What the program must know of a robot beside its MJCF."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sim.actuators import Actuator

Corners = tuple[tuple[float, float, float], tuple[float, float, float]]
"""Two opposite corners of a box, m."""


@dataclass(frozen=True)
class Sides:
    """A robot whose left and right are alike: what a mirror on its x-z plane shows."""

    twins: Mapping[str, str]
    """First letters of the names on the left, and of their twins on the right."""
    reversed_joints: str
    """Pattern of the joints that turn the other way in the mirror: those about x or z."""

    def twin(self, name: str) -> str:
        """The joint or body that stands in the mirror where `name` does; itself in the middle."""
        for pair in self.twins.items():
            for one, other in (pair, pair[::-1]):
                if name.startswith(one):
                    return other + name.removeprefix(one)
        return name

    def joint_sign(self, name: str) -> float:
        """-1 for a joint that turns the other way in the mirror, else 1."""
        return -1.0 if re.fullmatch(self.reversed_joints, name) else 1.0


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
    view: Corners = ((-1.0, -1.0, -0.1), (1.0, 1.0, 1.5))
    """Lowest and highest corner of what a drawing of the robot shows, m: for a fixed base in the
    world, for a free one about the ground below it, x along its heading."""
    sides: Sides | None = None
    """How left and right are exchanged; None where the robot is no mirror image of itself."""
