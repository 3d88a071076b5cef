"""A random state of N worlds as terms read it, and the same numbers in float64."""

from types import SimpleNamespace

import mujoco
import numpy as np
import torch

N, J, S, B = 16, 5, 4, 3


def unit(quats):
    return quats / np.linalg.norm(quats, axis=-1, keepdims=True)


def matrix(quats):
    """Matrices [B, 3, 3] of quaternions [B, 4], by MuJoCo."""
    matrices = np.zeros((len(quats), 9))
    for quat, out in zip(quats, matrices, strict=True):
        mujoco.mju_quat2Mat(out, quat)
    return matrices.reshape(-1, 3, 3)


def random_env(seed):
    """An env whose every reading is random; `env.exact` holds all of them as float64 arrays."""
    draw = np.random.default_rng(seed)
    exact = {
        "root_pos_w": draw.normal(0, 1, (N, 3)),
        "root_lin_vel_b": draw.normal(0, 1, (N, 3)),
        "root_ang_vel_b": draw.normal(0, 1, (N, 3)),
        "projected_gravity_b": draw.normal(0, 1, (N, 3)),
        "joint_pos": draw.normal(0, 2, (N, J)),
        "joint_vel": draw.normal(0, 5, (N, J)),
        "joint_acc": draw.normal(0, 100, (N, J)),
        "applied_torque": draw.normal(0, 10, (N, J)),
        "default_joint_pos": np.tile(draw.normal(0, 1, J), (N, 1)),
        "default_joint_vel": np.zeros((N, J)),
        "soft_joint_pos_limits": np.sort(draw.normal(0, 1, (J, 2)), axis=1),
        "forces": draw.normal(0, 1, (N, 3, S, 3)),
        "contact_ticks": draw.integers(0, 8, (N, S)),
        "last_air_time": draw.integers(0, 200, (N, S)) * 0.005,
        "command": draw.normal(0, 0.3, (N, 3)) * draw.integers(0, 2, (N, 1)),
        "action": draw.normal(0, 1, (N, J)),
        "previous_action": draw.normal(0, 1, (N, J)),
        "env_origins": draw.normal(0, 5, (N, 3)),
        "root_quat_w": unit(draw.normal(0, 1, (N, 4))),
        "body_pos_w": draw.normal(0, 1, (N, B, 3)),
        "body_quat_w": unit(draw.normal(0, 1, (N, B, 4))),
        "pose": np.hstack((draw.normal(0, 1, (N, 3)), unit(draw.normal(0, 1, (N, 4))))),
    }
    # float64 of the float32 numbers that the terms get, so that only their arithmetic differs
    exact = {name: value.astype(np.float32).astype(np.float64) for name, value in exact.items()}
    exact["body_rotation_w"] = np.array([matrix(quat) for quat in exact["body_quat_w"]])
    t = {name: torch.tensor(value, dtype=torch.float32) for name, value in exact.items()}
    terminated = torch.tensor(draw.integers(0, 2, N), dtype=torch.bool)
    return SimpleNamespace(
        exact=SimpleNamespace(**exact, terminated=terminated.numpy()),
        num_envs=N,
        config=SimpleNamespace(decimation=4),
        max_episode_length=1000,
        episode_length=torch.tensor(draw.integers(0, 1001, N)),
        scene=SimpleNamespace(
            robot=SimpleNamespace(**t),
            env_origins=t["env_origins"],
            contacts=SimpleNamespace(
                net_forces_history=t["forces"],
                last_air_time=t["last_air_time"],
                current_contact_time=t["contact_ticks"] * 0.005,
                first_contact=lambda ticks: (
                    (t["contact_ticks"] > 0) & (t["contact_ticks"] <= ticks)
                ),
            ),
        ),
        commands=SimpleNamespace(value=lambda name: t["pose" if name == "ee_pose" else "command"]),
        actions=SimpleNamespace(action=t["action"], previous_action=t["previous_action"]),
        terminations=SimpleNamespace(terminated=terminated),
    )
