"""Franka Emika Panda: an arm of seven joints with a hand of two fingers."""

from __future__ import annotations

from pathlib import Path

from sim.actuators import ImplicitPD
from sim.robots.description import RobotDescription

FRANKA = RobotDescription(
    name="franka",
    mjcf=Path(__file__).with_name("franka.xml"),
    base="panda_link0",
    joint_names=(
        *(f"panda_joint{i}" for i in range(1, 8)),
        "panda_finger_joint1",
        "panda_finger_joint2",
    ),
    view=((-0.4, -0.6, -0.06), (0.9, 0.6, 1.0)),
    # Isaac Lab's shoulder, forearm and hand groups
    actuator=ImplicitPD(
        stiffness=(80.0,) * 7 + (2000.0,) * 2,
        damping=(4.0,) * 7 + (100.0,) * 2,
        effort_limit=(87.0,) * 4 + (12.0,) * 3 + (200.0,) * 2,
    ),
)
