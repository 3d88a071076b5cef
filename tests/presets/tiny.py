"""A preset small enough to train in a second, as the text of its file."""

from pathlib import Path

TINY = """
description = "A pole on a cart, for tests"

[env]
robot = "cartpole"
num_envs = 16
physics_dt = 0.01
decimation = 2
episode_length_s = 1.0

[env.actions.joint_effort]
joints = "slider_to_cart"
scale = 100.0

[env.observations.policy.joint_pos_rel]
[env.observations.policy.joint_vel_rel]
noise = [-0.01, 0.01]

[env.rewards]
alive = { term = "is_alive", weight = 1.0 }
pole_pos = { term = "joint_pos_target_l2", weight = -1.0, target = 0.0, joints = "cart_to_pole" }
cart_vel = { term = "dof_vel_l1", weight = -0.01, joints = "slider_to_cart" }

[env.terminations]
time_out = { time_out = true }

[trainer]
num_iterations = 4
num_steps_per_env = 8
save_interval = 2
actor.hidden_dims = [8]
critic.hidden_dims = [8]
"""


def write(folder: Path, **texts: str) -> None:
    """Write presets into `folder`/presets, by name."""
    (folder / "presets").mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / "presets" / f"{name}.toml").write_text(text, encoding="utf-8")
