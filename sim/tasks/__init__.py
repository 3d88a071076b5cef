"""Tasks written as a class of five methods, by the name that a preset calls them; free of torch."""

from __future__ import annotations

from sim.tasks.description import DirectTask

CARTPOLE_DIRECT = DirectTask(
    name="cartpole_direct",
    env="sim.tasks.cartpole_direct:CartpoleDirectEnv",
    robot="cartpole",
    action_names=("slider_to_cart",),
    observations={"policy": (("joint_pos", 2), ("joint_vel", 2))},
    params={
        "action_scale": 100.0,
        "max_cart_pos": 3.0,
        "initial_cart_pos": 1.0,
        "initial_cart_vel": 0.5,
        "initial_pole_angle": 0.7853981633974483,
        "initial_pole_vel": 0.7853981633974483,
        "rew_scale_alive": 1.0,
        "rew_scale_terminated": -2.0,
        "rew_scale_pole_pos": -1.0,
        "rew_scale_cart_vel": -0.01,
        "rew_scale_pole_vel": -0.005,
    },
)
"""Isaac Lab's direct cartpole, in the numbers of its develop branch."""

TASKS = {task.name: task for task in (CARTPOLE_DIRECT,)}
"""Every direct task by its name."""

__all__ = ["TASKS", "DirectTask"]
