import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from trainer.config import ActorConfig, CriticConfig
from trainer.distributions import entropy, kl, log_prob
from trainer.policy import Actor, Critic

MEANS = st.lists(st.floats(-3, 3), min_size=3, max_size=3)
STDS = st.lists(st.floats(0.05, 5), min_size=3, max_size=3)


def float64(values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def small_actor(**settings: object) -> Actor:
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


def test_the_same_generator_draws_the_same_actions_whatever_the_global_seed():
    actor, obs = small_actor(), torch.randn(4, 5)
    draws = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        draws.append(actor.act(obs, torch.Generator().manual_seed(7)))
    assert torch.equal(draws[0].action, draws[1].action)


def test_the_stored_log_prob_belongs_to_the_stored_action():
    actor = small_actor(init_std=0.7)
    action, stored, mean, std, _ = actor.act(torch.randn(4, 5), torch.Generator().manual_seed(7))
    assert action.shape == mean.shape == (4, 3)
    assert std.shape == (3,)
    normal = torch.distributions.Normal(mean, std)
    torch.testing.assert_close(stored, normal.log_prob(action).sum(-1, keepdim=True))


def test_noise_has_the_standard_deviation_of_the_actor():
    actor = small_actor(init_std=0.5)
    action, _, mean, *_ = actor.act(torch.zeros(20_000, 5), torch.Generator().manual_seed(7))
    assert (action - mean).std().item() == pytest.approx(0.5, rel=0.01)


def test_state_dict_bears_the_names_of_rsl_rl():
    normalizer = ["_mean", "_var", "_std", "count"]
    assert set(small_actor(obs_normalization=True).state_dict()) == {
        "distribution.std_param",
        *(f"obs_normalizer.{name}" for name in normalizer),
        *(f"mlp.{layer}.{name}" for layer in (0, 2) for name in ("weight", "bias")),
    }
    assert "distribution.log_std_param" in small_actor(std_type="log").state_dict()


def test_layers_are_initialised_as_pytorch_does():
    torch.manual_seed(3)
    critic = Critic(CriticConfig(hidden_dims=(8, 6)), num_obs=5)
    torch.manual_seed(3)
    expected = [nn.Linear(5, 8), nn.Linear(8, 6), nn.Linear(6, 1)]
    for layer, reference in zip(list(critic.mlp)[::2], expected, strict=True):
        assert torch.equal(layer.weight, reference.weight)
        assert torch.equal(layer.bias, reference.bias)


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
