"""The Gaussian over actions: densities, and every kind of standard deviation."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.config import ActorConfig
from trainer.distributions import entropy, kl, log_prob
from trainer.policy import Actor

MEANS = st.lists(st.floats(-3, 3), min_size=3, max_size=3)
STDS = st.lists(st.floats(0.05, 5), min_size=3, max_size=3)


def float64(values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def small_actor(**settings: object) -> Actor:
    torch.manual_seed(0)
    return Actor(ActorConfig(hidden_dims=(8,), **settings), num_obs=5, num_actions=3)


def test_log_prob_of_the_mean_is_minus_half_log_two_pi_per_dimension():
    mean = torch.tensor([[0.5, -2.0]])
    expected = -math.log(2 * math.pi)  # two dimensions of std 1
    assert log_prob(mean, mean, torch.ones(2)).item() == pytest.approx(expected, abs=1e-6)


def test_log_prob_of_a_known_point():
    # ((3 - 1) / 2)^2 = 1, so ln p = -1/2 - ln 2 - ln(2 pi) / 2
    got = log_prob(torch.tensor([[3.0]]), torch.tensor([[1.0]]), torch.tensor([2.0]))
    assert got.shape == (1, 1)
    assert got.item() == pytest.approx(-0.5 - math.log(2) - 0.5 * math.log(2 * math.pi), abs=1e-6)


@pytest.mark.parametrize(("std", "expected"), [(1.0, 17.027262), (0.5, 8.709496)])
def test_entropy_of_twelve_dimensions(std, expected):
    assert entropy(torch.full((12,), std)).item() == pytest.approx(expected, abs=1e-5)


def test_kl_of_known_gaussians():
    # ln(2 / 1) + (1 + (1 - 0)^2) / (2 * 4) - 1/2
    got = kl(torch.ones(1, 1), torch.ones(1, 1), torch.zeros(1, 1), torch.full((1,), 2.0))
    assert got.item() == pytest.approx(math.log(2) + 0.25 - 0.5, abs=1e-6)


@pytest.mark.parametrize(("shift", "widening"), [(1e-5, 0.0), (0.0, 2e-5), (1e-5, 2e-5)])
def test_the_kl_of_the_smallest_steps_is_not_lost_in_float32(shift, widening):
    mean, std = torch.full((1, 12), 0.5), torch.ones(12)
    expected = 12 * (shift**2 / 2 + widening**2)  # to second order
    got = kl(mean, std, mean + shift, std + widening).item()
    assert got == pytest.approx(expected, rel=0.05)


@given(MEANS, STDS, MEANS, STDS)
def test_kl_is_never_negative_and_zero_only_between_equals(old_mean, old_std, mean, std):
    old = float64(old_mean), float64(old_std)
    new = float64(mean), float64(std)
    assert kl(*old, *old).item() == 0.0
    assert kl(*old, *new).item() >= -1e-12
    moved = max(abs(a - b) for a, b in zip(old_mean + old_std, mean + std, strict=True))
    if moved > 1e-3:
        assert kl(*old, *new).item() > 0.0


@given(MEANS, STDS, MEANS, STDS)
def test_densities_agree_with_torch_distributions(mean, std, other_mean, other_std):
    ours = float64(mean), float64(std)
    others = float64(other_mean), float64(other_std)
    gaussian, other = torch.distributions.Normal(*ours), torch.distributions.Normal(*others)
    action = others[0]
    torch.testing.assert_close(log_prob(action, *ours)[0], gaussian.log_prob(action).sum())
    torch.testing.assert_close(entropy(ours[1])[0], gaussian.entropy().sum())
    expected = torch.distributions.kl_divergence(gaussian, other).sum()
    torch.testing.assert_close(kl(*ours, *others)[0], expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("std_type", ["scalar", "log"])
def test_std_starts_at_init_std(std_type):
    torch.testing.assert_close(
        small_actor(std_type=std_type, init_std=0.3).std.detach(), torch.full((3,), 0.3)
    )


@pytest.mark.parametrize(("std_type", "value"), [("scalar", -0.05), ("log", -3.0), ("log", -90.0)])
@pytest.mark.parametrize("loaded", [True, False])
def test_a_bad_std_parameter_never_stops_a_rollout(std_type, value, loaded):
    actor = small_actor(std_type=std_type)
    if loaded:
        state = {
            name: torch.full_like(tensor, value) if "std_param" in name else tensor
            for name, tensor in actor.state_dict().items()
        }
        actor.load_state_dict(state)
    else:
        with torch.no_grad():
            next(actor.distribution.parameters()).fill_(value)
    decision = actor.act(torch.randn(4, 5), torch.Generator().manual_seed(7))
    assert (decision.std > 0).all()
    assert torch.isfinite(decision.action).all()
    assert torch.isfinite(decision.log_prob).all()


@pytest.mark.parametrize("std_type", ["scalar", "log"])
def test_at_its_lower_end_the_std_still_has_a_gradient(std_type):
    actor = small_actor(std_type=std_type)
    parameter = next(actor.distribution.parameters())
    with torch.no_grad():
        parameter.fill_(-50.0)
    actor.project_std()
    entropy(actor.std).sum().backward()
    assert parameter.grad is not None
    assert (parameter.grad > 0).all()


def test_projection_leaves_a_parameter_in_range_bit_for_bit():
    actor = small_actor(init_std=0.123)
    before = actor.distribution.std_param.detach().clone()
    actor.project_std()
    assert torch.equal(actor.distribution.std_param.detach(), before)


def test_log_std_has_an_entropy_gradient_of_one_per_dimension():
    actor = small_actor(std_type="log")
    entropy(actor.std).sum().backward()
    torch.testing.assert_close(actor.distribution.log_std_param.grad, torch.ones(3))


@pytest.mark.parametrize("std_type", ["scalar", "log"])
def test_projection_keeps_both_ends_of_the_range(std_type):
    actor = small_actor(std_type=std_type, std_range=(0.2, 1.5))
    for value, expected in ((-90.0, 0.2), (90.0, 1.5)):
        with torch.no_grad():
            next(actor.distribution.parameters()).fill_(value)
        actor.project_std()
        torch.testing.assert_close(actor.std.detach(), torch.full((3,), expected))


def test_a_range_from_zero_still_ends_above_it():
    actor = small_actor(std_range=(0.0, 1.0))
    with torch.no_grad():
        actor.distribution.std_param.zero_()
    actor.project_std()
    assert actor.std.tolist() == pytest.approx([1e-6] * 3)


@pytest.mark.parametrize("std_type", ["scalar", "log"])
def test_a_fixed_std_has_no_gradient(std_type):
    actor = small_actor(std_type=std_type, init_std=0.4, learn_std=False)
    mean, std = actor(torch.randn(6, 5))
    (log_prob(torch.zeros(6, 3), mean, std).sum() + entropy(std).sum()).backward()
    assert next(actor.distribution.parameters()).grad is None
    assert actor.mlp[0].weight.grad is not None


# A standard deviation that depends on the observation.


@pytest.mark.parametrize("std_type", ["scalar", "log"])
def test_a_state_dependent_std_starts_at_init_std_for_every_observation(std_type):
    actor = small_actor(std_type=std_type, init_std=0.3, state_dependent_std=True)
    mean, std = actor(torch.randn(7, 5))
    assert mean.shape == std.shape == (7, 3)
    torch.testing.assert_close(std.detach(), torch.full((7, 3), 0.3), atol=1e-6, rtol=0)
    assert list(actor.state_dict()) == ["mlp.0.weight", "mlp.0.bias", "mlp.2.weight", "mlp.2.bias"]
    assert actor.mlp[-1].out_features == 6


def test_a_state_dependent_std_can_differ_between_observations():
    actor = small_actor(state_dependent_std=True)
    torch.nn.init.normal_(actor.mlp[-1].weight, std=0.1)
    decision = actor.act(torch.randn(4, 5), torch.Generator().manual_seed(7))
    assert decision.std.shape == (4, 3)
    assert decision.std.std() > 1e-3
    normal = torch.distributions.Normal(decision.mean, decision.std)
    torch.testing.assert_close(
        decision.log_prob, normal.log_prob(decision.action).sum(-1, keepdim=True)
    )
    torch.testing.assert_close(actor.decide(torch.zeros(2, 5))[0], actor(torch.zeros(2, 5))[0])


@pytest.mark.parametrize(("std_type", "raw"), [("scalar", -0.05), ("log", -90.0)])
def test_outside_its_range_a_state_dependent_std_finds_back(std_type, raw):
    actor = small_actor(std_type=std_type, state_dependent_std=True, std_range=(0.1, 2.0))
    head = actor.mlp[-1]
    with torch.no_grad():
        head.bias[3:] = raw
    mean, std = actor(torch.randn(6, 5))
    assert torch.isfinite(log_prob(mean, mean, std)).all()
    torch.testing.assert_close(std.detach(), torch.full((6, 3), 0.1))
    (-entropy(std).mean()).backward()  # the entropy bonus widens the noise
    assert (head.bias.grad[3:] < 0).all(), "a descent raises the standard deviation"


@pytest.mark.parametrize(("raw", "sign"), [(0.05, 1.0), (3.0, -1.0)])
def test_no_gradient_leads_a_state_dependent_std_further_out_of_its_range(raw, sign):
    actor = small_actor(state_dependent_std=True, std_range=(0.1, 2.0))
    head = actor.mlp[-1]
    with torch.no_grad():
        head.bias[3:] = raw
    _, std = actor(torch.randn(6, 5))
    (sign * std.sum()).backward()
    assert not head.bias.grad[3:].any()
