"""The direct cartpole: its rules in float64, its time limit, and its likeness to the other one."""

import math

import numpy as np
import pytest
import torch

from presets.loader import load
from presets.problems import PresetError
from tests.sim.builders import preset_env

N = 64


@pytest.fixture
def env():
    env = preset_env("cartpole_direct", num_envs=N)
    yield env
    env.close()


def scatter(env, seed=0):
    """Give every world a random state, some beyond the bound; return it as [N, 4] float64."""
    draw = np.random.default_rng(seed)
    state = draw.uniform([-3.9, -7, -5, -9], [3.9, 7, 5, 9], (N, 4)).astype(np.float32)
    rows = torch.from_numpy(state)
    env.scene.robot.write_joint_state(env.all_ids, rows[:, :2], rows[:, 2:])
    return state.astype(np.float64)


def test_reward_is_the_weighted_sum_times_the_length_of_a_step(env, monkeypatch):
    # physics that leaves every world where it was put
    monkeypatch.setattr(env.scene, "tick", lambda last: None)
    x, angle, x_dot, angle_dot = scatter(env).T
    feedback = env.step(torch.zeros(N, 1))
    out = np.abs(x) > 3.0
    wrapped = np.arctan2(np.sin(angle), np.cos(angle))
    expected = (
        1.0 * ~out - 2.0 * out - wrapped**2 - 0.01 * np.abs(x_dot) - 0.005 * np.abs(angle_dot)
    ) / 60
    np.testing.assert_allclose(feedback.reward, expected, rtol=1e-4, atol=1e-6)
    assert feedback.terminated.tolist() == out.tolist()
    assert 0 < out.sum() < N
    assert not feedback.time_outs.any()
    assert feedback.log["Metrics/success_rate"].item() == 0.0


def test_observation_is_cart_pole_and_their_velocities(env):
    state = scatter(env)
    np.testing.assert_array_equal(env.observe()["policy"], state)
    assert env.observation_terms == {"policy": (("joint_pos", 2), ("joint_vel", 2))}


def test_the_action_is_a_hundred_newtons_each_at_every_tick(env):
    env.step(torch.full((N, 1), 0.25))
    assert env.scene.physics.ctrl[:, 0].tolist() == [25.0] * N
    assert env.action_names == ("slider_to_cart",)


def test_a_tilted_pole_ends_no_episode(env, monkeypatch):
    monkeypatch.setattr(env.scene, "tick", lambda last: None)
    hanging = torch.tensor([[0.0, math.pi]]).repeat(N, 1)
    env.scene.robot.write_joint_state(env.all_ids, hanging, torch.zeros(N, 2))
    assert not env.step(torch.zeros(N, 1)).terminated.any()


def test_episodes_last_300_steps_and_end_as_time_outs(env, monkeypatch):
    monkeypatch.setattr(env.scene, "tick", lambda last: None)
    assert env.max_episode_length == 300
    for _ in range(299):
        feedback = env.step(torch.zeros(N, 1))
        assert not (feedback.terminated | feedback.time_outs).any()
    feedback = env.step(torch.zeros(N, 1))
    assert feedback.time_outs.all()
    assert not feedback.terminated.any()
    assert feedback.log["Metrics/success_rate"].item() == 1.0


def test_episodes_begin_all_over_the_ranges():
    env = preset_env("cartpole_direct", num_envs=4096)
    reach = torch.tensor([1.0, math.pi / 4, 0.5, math.pi / 4])
    drawn = env.observe()["policy"] / reach
    torch.testing.assert_close(drawn.amax(0), torch.ones(4), rtol=0, atol=0.01)
    torch.testing.assert_close(drawn.amin(0), -torch.ones(4), rtol=0, atol=0.01)
    env.close()


def test_from_one_state_both_cartpoles_give_one_reward_and_state(env):
    managed = preset_env("cartpole", num_envs=N)
    for one in (env, managed):
        scatter(one)
        one.scene.commit(one.all_ids)
    action = torch.linspace(-1, 1, N).unsqueeze(1)
    direct, other = env.step(action), managed.step(action)
    torch.testing.assert_close(direct.reward, other.reward)
    assert direct.terminated.tolist() == other.terminated.tolist()
    stays = ~direct.terminated
    for group in ("policy",):
        torch.testing.assert_close(env.observe()[group][stays], managed.observe()[group][stays])
    managed.close()


def test_it_goes_on_from_a_saved_state_bit_for_bit(env):
    twin = preset_env("cartpole_direct", seed=9, num_envs=N)
    draw = torch.Generator().manual_seed(0)
    actions = torch.randn(40, N, 1, generator=draw)
    for action in actions[:20]:
        env.step(action)
    twin.load_state_dict(env.state_dict())
    env.episode_length[3] = twin.episode_length[3] = 290
    for action in actions[20:]:
        ours, theirs = env.step(action), twin.step(action)
        assert torch.equal(ours.reward, theirs.reward)
        assert torch.equal(env.observe()["policy"], twin.observe()["policy"])
    twin.close()


WRONG = {
    'env.task="cartpole_drect"': "there is no direct task 'cartpole_drect'; did you mean "
    "cartpole_direct?",
    "env.params.action_scal=3.0": "has no number 'action_scal'; did you mean action_scale?",
    "env.rewards.is_alive.weight=1.0": "the task 'cartpole_direct' brings its own",
    'env.robot="go2"': "the task 'cartpole_direct' needs the robot cartpole",
}


@pytest.mark.parametrize("setting", WRONG)
def test_what_does_not_fit_the_task_is_named(setting):
    with pytest.raises(PresetError) as caught:
        load("cartpole_direct", [setting])
    assert WRONG[setting] in "\n".join(caught.value.messages)


def test_numbers_of_a_task_need_a_task():
    with pytest.raises(PresetError, match="these are a direct task's numbers"):
        load("cartpole", ["env.params.action_scale=3.0"])
