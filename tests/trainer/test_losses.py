import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.distributions import entropy
from trainer.losses import adapt_learning_rate, surrogate_losses, value_losses


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


def test_surrogate_takes_the_pessimistic_side():
    losses = surrogate_losses(column(1.5, 1.5, 0.5, 0.5), column(1, -1, 1, -1), 0.2)
    torch.testing.assert_close(losses, column(-1.2, 1.5, -0.5, 0.8))
    assert losses.mean().item() == pytest.approx(0.15)


@given(st.floats(0.01, 10), st.floats(-5, 5), st.floats(0.01, 0.9))
def test_surrogate_is_never_below_the_unclipped_one(ratio, advantage, clip):
    loss = surrogate_losses(column(ratio), column(advantage), clip).item()
    assert loss >= -ratio * advantage - 1e-12
    if abs(ratio - 1.0) <= clip:
        assert loss == pytest.approx(-ratio * advantage)


@given(st.floats(1.3, 10), st.booleans())
def test_beyond_the_clip_a_further_gain_has_no_gradient(distance, up):
    ratio = column(distance if up else 1.0 / distance).requires_grad_()
    advantage = column(1.0 if up else -1.0)
    surrogate_losses(ratio, advantage, 0.2).sum().backward()
    assert ratio.grad.item() == 0.0


@pytest.mark.parametrize(("target", "expected"), [(3.0, 3.24), (1.1, 0.81)])
def test_clipped_value_loss_takes_the_worse_error(target, expected):
    loss = value_losses(column(2.0), column(1.0), column(target), 0.2)
    assert loss.item() == pytest.approx(expected)


def test_unclipped_value_loss_is_the_squared_error_without_one_half():
    assert value_losses(column(2.0), column(1.0), column(5.0), None).item() == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("kl", "expected"),
    [
        (0.0, 1e-3),
        (-1e-9, 1e-3),
        (4.5e-11, 1.5e-3),
        (0.0049999, 1.5e-3),
        (0.005, 1e-3),
        (0.01, 1e-3),
        (0.02, 1e-3),
        (0.0200001, 1e-3 / 1.5),
    ],
)
def test_the_rate_moves_outside_the_dead_band_alone(kl, expected):
    assert adapt_learning_rate(1e-3, kl, 0.01) == expected


@pytest.mark.parametrize(
    ("kl", "expected"), [(1e-14, 1e-3), (1e-6, 1e-3), (2e-6, 1.5e-3), (1.0, 1e-3 / 1.5)]
)
def test_before_the_first_step_a_kl_of_rounding_size_is_none(kl, expected):
    assert adapt_learning_rate(1e-3, kl, 0.01, unmoved=True) == expected
    assert adapt_learning_rate(1e-3, kl, 1e-8, unmoved=True) <= 1e-3


def test_the_rate_stops_at_floor_and_ceiling():
    assert adapt_learning_rate(1.2e-5, 1.0, 0.01) == 1e-5
    assert adapt_learning_rate(9e-3, 0.001, 0.01) == 1e-2


@pytest.mark.parametrize(("kl", "end", "steps"), [(1.0, 1e-5, 12), (0.001, 1e-2, 6)])
def test_the_ends_are_reached_after_a_known_number_of_steps(kl, end, steps):
    rate, taken = 1e-3, 0
    while rate != end:
        rate, taken = adapt_learning_rate(rate, kl, 0.01), taken + 1
    assert taken == steps


def test_the_entropy_bonus_widens_the_policy():
    log_std = torch.zeros(12, requires_grad=True)
    loss = -0.01 * entropy(log_std.exp()).mean()
    loss.backward()
    assert loss.item() == pytest.approx(-0.170273, abs=1e-6)
    torch.testing.assert_close(log_std.grad, torch.full((12,), -0.01))
