from types import SimpleNamespace

import pytest
import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from trainer.adapters.rsl_rl import RslRlEnv
from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.loop import Trainer

N = 4


class Worlds(VecEnv):
    """Buffers that are used again at every step, as simulators do."""

    def __init__(self):
        self.num_envs, self.num_actions, self.max_episode_length = N, 2, 10
        self.device, self.cfg = "cpu", {}
        self.episode_length_buf = torch.zeros(N, dtype=torch.long)
        self.seen = []
        self._policy, self._critic = torch.zeros(N, 3), torch.zeros(N, 5, dtype=torch.float64)
        self._reward, self._dones = torch.zeros(N), torch.zeros(N, dtype=torch.long)
        self.extras = {"time_outs": torch.zeros(N, dtype=torch.bool)}

    def get_observations(self):
        return TensorDict({"policy": self._policy, "critic": self._critic}, batch_size=[N])

    def step(self, actions):
        self.seen.append(actions)
        self.episode_length_buf += 1
        self._policy += 1
        self._reward += 0.5
        self._dones[:] = self.episode_length_buf >= self.max_episode_length
        self.extras["time_outs"][:] = self._dones.bool()
        self.episode_length_buf[self._dones.bool()] = 0
        return self.get_observations(), self._reward, self._dones, self.extras


def test_the_shape_of_the_worlds():
    env = RslRlEnv(Worlds())
    assert (env.num_envs, env.num_actions, env.max_episode_length) == (N, 2, 10)
    assert env.observation_terms == {"policy": (("policy", 3),), "critic": (("critic", 5),)}
    assert env.action_names == ("action_0", "action_1")
    assert env.observe()["critic"].dtype == torch.float32


def test_what_was_returned_does_not_change_with_the_env_s_own_buffers():
    env = RslRlEnv(Worlds())
    first, feedback = env.observe(), env.step(torch.zeros(N, 2))
    second = env.observe()
    env.step(torch.zeros(N, 2))
    assert first["policy"].unique().tolist() == [0]
    assert second["policy"].unique().tolist() == [1]
    assert feedback.reward.unique().tolist() == [0.5]


def test_a_done_is_either_a_time_out_or_a_termination():
    worlds = Worlds()
    env = RslRlEnv(worlds)
    answers = (torch.tensor([1, 1, 0, 0]), torch.tensor([True, False, True, False]))
    worlds.step = lambda actions: (
        worlds.get_observations(), torch.zeros(N, 1), answers[0], {"time_outs": answers[1]}
    )  # fmt: skip
    feedback = env.step(torch.zeros(N, 2))
    assert feedback.time_outs.tolist() == [True, False, False, False]
    assert feedback.terminated.tolist() == [False, True, False, False]
    assert feedback.reward.shape == (N,)
    worlds.step = lambda actions: (worlds.get_observations(), torch.zeros(N), answers[0], {})
    assert env.step(torch.zeros(N, 2)).terminated.tolist() == [True, True, False, False]


def test_the_trainer_sets_the_ages_of_the_worlds_in_their_own_buffer():
    worlds = Worlds()
    RslRlEnv(worlds).episode_length.fill_(9)
    assert worlds.episode_length_buf.tolist() == [9] * N


def test_a_log_is_taken_once_under_rsl_rl_s_tags():
    worlds = Worlds()
    env = RslRlEnv(worlds)
    worlds.extras["log"] = {"Episode_Reward/alive": torch.tensor([1.0, 3.0]), "level": 2}
    assert env.step(torch.zeros(N, 2)).log == {"Episode_Reward/alive": 2.0, "Episode/level": 2.0}
    assert env.step(torch.zeros(N, 2)).log == {}  # the same dictionary again: nothing is new
    worlds.extras["log"] = {"Episode_Reward/alive": torch.tensor(4.0), "level": 2}
    assert env.step(torch.zeros(N, 2)).log["Episode_Reward/alive"] == 4.0
    worlds.extras["episode"] = {"reward": 7.0}  # the older name wins, as in RSL-RL
    assert env.step(torch.zeros(N, 2)).log == {"Episode/reward": 7.0}


def test_managers_name_the_terms():
    worlds = Worlds()
    worlds.unwrapped = SimpleNamespace(
        step_dt=0.02,
        observation_manager=SimpleNamespace(
            active_terms={"policy": ["lin_vel", "height"], "critic": ["wrong"]},
            group_obs_term_dim={"policy": [(2,), (1,)], "critic": [(4,)]},
        ),
        reward_manager=SimpleNamespace(
            active_terms=["alive"], get_term_cfg=lambda name: SimpleNamespace(weight=1.5)
        ),
    )
    env = RslRlEnv(worlds)
    assert env.step_dt == 0.02
    assert env.observation_terms["policy"] == (("lin_vel", 2), ("height", 1))
    assert env.observation_terms["critic"] == (("critic", 5),)
    assert env.reward_terms == {"alive": 1.5}


def test_images_are_refused_by_the_name_of_their_group():
    worlds = Worlds()
    worlds._critic = torch.zeros(N, 3, 8, 8)
    with pytest.raises(ValueError, match=r"observation group critic: .* not \[4, 3, 8, 8\]"):
        RslRlEnv(worlds)


def test_an_iteration_of_training_with_a_critic_that_sees_more():
    worlds = Worlds()
    config = TrainerConfig(
        seed=1,
        num_steps_per_env=12,
        clip_actions=0.5,
        actor=ActorConfig(hidden_dims=(8,)),
        critic=CriticConfig(hidden_dims=(8,)),
    )
    trainer = Trainer(RslRlEnv(worlds), config)
    trainer.iterate()
    assert len(worlds.seen) == 12
    assert torch.stack(worlds.seen).abs().max() <= 0.5
    assert trainer.metrics()["Train/mean_episode_length"] <= 10
