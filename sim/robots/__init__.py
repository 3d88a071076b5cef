"""The robots, each an MJCF file in primitive shapes and a description; free of torch and MuJoCo."""

from __future__ import annotations

import difflib

from sim.robots.cartpole import CARTPOLE
from sim.robots.description import RobotDescription
from sim.robots.franka import FRANKA
from sim.robots.go2 import GO2

ROBOTS = {robot.name: robot for robot in (CARTPOLE, FRANKA, GO2)}
"""Every robot by the name that a preset calls it."""


def find_robot(name: str) -> RobotDescription:
    """The robot of that name.

    Raises:
        ValueError: There is none; names the nearest ones.
    """
    if name in ROBOTS:
        return ROBOTS[name]
    near = difflib.get_close_matches(name, ROBOTS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"no robot is called {name!r}; there are {', '.join(ROBOTS)}{hint}")


__all__ = ["ROBOTS", "RobotDescription", "find_robot"]
