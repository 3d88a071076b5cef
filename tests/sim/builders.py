"""Small envs for the tests: real ones from presets, and worlds that only keep a record."""

from types import SimpleNamespace

import torch

from presets.loader import load
from sim.config import EnvConfig
from sim.env import make_env


def preset_config(name="go2_flat", **changes):
    """The env settings of a shipped preset, some replaced."""
    env = load(name).preset.env
    return EnvConfig.model_validate({**env.model_dump(), "num_envs": 4, **changes})


def preset_env(name="go2_flat", seed=1, **changes):
    return make_env(preset_config(name, **changes), "cpu", seed)


class RecordingScene:
    """Worlds without physics: what the env asks of them is written to `calls`."""

    def __init__(self, num_envs, calls=None):
        self.calls = [] if calls is None else calls
        self.num_envs = num_envs
        self.bad = torch.zeros(num_envs, dtype=torch.bool)
        self.env_origins = torch.zeros(num_envs, 3)
        self.robot = SimpleNamespace(
            name="recorded",
            joint_names=("left", "right"),
            body_names=("base", "foot"),
            actuated_joint_ids=[0, 1],
            heading_w=torch.zeros(num_envs),
            root_lin_vel_b=torch.zeros(num_envs, 3),
            root_ang_vel_b=torch.zeros(num_envs, 3),
            default_joint_pos=torch.zeros(num_envs, 2),
            set_joint_position_target=lambda target, joints: self.calls.append("apply"),
        )
        self.contacts = SimpleNamespace(body_names=("base", "foot"))

    def tick(self, last):
        self.calls.append("last tick" if last else "tick")

    def update(self):
        self.calls.append("update")

    def bad_worlds(self):
        self.calls.append("bad worlds")
        bad, self.bad = self.bad, torch.zeros_like(self.bad)
        return bad, dict.fromkeys(bad.nonzero().squeeze(1).tolist(), "qvel")

    def reset(self, ids):
        self.calls.append(f"scene reset {ids.tolist()}")

    def commit(self, ids):
        self.calls.append(f"commit {ids.tolist()}")
