"""An env of five methods: its order is Isaac Lab's, held by worlds that keep a record."""

import pytest
import torch

from sim.config import EnvConfig
from sim.direct import DirectEnv
from sim.step import Feedback
from sim.tasks import DirectTask
from tests.sim import recorded  # noqa: F401 - importing registers its terms
from tests.sim.builders import RecordingScene

TASK = DirectTask(
    name="recorded",
    env="",
    robot="recorded",
    action_names=("left",),
    observations={"policy": (("steps", 1),)},
    params={"fall_at": 0.0},
)
EVENTS = {
    "recorded_startup": {"mode": "startup"},
    "recorded_reset": {"mode": "reset"},
    "recorded_push": {"mode": "interval", "interval_range_s": (0.06, 0.06)},
}
TICKS = ["apply action", "tick"] * 3 + ["apply action", "last tick", "update"]


class RecordedEnv(DirectEnv):
    """Says when it is called; its reward is infinite in world 0, whoever falls."""

    def _pre_physics_step(self, actions):
        super()._pre_physics_step(actions)
        self.scene.calls.append(f"pre physics {actions[:, 0].tolist()}")

    def _apply_action(self):
        self.scene.calls.append("apply action")

    def _get_dones(self):
        self.scene.calls.append(f"dones at {self.episode_length.tolist()}")
        return self.scene.fallen.clone(), self.episode_length >= self.max_episode_length

    def _get_rewards(self):
        self.scene.calls.append(f"rewards, terminated {self.terminated.tolist()}")
        return torch.tensor([torch.inf, 2.0])

    def _get_observations(self):
        self.scene.calls.append("observations")
        return {"policy": self.episode_length.float().unsqueeze(1)}

    def _reset_idx(self, ids):
        super()._reset_idx(ids)
        self.scene.calls.append(f"own reset {ids.tolist()}")

    def _start_episodes(self, ids):
        return super()._start_episodes(ids) | {"ended": float(len(ids))}


def recorded_env(**changes):
    config = {
        "robot": "recorded",
        "num_envs": 2,
        "physics_dt": 0.005,
        "decimation": 4,
        "episode_length_s": 20.0,
        "events": EVENTS,
        **changes,
    }
    scene = RecordingScene(2)
    scene.fallen = torch.zeros(2, dtype=torch.bool)
    return RecordedEnv(TASK, EnvConfig.model_validate(config), "cpu", 0, scene)


def test_a_new_env_applies_startup_events_once_and_resets_every_world():
    assert recorded_env().scene.calls == [
        "startup event [0, 1] False",
        "scene reset [0, 1]",
        "reset event [0, 1]",
        "own reset [0, 1]",
        "commit [0, 1]",
    ]


def test_a_step_without_an_ending_runs_in_order():
    env = recorded_env()
    env.scene.calls.clear()
    feedback = env.step(torch.tensor([[1.0], [2.0]]))
    env.observe()
    assert env.scene.calls == [
        "pre physics [1.0, 2.0]",
        *TICKS,
        "bad worlds",
        "dones at [1, 1]",
        "rewards, terminated [False, False]",
        "observations",
    ]
    assert isinstance(feedback, Feedback)
    # as its method gave it: not multiplied by the length of a step
    assert feedback.reward.tolist() == [torch.inf, 2.0]
    assert feedback.log == {}


def test_a_step_with_an_ending_and_an_event_runs_in_order():
    env = recorded_env()
    for _ in range(2):
        env.step(torch.zeros(2, 1))
    env.scene.calls.clear()
    env.scene.fallen[1] = True
    feedback = env.step(torch.zeros(2, 1))
    observed = env.observe()["policy"]
    assert env.scene.calls == [
        "pre physics [0.0, 0.0]",
        *TICKS,
        "bad worlds",
        "dones at [3, 3]",
        "rewards, terminated [False, True]",
        "scene reset [1]",
        "reset event [1]",
        "own reset [1]",
        "commit [1]",
        # the reset wound world 1's timer up
        "interval event [0]",
        "commit [0]",
        "observations",
    ]
    assert observed[:, 0].tolist() == [3.0, 0.0]
    assert feedback.log == {"ended": 1.0}


def test_a_bad_world_ends_with_reward_0_whatever_the_class_says():
    env = recorded_env(episode_length_s=0.02)
    env.scene.bad[0] = True
    feedback = env.step(torch.zeros(2, 1))
    assert feedback.reward.tolist() == [0.0, 2.0]
    assert feedback.terminated.tolist() == [True, False]
    assert feedback.time_outs.tolist() == [False, True]
    assert feedback.faults == (
        "world 0 was reset at step 1: its qvel was not finite or out of bounds",
    )


def test_a_fall_at_the_time_limit_is_the_fall_alone():
    env = recorded_env(episode_length_s=0.02)
    env.scene.fallen[0] = True
    feedback = env.step(torch.zeros(2, 1))
    assert feedback.terminated.tolist() == [True, False]
    assert feedback.time_outs.tolist() == [False, True]


def test_actions_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"shape \[2, 2\], the env takes \[2, 1\]"):
        recorded_env().step(torch.zeros(2, 2))


def test_a_preset_sets_the_tasks_numbers():
    assert recorded_env().params == {"fall_at": 0.0}
    assert recorded_env(params={"fall_at": 3.0}).params == {"fall_at": 3.0}
