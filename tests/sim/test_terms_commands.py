"""The velocity command: when it is redrawn, how it steers, what it measures."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sim.terms import commands  # noqa: F401 - importing registers its terms
from tests.sim.recorded import recorded_env


def commanded_env(num_envs=3, **params):
    env = recorded_env(
        num_envs=num_envs,
        commands={"base_velocity": {"term": "uniform_velocity", **params}},
        rewards={},
        curriculum={},
        events={},
    )
    return env, env.commands.terms["base_velocity"]


def steps_of_redraws(env, term, steps):
    """Env steps, counted from 1, after which another heading target is in force."""
    seen, before = [], term.heading_target.clone()
    for step in range(1, steps + 1):
        env.step(torch.zeros(env.num_envs, 2))
        if (term.heading_target != before).all():
            seen.append(step)
        before = term.heading_target.clone()
    return seen


def test_ten_seconds_at_50_hz_ring_at_steps_499_and_999_of_an_episode():
    env, term = commanded_env()
    env.episode_length[:] = 999
    env.step(torch.zeros(3, 2))  # the time-out starts the episode that is counted
    # 1000 is the reset at the next time limit, then it starts over
    assert steps_of_redraws(env, term, 2000) == [499, 999, 1000, 1499, 1999, 2000]


def test_the_first_episode_of_a_new_env_rings_one_step_later():
    env, term = commanded_env()
    assert steps_of_redraws(env, term, 999) == [500]


def test_a_drawn_time_is_within_its_range():
    _, term = commanded_env(num_envs=256, resampling_time=(1.0, 2.0))
    assert term.time_left.min() >= 1.0
    assert term.time_left.max() <= 2.0
    assert term.time_left.mean().item() == pytest.approx(1.5, abs=0.06)


def test_draws_fill_their_ranges():
    _, term = commanded_env(
        num_envs=4096, lin_vel_x=(-0.5, 1.5), lin_vel_y=(-0.2, 0.1), ang_vel_z=(2.0, 3.0)
    )
    low, high = term.value.amin(0), term.value.amax(0)
    torch.testing.assert_close(low, torch.tensor([-0.5, -0.2, 2.0]), rtol=0, atol=0.01)
    torch.testing.assert_close(high, torch.tensor([1.5, 0.1, 3.0]), rtol=0, atol=0.01)
    assert term.heading_target.amin().item() == pytest.approx(-math.pi, abs=0.02)
    assert term.heading_target.amax().item() == pytest.approx(math.pi, abs=0.02)


def test_a_new_env_shows_the_command_as_drawn():
    _, term = commanded_env(num_envs=256, rel_standing_envs=1.0)
    assert term.is_standing.all()
    assert (term.value != 0).all()


def test_standing_worlds_are_told_to_stand_from_the_first_step_on():
    env, term = commanded_env(num_envs=4096, rel_standing_envs=0.02)
    env.step(torch.zeros(4096, 2))
    stands = (term.value == 0).all(1)
    assert stands.tolist() == term.is_standing.tolist()
    assert stands.float().mean().item() == pytest.approx(0.02, abs=0.01)


@pytest.mark.parametrize(
    ("target", "heading", "turn"),
    [
        (0.5, 0.0, 0.25),
        (-1.0, 0.5, -0.75),
        (3.0, 0.0, 1.0),  # 1.5, held within ang_vel_z
        (3.0, -3.0, 0.5 * (6.0 - 2 * math.pi)),  # the short way round
        (0.0, 0.0, 0.0),
    ],
)
def test_the_turning_rate_closes_the_heading_error(target, heading, turn):
    env, term = commanded_env(rel_standing_envs=0.0)
    term.heading_target[:] = target
    env.scene.robot.heading_w[:] = heading
    env.step(torch.zeros(3, 2))
    assert term.value[:, 2].tolist() == pytest.approx([turn] * 3, abs=1e-6)


def test_worlds_that_do_not_steer_keep_the_drawn_turning_rate():
    env, term = commanded_env(rel_heading_envs=0.0, rel_standing_envs=0.0)
    drawn = term.value.clone()
    env.step(torch.zeros(3, 2))
    assert term.value.tolist() == drawn.tolist()


@pytest.mark.parametrize(
    ("planar", "kept"),
    [
        ((0.15, 0.1), (0.0, 0.0)),
        ((0.2, 0.0), (0.0, 0.0)),
        ((0.21, 0.0), (0.21, 0.0)),
        ((0.0, 0.19), (0.0, 0.0)),
        ((0.15, 0.15), (0.15, 0.15)),  # 0.212 together
        ((0.21, 0.05), (0.21, 0.05)),
    ],
)
def test_small_planar_commands_are_drawn_as_zero_by_their_norm(planar, kept):
    (x, y), turn = planar, 0.3
    _, term = commanded_env(
        lin_vel_x=(x, x), lin_vel_y=(y, y), ang_vel_z=(turn, turn), small_command_threshold=0.2
    )
    assert term.value[0].tolist() == pytest.approx([*kept, turn])


def test_metrics_are_means_over_the_episode_under_the_command_in_force():
    env, term = commanded_env(rel_standing_envs=0.0, rel_heading_envs=0.0)
    for forward in (0.0, 1.0):
        term.value[:] = torch.tensor([0.3, 0.4, 0.5])
        env.scene.robot.root_lin_vel_b[:, 0] = forward
        env.scene.robot.root_ang_vel_b[:, 2] = forward
        env.step(torch.zeros(3, 2))
    env.scene.fallen[:] = True
    log = env.step(torch.zeros(3, 2)).log
    # |(0.3, 0.4)| = 0.5; |(-0.7, 0.4)| = 0.806; |0.5| and |-0.5|
    xy = (0.5 + math.hypot(0.7, 0.4)) / 2
    assert log["Metrics/base_velocity/error_vel_xy"].item() == pytest.approx(xy)
    assert log["Metrics/base_velocity/error_vel_yaw"].item() == pytest.approx(0.5)
    assert log["Metrics/base_velocity/success_rate"].item() == 0.0


def test_success_is_both_errors_below_their_thresholds():
    env, term = commanded_env(rel_standing_envs=0.0, rel_heading_envs=0.0)
    term.value[:] = torch.tensor([[0.49, 0.0, 0.39], [0.51, 0.0, 0.0], [0.0, 0.0, 0.41]])
    env.step(torch.zeros(3, 2))
    env.scene.fallen[:] = True
    log = env.step(torch.zeros(3, 2)).log
    assert log["Metrics/base_velocity/success_rate"].item() == pytest.approx(1 / 3)


@given(st.integers(0, 2**31), st.floats(0.0, 1.0))
def test_steering_never_leaves_the_range(seed, limit):
    env, term = commanded_env(ang_vel_z=(-limit, limit))
    env.scene.robot.heading_w.uniform_(
        -math.pi, math.pi, generator=torch.Generator().manual_seed(seed)
    )
    term.update()
    assert (term.value[:, 2].abs() <= torch.tensor(limit)).all()
