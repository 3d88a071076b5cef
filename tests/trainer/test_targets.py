import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.rollout import Rollout
from trainer.targets import (
    bootstrap_time_outs,
    compute_returns,
    generalized_advantages,
    normalize_advantages,
    target_metrics,
)

GAMMA, LAM = 0.99, 0.95


def series(*values: float) -> torch.Tensor:
    """One world's values over time, [T, 1, 1] float64."""
    return torch.tensor(values, dtype=torch.float64).view(-1, 1, 1)


def advantages_of(rewards, values, last_value, terminated, time_outs):
    """Rewards as the env gave them to advantages, one world, by way of the bootstrap."""
    bootstrapped = torch.stack(
        [
            bootstrap_time_outs(
                rewards[t, :, 0],
                values[t],
                torch.tensor([t in time_outs]),
                GAMMA,
                torch.tensor([t in terminated]),
            )
            for t in range(len(rewards))
        ]
    ).unsqueeze(-1)
    dones = torch.tensor([t in terminated or t in time_outs for t in range(len(rewards))])
    last = torch.tensor([[last_value]], dtype=torch.float64)
    return generalized_advantages(bootstrapped, dones.view(-1, 1, 1), values, last, GAMMA, LAM)


def test_a_time_out_adds_the_value_before_the_step_and_cuts_the_chain():
    rewards, values = series(1, 1, 1, 1), series(2, 3, 4, 5)
    advantages = advantages_of(rewards, values, 6.0, terminated=(), time_outs=(1,))
    expected = series(2.882285, 0.97, 3.77457, 1.94)
    torch.testing.assert_close(advantages, expected, atol=1e-6, rtol=0)
    returns = series(4.882285, 3.97, 7.77457, 6.94)
    torch.testing.assert_close(advantages + values, returns, atol=1e-6, rtol=0)


def test_a_fall_at_the_time_limit_is_a_fall():
    advantages = advantages_of(series(1, 1), series(2, 3), 100.0, terminated=(1,), time_outs=(1,))
    torch.testing.assert_close(advantages, series(0.089, -2.0), atol=1e-6, rtol=0)


def test_the_bootstrap_touches_timed_out_worlds_alone():
    reward = torch.tensor([1.0, 1.0, 1.0])
    values = torch.tensor([[10.0], [20.0], [math.nan]])
    got = bootstrap_time_outs(reward, values, torch.tensor([False, True, False]), 0.5)
    assert got.tolist() == [1.0, 11.0, 1.0]
    assert reward.tolist() == [1.0, 1.0, 1.0]


def rollouts():
    floats = st.floats(-10, 10)
    return st.integers(1, 8).flatmap(
        lambda length: st.tuples(
            st.lists(floats, min_size=length, max_size=length),
            st.lists(floats, min_size=length, max_size=length),
            st.lists(st.booleans(), min_size=length, max_size=length),
            floats,
        )
    )


@given(rollouts(), st.floats(0, 1))
def test_with_lambda_one_the_return_is_the_discounted_reward(data, gamma):
    rewards, values, dones, last = data
    advantages = generalized_advantages(
        series(*rewards),
        torch.tensor(dones).view(-1, 1, 1),
        series(*values),
        torch.tensor([[last]], dtype=torch.float64),
        gamma,
        1.0,
    )
    expected, following = [], last
    for reward, done in zip(reversed(rewards), reversed(dones), strict=True):
        following = reward + (0.0 if done else gamma * following)
        expected.insert(0, following)
    torch.testing.assert_close(
        advantages + series(*values), series(*expected), atol=1e-9, rtol=1e-9
    )


@given(rollouts(), st.floats(0, 1), st.data())
def test_nothing_behind_a_done_reaches_the_steps_before_it(data, lam, choice):
    rewards, values, dones, last = data
    cut = choice.draw(st.integers(0, len(rewards) - 1))
    dones[cut] = True

    def advantages(rewards, values, last):
        return generalized_advantages(
            series(*rewards),
            torch.tensor(dones).view(-1, 1, 1),
            series(*values),
            torch.tensor([[last]], dtype=torch.float64),
            GAMMA,
            lam,
        )[: cut + 1]

    other_rewards = rewards[: cut + 1] + [reward + 7.0 for reward in rewards[cut + 1 :]]
    other_values = values[: cut + 1] + [value - 3.0 for value in values[cut + 1 :]]
    before = advantages(rewards, values, last)
    assert torch.equal(before, advantages(other_rewards, other_values, last + 5.0))


def filled_rollout(num_steps=4, num_envs=3) -> tuple[Rollout, torch.Tensor]:
    torch.manual_seed(0)
    rollout = Rollout(num_steps, num_envs, {"policy": 2}, 1, "cpu")
    rollout.rewards.normal_()
    rollout.values.normal_()
    rollout.dones.copy_(torch.rand(num_steps, num_envs, 1) < 0.3)
    return rollout, torch.randn(num_envs, 1)


def test_worlds_do_not_mix():
    rollout, last = filled_rollout()
    compute_returns(rollout, last, GAMMA, LAM)
    for n in range(rollout.num_envs):
        alone = generalized_advantages(
            rollout.rewards[:, n : n + 1],
            rollout.dones[:, n : n + 1],
            rollout.values[:, n : n + 1],
            last[n : n + 1],
            GAMMA,
            LAM,
        )
        torch.testing.assert_close(rollout.advantages[:, n : n + 1], alone)


def test_returns_are_advantages_plus_values_and_are_never_normalised():
    rollout, last = filled_rollout()
    compute_returns(rollout, last, GAMMA, LAM)
    expected = rollout.advantages + rollout.values
    normalize_advantages(rollout.advantages)
    torch.testing.assert_close(rollout.returns, expected)


def test_normalisation_uses_the_unbiased_standard_deviation():
    advantages = torch.tensor([1.0, 2.0, 3.0, 4.0]).view(2, 2, 1)
    normalize_advantages(advantages)
    expected = [-1.1618950, -0.3872983, 0.3872983, 1.1618950]
    assert advantages.flatten().tolist() == pytest.approx(expected, abs=1e-6)


def test_equal_advantages_become_zero():
    advantages = torch.full((2, 2, 1), 3.0)
    normalize_advantages(advantages)
    assert advantages.abs().max().item() == 0.0


def test_explained_variance_is_one_for_a_perfect_critic_and_zero_for_a_constant_one():
    rollout, _ = filled_rollout()
    rollout.returns.normal_()
    rollout.values.copy_(rollout.returns)
    rollout.advantages.copy_(rollout.returns - rollout.values)
    assert target_metrics(rollout)["Loss/explained_variance"] == pytest.approx(1.0)
    rollout.values.fill_(4.0)
    rollout.advantages.copy_(rollout.returns - rollout.values)
    assert target_metrics(rollout)["Loss/explained_variance"] == pytest.approx(0.0, abs=1e-5)


def test_explained_variance_is_nan_where_all_returns_are_equal():
    rollout, _ = filled_rollout()
    rollout.returns.fill_(2.0)
    rollout.advantages.normal_()
    assert math.isnan(target_metrics(rollout)["Loss/explained_variance"])


def test_target_metrics_give_mean_and_deviation_of_the_raw_advantages():
    rollout, _ = filled_rollout(num_steps=2, num_envs=2)
    rollout.advantages.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0]).view(2, 2, 1))
    metrics = target_metrics(rollout)
    assert metrics["Loss/advantage_mean"] == pytest.approx(2.5)
    assert metrics["Loss/advantage_std"] == pytest.approx(1.2909944)
