import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from trainer.adapters.gymnasium import GymnasiumEnv, make
from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.loop import Trainer


class Counter(gymnasium.Env):
    """Counts its steps from a start of its own; an action above 0.5 ends the episode."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Box(-1, 1, (1,), np.float32)
    metadata = {"render_fps": 50}  # noqa: RUF012 - gymnasium's way

    def __init__(self, truncates_at=1000):
        self.truncates_at = truncates_at
        self.episode = 0

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.episode += 1
        self.count = 0
        return np.array([self.episode, 0.0]), {}

    def step(self, action):
        self.count += 1
        terminated = bool(action[0] > 0.5)
        observation = np.array([self.episode, float(self.count)])
        return observation, 10.0 * self.count, terminated, self.count >= self.truncates_at, {}


def counters(num_envs=3, mode=AutoresetMode.DISABLED, kind=SyncVectorEnv, **options):
    return kind([lambda: Counter(**options)] * num_envs, autoreset_mode=mode)


@pytest.fixture(params=[AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def env(request):
    env = GymnasiumEnv(counters(mode=request.param), seed=1, time_limit=4)
    yield env
    env.close()


def push(*actions):
    return torch.tensor(actions)[:, None]


def test_the_shape_of_the_worlds(env):
    assert (env.num_envs, env.num_actions, env.max_episode_length) == (3, 1, 4)
    assert env.step_dt == 1 / 50
    assert env.observation_terms == {"policy": (("observation", 2),)}
    assert env.action_names == ("action_0",)
    first = env.observe()["policy"]
    assert first.dtype == torch.float32
    assert first.tolist() == [[1, 0]] * 3
    assert env.observe()["policy"] is not first


def test_an_ended_world_is_seen_next_at_the_start_of_its_new_episode(env):
    feedback = env.step(push(0.0, 0.9, 0.0))
    assert feedback.terminated.tolist() == [False, True, False]
    assert feedback.time_outs.tolist() == [False] * 3
    assert feedback.reward.tolist() == [10, 10, 10]  # of the old episode
    assert env.observe()["policy"].tolist() == [[1, 1], [2, 0], [1, 1]]
    assert env.episode_length.tolist() == [1, 0, 1]
    feedback = env.step(push(0.0, 0.0, 0.0))
    assert feedback.reward.tolist() == [20, 10, 20]
    assert env.observe()["policy"].tolist() == [[1, 2], [2, 1], [1, 2]]


def test_the_endings_of_a_step_are_logged_as_shares():
    env = GymnasiumEnv(counters(), seed=1, time_limit=2)
    assert env.step(push(0.0, 0.0, 0.0)).log == {}
    assert env.step(push(0.0, 0.9, 0.0)).log == {
        "Episode_Termination/terminated": pytest.approx(1 / 3),
        "Episode_Termination/time_out": pytest.approx(2 / 3),
    }


def test_the_time_limit_is_counted_here_from_any_age_and_a_fall_on_it_is_a_fall():
    env = GymnasiumEnv(counters(), seed=1, time_limit=4)
    env.episode_length[:] = torch.tensor([3, 3, 0])
    feedback = env.step(push(0.0, 0.9, 0.0))
    assert feedback.time_outs.tolist() == [True, False, False]
    assert feedback.terminated.tolist() == [False, True, False]
    assert env.observe()["policy"][:, 0].tolist() == [2, 2, 1]
    assert env.episode_length.tolist() == [0, 0, 1]


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_a_limit_of_the_worlds_own_is_a_time_out(mode):
    env = GymnasiumEnv(counters(mode=mode, truncates_at=2), seed=1)
    env.step(push(0.0, 0.0, 0.0))
    feedback = env.step(push(0.0, 0.9, 0.0))
    assert feedback.terminated.tolist() == [False, True, False]
    assert feedback.time_outs.tolist() == [True, False, True]
    assert env.observe()["policy"].tolist() == [[2, 0]] * 3


def test_worlds_that_reset_a_step_too_late_are_refused():
    with pytest.raises(ValueError, match="SAME_STEP or DISABLED"):
        GymnasiumEnv(counters(mode=AutoresetMode.NEXT_STEP), seed=1)


def test_worlds_in_processes_of_their_own_do_the_same():
    envs = AsyncVectorEnv([Counter] * 2, autoreset_mode=AutoresetMode.DISABLED, context="fork")
    env = GymnasiumEnv(envs, seed=1, time_limit=3)
    feedback = env.step(push(0.9, 0.0))
    assert feedback.terminated.tolist() == [True, False]
    assert env.observe()["policy"].tolist() == [[2, 0], [1, 1]]
    env.close()


def test_a_registered_environment_is_repeated_by_its_seed_and_has_its_limit_counted():
    def walk(seed):
        env = make("CartPole-v1", 4, seed)
        assert env.max_episode_length == 500
        generator = torch.Generator().manual_seed(0)
        seen = [env.observe()["policy"]]
        for _ in range(60):
            env.step(torch.randn(4, 2, generator=generator))
            seen.append(env.observe()["policy"])
        env.close()
        return torch.stack(seen)

    assert torch.equal(walk(3), walk(3))
    assert not torch.equal(walk(3), walk(4))


def test_options_and_a_dictionary_of_observations():
    gymnasium.register("Pairs-v0", entry_point=Pairs, max_episode_steps=7)
    try:
        env = make("Pairs-v0", 2, 0, factor=3.0, max_episode_steps=2)
        assert env.max_episode_length == 2
        # b is one of three, as its own column each
        assert env.observe()["policy"].tolist() == [[3, 0, 1, 0]] * 2
    finally:
        del gymnasium.registry["Pairs-v0"]


class Pairs(gymnasium.Env):
    observation_space = spaces.Dict(a=spaces.Box(-9, 9, (1,)), b=spaces.Discrete(3))
    action_space = spaces.Discrete(2)

    def __init__(self, factor=1.0):
        self.factor = factor

    def reset(self, seed=None, options=None):
        return {"a": np.array([self.factor], np.float32), "b": 1}, {}


CARTPOLE = TrainerConfig(
    seed=2,
    num_steps_per_env=64,
    init_at_random_ep_len=False,
    num_learning_epochs=8,
    num_mini_batches=4,
    entropy_coef=0.0,
    actor=ActorConfig(hidden_dims=(32,), activation="tanh"),
    critic=CriticConfig(hidden_dims=(32,), activation="tanh"),
)


def test_cartpole_is_learnt():
    """Pushes at random hold the pole for 22 steps; a few seconds of training many times that."""
    trainer = Trainer(make("CartPole-v1", 16, 2), CARTPOLE)
    for _ in range(25):
        trainer.iterate()
    assert trainer.metrics()["Train/mean_episode_length"] > 100
    trainer.env.close()


def test_on_a_resume_the_learner_goes_on_and_the_worlds_begin_anew():
    trainer = Trainer(make("CartPole-v1", 4, 2), CARTPOLE)
    trainer.iterate()
    state = trainer.state_dict()
    assert state["env"] == {}
    again = Trainer(make("CartPole-v1", 4, 2), CARTPOLE)
    first = again.obs["policy"].clone()
    again.load_state_dict(state)
    assert again.completed_iterations == 1
    assert torch.equal(again.obs["policy"], first)  # not one of the old episodes
    for name, weight in trainer.actor.state_dict().items():
        assert torch.equal(again.actor.state_dict()[name], weight)
    again.iterate()
