import pytest
import torch
from torch import nn

from trainer.config import ActorConfig, CriticConfig
from trainer.policy import Actor, Critic


def small_actor(**settings: object) -> Actor:
    return Actor(ActorConfig(hidden_dims=(8,), **settings), num_obs=5, num_actions=3)


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
