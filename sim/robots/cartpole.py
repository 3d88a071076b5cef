"""A pole hinged on a cart that runs on a rail."""

from __future__ import annotations

from pathlib import Path

from sim.actuators import EffortMotor
from sim.robots.description import RobotDescription

CARTPOLE = RobotDescription(
    name="cartpole",
    mjcf=Path(__file__).with_name("cartpole.xml"),
    base="rail",
    view=((-3.3, -0.5, 0.9), (3.3, 0.5, 3.2)),
    joint_names=("slider_to_cart", "cart_to_pole"),
    actuator=EffortMotor(effort_limit=400.0),
)
