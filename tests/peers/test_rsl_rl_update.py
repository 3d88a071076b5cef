"""The same rollouts through our learner and through the published rsl-rl-lib."""

import copy
from itertools import pairwise

import pytest
import torch
from rsl_rl.storage import RolloutStorage

from tests.peers.parity import (
    FEATURES,
    TOLERANCE,
    UPDATES,
    Feature,
    Pair,
    compare,
    observations,
    reference_of,
)
from trainer.distributions import entropy
from trainer.losses import adapt_learning_rate
from trainer.recurrent import cut


def assert_close(ours, theirs):
    torch.testing.assert_close(ours, theirs, atol=TOLERANCE, rtol=TOLERANCE)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_updates_give_the_same_losses_kl_rate_and_weights(feature):
    parity = compare(feature)
    assert parity.within, parity.differences
    assert {"value loss", "surrogate loss", "entropy loss", "learning rate"} <= set(
        parity.differences
    )
    assert len(parity.rates) == UPDATES * 20


@pytest.mark.parametrize("feature", FEATURES[:1], ids=["defaults"])
def test_the_comparison_covers_a_rate_that_moves_both_ways(feature):
    rates = compare(feature).rates
    assert len(set(rates)) >= 4
    assert {a < b for a, b in pairwise(rates) if a != b} == {True, False}


SEEDED = [
    feature
    for feature in FEATURES
    if feature.name
    in ("observation normalisation", "state-dependent log std", "fixed std", "GRU", "LSTM")
]


@pytest.mark.parametrize("feature", SEEDED, ids=lambda feature: feature.name)
def test_networks_of_one_seed_have_the_same_weights_in_the_same_order(feature):
    pair = Pair(feature)
    trainer = pair.trainer
    torch.manual_seed(4)
    trainer.actor.__init__(
        pair.config.actor, trainer.actor_set.width({"policy": 7}), trainer.env.num_actions
    )
    torch.manual_seed(4)
    expected = reference_of(trainer).actor
    assert [name for name, _ in trainer.actor.named_parameters()] == [
        name for name, _ in expected.named_parameters()
    ]
    for name, tensor in trainer.actor.state_dict().items():
        torch.testing.assert_close(tensor, expected.state_dict()[name], atol=1e-7, rtol=0)
    assert trainer.actor.state_dict().keys() == expected.state_dict().keys()


@pytest.mark.parametrize("feature", SEEDED, ids=lambda feature: feature.name)
def test_the_actor_says_the_same_of_an_action(feature):
    pair = Pair(feature)
    pair.collect()
    pair.update(0)
    pair.align()
    trainer, reference = pair.trainer, pair.reference.actor
    trainer.observe()
    obs = observations(trainer.obs)
    torch.manual_seed(9)
    with torch.inference_mode():
        action = reference(obs, stochastic_output=True)
        decision = trainer.actor.act(
            trainer.obs["policy"], torch.Generator().manual_seed(9), trainer.actor_hidden
        )
        assert_close(decision.action, action)
        assert_close(decision.log_prob.squeeze(1), reference.get_output_log_prob(action))
        assert_close(decision.mean, reference.output_mean)
        assert_close(decision.std.expand_as(decision.mean), reference.output_std)
        assert_close(entropy(decision.std).expand(16, 1).squeeze(1), reference.output_entropy)


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "rmsprop"])
def test_a_state_of_their_optimizer_continues_in_ours(optimizer):
    pair = Pair(Feature("", {"optimizer": optimizer}))
    pair.collect()
    pair.update(0)
    pair.trainer.learner.load_state_dict(copy.deepcopy(pair.reference.optimizer.state_dict()))
    pair.collect()
    assert max(pair.update(1).values()) <= TOLERANCE


# Where we differ on purpose.


def test_they_leave_worlds_out_that_do_not_divide_and_we_refuse():
    dones = torch.zeros(8, 16)
    storage = RolloutStorage("rl", 16, 8, observations({"policy": torch.zeros(16, 7)}), [3])
    storage.dones.copy_(dones.unsqueeze(-1))
    storage.distribution_params = (storage.actions, storage.actions)
    batches = list(storage.recurrent_mini_batch_generator(3, 1))
    assert sum(batch.actions.shape[1] for batch in batches) == 15
    trainer = Pair(FEATURES[-1]).trainer
    trainer.config = trainer.config.model_copy(update={"num_mini_batches": 3})
    with pytest.raises(ValueError, match="16 worlds do not divide by 3"):
        trainer.sample()


def test_trajectories_are_cut_and_ordered_as_theirs():
    torch.manual_seed(0)
    dones = torch.rand(8, 16) < 0.2
    steps = torch.randn(8, 16, 7)
    storage = RolloutStorage("rl", 16, 8, observations({"policy": torch.zeros(16, 7)}), [3])
    storage.dones.copy_(dones.unsqueeze(-1))
    storage.observations["policy"].copy_(steps)
    storage.distribution_params = (storage.actions, storage.actions)
    (batch,) = storage.recurrent_mini_batch_generator(1, 1)
    pieces = cut(dones)
    longest = pieces.masks.shape[0]  # they pad to T, we to the longest
    assert torch.equal(pieces.masks, batch.masks[:longest])
    assert not batch.masks[longest:].any()
    assert torch.equal(pieces.pad(steps), batch.observations["policy"][:longest])


@pytest.mark.parametrize("state_dependent", [False, True])
def test_below_its_range_their_std_has_no_gradient_and_ours_comes_back(state_dependent):
    feature = Feature("", actor={"state_dependent_std": state_dependent})
    pair = Pair(feature)
    ours, theirs = pair.trainer.actor, pair.reference.actor
    obs = pair.trainer.obs["policy"]
    for actor in (ours, theirs):
        with torch.no_grad():
            if state_dependent:
                head = actor.mlp[-1] if actor is ours else actor.mlp[-2]
                head.bias[3:] = -0.05
            else:
                actor.distribution.std_param.fill_(-0.05)
    theirs(observations(pair.trainer.obs), stochastic_output=True)
    (-theirs.output_entropy.mean()).backward()
    ours.project_std()
    (-entropy(ours(obs)[1]).mean()).backward()
    gradients = [
        (actor.mlp[-1] if actor is ours else actor.mlp[-2]).bias.grad[3:]
        if state_dependent
        else actor.distribution.std_param.grad
        for actor in (ours, theirs)
    ]
    assert (gradients[0] < 0).all()
    assert not gradients[1].any()


def test_before_the_first_step_a_kl_of_rounding_size_raises_their_rate_and_not_ours():
    pair = Pair(FEATURES[0])
    pair.collect()
    pair.reference.actor.get_kl_divergence = lambda *params: torch.full((32,), 1e-14)
    pair.reference.update()
    assert pair.rates[0] == pytest.approx(1.5e-3)
    assert adapt_learning_rate(1e-3, 1e-14, 0.01, unmoved=True) == 1e-3
    assert adapt_learning_rate(1e-3, 1e-14, 0.01) == pytest.approx(1.5e-3)  # behind a step
