"""Unitree Go2: a walking robot of 15.2 kg with four legs and twelve joints."""

from __future__ import annotations

from pathlib import Path

from sim.actuators import DCMotor
from sim.robots.description import RobotDescription, Sides

LEGS = ("FL", "FR", "RL", "RR")
"""Front left, front right, rear left, rear right."""

GO2 = RobotDescription(
    name="go2",
    mjcf=Path(__file__).with_name("go2.xml"),
    base="base",
    # breadth-first, the order in which Isaac Lab's policies see a Go2; the model's tree is
    # depth-first (all joints of one leg, then the next leg)
    joint_names=tuple(f"{leg}_{part}_joint" for part in ("hip", "thigh", "calf") for leg in LEGS),
    # Isaac Lab's "base_legs" motors, the same on every joint
    actuator=DCMotor(
        stiffness=25.0,
        damping=0.5,
        effort_limit=23.5,
        saturation_effort=23.5,
        velocity_limit=30.0,
    ),
    soft_joint_pos_limit_factor=0.9,
    view=((-0.55, -0.45, -0.06), (0.6, 0.45, 0.52)),
    sides=Sides(twins={"FL_": "FR_", "RL_": "RR_"}, reversed_joints=".*_hip_joint"),
)
