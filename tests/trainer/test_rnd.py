"""The intrinsic reward: how far the predictor is from the target, scaled, weighted, scheduled."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from trainer.config import RndConfig, WeightSchedule
from trainer.keeping import copied
from trainer.rnd import (
    REWARD_DISCOUNT,
    DiscountedReturnNormalizer,
    IntrinsicReward,
    RandomNetworkDistillation,
    scheduled_weight,
)

N, S = 4, 3


def make(**config):
    torch.manual_seed(0)
    return RandomNetworkDistillation(RndConfig(**{"weight": 2.0, **config}), S, N, step_dt=0.1)


def states(seed=1):
    return torch.randn(N, S, generator=torch.Generator().manual_seed(seed))


def test_the_reward_is_the_distance_of_the_two_answers_times_weight_and_step():
    rnd = make(num_outputs=2)
    reward = rnd.intrinsic_reward(states())
    difference = rnd.target(states()) - rnd.predictor(states())
    expected = 2.0 * 0.1 * difference.square().sum(1).sqrt()
    torch.testing.assert_close(reward, expected)
    assert rnd.weight == pytest.approx(0.2)
    assert not reward.requires_grad


def test_the_loss_is_the_mean_square_of_what_the_reward_pays():
    rnd = make(num_outputs=2, weight=1.0)
    paid = rnd.intrinsic_reward(states()) / 0.1
    assert rnd.loss(states()).item() == pytest.approx(paid.square().mean().item() / 2)


def test_only_the_predictor_learns():
    rnd = make(learning_rate=0.02)
    before = {name: tensor.clone() for name, tensor in rnd.state_dict().items()}
    for _ in range(50):
        rnd.optimizer.zero_grad()
        rnd.loss(states()).backward()
        rnd.optimizer.step()
    changed = {name for name, old in before.items() if not torch.equal(old, rnd.state_dict()[name])}
    assert changed == {
        f"predictor.{layer}.{part}" for layer in (0, 2) for part in ("weight", "bias")
    }
    assert rnd.loss(states()).item() < 0.1 * make().loss(states()).item()


def test_a_width_of_minus_one_is_that_of_the_state():
    rnd = make(predictor_hidden_dims=[-1, 5])
    assert [tuple(p.shape) for p in rnd.predictor.parameters() if p.ndim == 2] == [
        (S, S),
        (5, S),
        (1, 5),
    ]


def test_states_are_normalised_by_the_rollouts_before():
    rnd = make(state_normalization=True)
    rows = 5.0 + 2.0 * torch.randn(1000, S, generator=torch.Generator().manual_seed(3))
    fresh = rnd.intrinsic_reward(rows)
    rnd.update_normalizer(rows)
    centred = (rows - rows.mean(0)) / (rows.std(0, correction=0) + 1e-2)
    expected = 0.2 * (rnd.target(centred) - rnd.predictor(centred)).norm(dim=1)
    torch.testing.assert_close(rnd.intrinsic_reward(rows), expected, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(fresh, expected, atol=1e-3)


def test_rewards_are_divided_by_the_spread_of_their_discounted_sums():
    normalizer = DiscountedReturnNormalizer(2)
    first = torch.tensor([1.0, 3.0])
    # rows 1 and 3: mean 2, variance 1
    torch.testing.assert_close(normalizer(first), first)
    second = torch.tensor([0.0, 1.0])
    sums = torch.tensor([REWARD_DISCOUNT, 3 * REWARD_DISCOUNT + 1.0])
    seen = torch.cat((first, sums))
    torch.testing.assert_close(normalizer(second), second / seen.std(correction=0))


def test_rewards_without_a_spread_stay_as_they_are():
    normalizer = DiscountedReturnNormalizer(2)
    torch.testing.assert_close(normalizer(torch.ones(2)), torch.ones(2))


@pytest.mark.parametrize(
    ("schedule", "weights"),
    [
        (None, [2.0] * 6),
        ({"mode": "constant"}, [2.0] * 6),
        ({"mode": "step", "final_step": 3, "final_value": 0.5}, [2, 2, 2, 0.5, 0.5, 0.5]),
        (
            {"mode": "linear", "initial_step": 1, "final_step": 4, "final_value": 0.5},
            [2, 2, 1.5, 1.0, 0.5, 0.5],
        ),
    ],
)
def test_the_weight_follows_its_schedule(schedule, weights):
    schedule = schedule and WeightSchedule(**schedule)
    assert [scheduled_weight(2.0, schedule, step) for step in range(6)] == pytest.approx(weights)


@given(
    step=st.integers(0, 10**6),
    start=st.integers(0, 1000),
    length=st.integers(1, 1000),
    ends=st.tuples(st.floats(0, 10), st.floats(0, 10)),
)
def test_a_linear_schedule_stays_between_its_ends(step, start, length, ends):
    schedule = WeightSchedule(
        mode="linear", initial_step=start, final_step=start + length, final_value=ends[1]
    )
    weight = scheduled_weight(ends[0], schedule, step)
    assert min(ends) - 1e-9 <= weight <= max(ends) + 1e-9


@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        ({"mode": "step", "final_step": 3}, 'mode = "step" needs final_value'),
        ({"mode": "constant", "final_step": 3}, 'final_step does not go with mode = "constant"'),
        (
            {"mode": "linear", "initial_step": 5, "final_step": 5, "final_value": 1.0},
            "final_step 5 must come after initial_step 5",
        ),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(schedule, sentence):
    with pytest.raises(ValidationError, match=sentence):
        WeightSchedule(**schedule)


@pytest.mark.parametrize("width", [0, -2])
def test_a_width_that_is_none_is_refused(width):
    with pytest.raises(ValidationError, match="or -1 for the width of the state"):
        RndConfig(predictor_hidden_dims=[width])


def test_a_state_continues_bit_for_bit():
    config = {"state_normalization": True, "reward_normalization": True, "num_outputs": 2}

    def go_on(rnd):
        rewards = []
        for seed in range(5):
            rewards.append(rnd.intrinsic_reward(states(seed)))
            rnd.optimizer.zero_grad()
            rnd.loss(states(seed)).backward()
            rnd.optimizer.step()
            rnd.update_normalizer(states(seed))
        return torch.stack(rewards)

    whole = make(**config)
    go_on(whole)
    saved = copied(
        {
            "training": whole.training_state(),
            "worlds": IntrinsicReward(whole, N, torch.device("cpu")).state_dict(),
        }
    )
    torch.manual_seed(5)
    again = RandomNetworkDistillation(RndConfig(weight=2.0, **config), S, N, step_dt=0.1)
    again.load_training_state(saved["training"])
    IntrinsicReward(again, N, torch.device("cpu")).load_state_dict(saved["worlds"])
    assert again.num_steps == 5
    assert torch.equal(go_on(whole), go_on(again))
    assert math.isfinite(whole.reward_normalizer.emp_norm._std.item())
