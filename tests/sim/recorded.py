"""Terms that write into the record of their worlds, and an env of them."""

import torch

from sim.config import EnvConfig
from sim.env import ManagerBasedEnv
from sim.managers.command import Command
from sim.terms import actions, terminations  # noqa: F401 - importing registers their terms
from sim.terms.registry import command, curriculum, event, observation, reward, termination
from tests.sim.builders import RecordingScene


@observation
def recorded_observation(env):
    env.scene.calls.append("observe")
    return env.episode_length.float().unsqueeze(1)


@reward
def recorded_reward(env):
    env.scene.calls.append(f"reward under {env.commands.value('goal')[0, 0]:g}")
    return torch.ones(env.num_envs)


@termination
def recorded_fall(env):
    env.scene.calls.append(f"terminations at {env.episode_length[0]}")
    return env.scene.fallen


@event
def recorded_startup(env, ids):
    has_all_managers = hasattr(env, "curriculum")
    env.scene.calls.append(f"startup event {ids.tolist()} {has_all_managers}")


@event
def recorded_reset(env, ids):
    env.scene.calls.append(f"reset event {ids.tolist()}")


@event
def recorded_push(env, ids):
    env.scene.calls.append(f"interval event {ids.tolist()}")


@curriculum
def recorded_curriculum(env, ids):
    env.scene.calls.append(f"curriculum {ids.tolist()} under {env.commands.value('goal')[0, 0]:g}")
    return 7.0


@command("recorded_command")
class RecordedCommand(Command):
    """Its value is the number of draws so far; its error is its value."""

    metric_names = ("error",)

    def __init__(self, env, seconds: float = 10.0):
        super().__init__(env, 1, (seconds, seconds))
        self.drawn = 0

    def draw(self, ids):
        self.env.scene.calls.append(f"command draw {ids.tolist()}")
        self.drawn += 1
        self.value[ids] = float(self.drawn)

    def update(self):
        self.env.scene.calls.append("command update")

    def measure(self):
        self.env.scene.calls.append("command measure")
        return self.value.T.clone()


def recorded_env(num_envs=3, **changes):
    config = {
        "robot": "recorded",
        "num_envs": num_envs,
        "physics_dt": 0.005,
        "decimation": 4,
        "episode_length_s": 20.0,
        "actions": {"joints": {"term": "joint_position"}},
        "commands": {"goal": {"term": "recorded_command"}},
        "observations": {"policy": {"recorded_observation": {}}},
        "rewards": {"recorded_reward": {"weight": 1.5}},
        "terminations": {"time_out": {"time_out": True}, "recorded_fall": {}},
        "events": {
            "recorded_startup": {"mode": "startup"},
            "recorded_reset": {"mode": "reset"},
            "recorded_push": {"mode": "interval", "interval_range_s": (0.06, 0.06)},
        },
        "curriculum": {"recorded_curriculum": {}},
    }
    scene = RecordingScene(num_envs)
    scene.fallen = torch.zeros(num_envs, dtype=torch.bool)
    return ManagerBasedEnv(EnvConfig.model_validate({**config, **changes}), "cpu", 0, scene)
