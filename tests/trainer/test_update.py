import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.guard import NonFiniteError
from trainer.mini_batches import sample
from trainer.observation_sets import ObservationSet
from trainer.policy import Actor, Critic
from trainer.rollout import Rollout, Transition
from trainer.targets import compute_returns, normalize_advantages
from trainer.update import Learner

NUM_OBS, NUM_ACTIONS = 4, 2
NETWORKS = {
    "actor": ActorConfig(hidden_dims=(16,), obs_normalization=True),
    "critic": CriticConfig(hidden_dims=(16,), obs_normalization=True),
}


def make_learner(**settings: object) -> Learner:
    torch.manual_seed(0)
    config = TrainerConfig(**{**NETWORKS, **settings})
    return Learner(
        config, Actor(config.actor, NUM_OBS, NUM_ACTIONS), Critic(config.critic, NUM_OBS)
    )


def collect(learner: Learner, num_steps=6, num_envs=8, seed=0) -> Rollout:
    """A rollout of random observations and rewards under the learner's policy, with targets."""
    rollout = Rollout(num_steps, num_envs, {"policy": NUM_OBS}, NUM_ACTIONS, "cpu")
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    with torch.inference_mode():
        for _ in range(num_steps):
            obs = random(num_envs, NUM_OBS)
            decision, values = learner.actor.act(obs, generator), learner.critic(obs)
            dones = random(num_envs) > 1.0
            rollout.add(
                Transition(
                    {"policy": obs}, decision[0], random(num_envs), dones, values, *decision[1:4]
                )
            )
        last_values = learner.critic(random(num_envs, NUM_OBS))
    compute_returns(rollout, last_values, 0.99, 0.95)
    normalize_advantages(rollout.advantages)
    return rollout


def update(learner: Learner, rollout: Rollout, seed=1):
    config = learner.config
    batches = sample(rollout, config.num_mini_batches, torch.Generator().manual_seed(seed))
    passes = [batch for _ in range(config.num_learning_epochs) for batch in batches]
    return [learner.optimize(batch, unmoved=i == 0) for i, batch in enumerate(passes)]


def weights(learner: Learner) -> list[torch.Tensor]:
    networks = (learner.actor, learner.critic)
    return [
        parameter.detach().clone() for network in networks for parameter in network.parameters()
    ]


def assert_same_bits(before: list[torch.Tensor], learner: Learner) -> None:
    for old, new in zip(before, weights(learner), strict=True):
        assert torch.equal(old, new)


@given(st.integers(1, 6), st.sampled_from([1, 2, 4]), st.integers(0, 2**32 - 1))
def test_every_sample_is_in_exactly_one_mini_batch_with_all_its_fields(
    num_steps, num_mini_batches, seed
):
    rollout = Rollout(num_steps, 4, {"policy": 1, "critic": 2}, 3, "cpu")
    row = torch.arange(rollout.num_samples, dtype=torch.float32).view(num_steps, 4, 1)
    for tensor in (*rollout.flat().observations.values(), *rollout.flat()[1:-1]):
        tensor.view(num_steps, 4, -1).copy_(row.expand(-1, -1, tensor.shape[-1]))
    generator = torch.Generator().manual_seed(seed)
    partition = sample(rollout, num_mini_batches, generator)
    seen = torch.cat([batch.actions[:, 0] for batch in partition])
    assert seen.sort().values.tolist() == list(range(rollout.num_samples))
    assert torch.equal(seen, partition.permutation.float())
    for batch in partition:
        rows = batch.actions[:, :1]
        for tensor in (*batch.observations.values(), *batch[1:-1]):
            assert torch.equal(tensor, rows.expand_as(tensor))


def test_every_update_has_a_partition_of_its_own_and_every_epoch_the_same_mini_batches():
    rollout = collect(make_learner())
    generator = torch.Generator().manual_seed(0)
    first, second = sample(rollout, 4, generator), sample(rollout, 4, generator)
    assert not torch.equal(first.permutation, second.permutation)
    for one, again in zip(first, first, strict=True):
        assert torch.equal(one.actions, again.actions)
        assert one.actions.is_contiguous()


def test_the_same_seed_makes_the_same_partition():
    rollout = collect(make_learner())
    one = sample(rollout, 4, torch.Generator().manual_seed(3)).permutation
    other = sample(rollout, 4, torch.Generator().manual_seed(3)).permutation
    assert torch.equal(one, other)


def test_samples_that_would_be_left_out_are_refused():
    rollout = Rollout(5, 7, {"policy": NUM_OBS}, NUM_ACTIONS, "cpu")
    with pytest.raises(ValueError, match=r"^35 samples do not divide by 4; nearest: 5 or 7$"):
        sample(rollout, 4, torch.Generator())


def test_a_policy_that_does_not_move_keeps_ratio_one_and_kl_zero():
    learner = make_learner(schedule="fixed")
    learner.update_normalizers(collect(learner))  # statistics other than 0 and 1
    learner.learning_rate = 0.0
    before = weights(learner)
    for result in update(learner, collect(learner)):
        assert result.ratio.mean().item() == pytest.approx(1.0, abs=1e-5)
        assert result.kl == pytest.approx(0.0, abs=1e-6)
        assert result.clip_fraction == 0.0
    assert_same_bits(before, learner)


def test_statistics_are_frozen_from_the_rollout_to_the_end_of_its_update():
    learner = make_learner()
    rollout = collect(learner)
    normalizer = learner.actor.obs_normalizer
    before = normalizer._mean.clone(), normalizer._std.clone()
    first = update(learner, rollout)[0]
    assert first.ratio.tolist() == pytest.approx([1.0] * len(first.ratio), abs=1e-6)
    assert torch.equal(normalizer._mean, before[0])
    assert torch.equal(normalizer._std, before[1])
    learner.update_normalizers(rollout)
    assert normalizer.count.item() == rollout.num_samples
    expected = rollout.observations["policy"].flatten(0, 1).mean(0)
    torch.testing.assert_close(normalizer._mean[0], expected)


def test_a_first_mini_batch_under_moved_statistics_would_show():
    # mean = normalised obs, std 1, obs 3: statistics (0, 1) at collection and (1, 2) at the update
    # make the ratio 0.142153, so the exact 1 above is no accident.
    obs, action = 3.0, 3.0 / 1.01
    means = [(obs - mean) / (std + 0.01) for mean, std in ((0.0, 1.0), (1.0, 2.0))]
    log_probs = [-0.5 * (action - mean) ** 2 for mean in means]
    assert math.exp(log_probs[1] - log_probs[0]) == pytest.approx(0.142153, abs=1e-6)


def test_an_update_learns():
    learner = make_learner(entropy_coef=0.0)
    rollout = collect(learner, num_steps=24)
    results = update(learner, rollout)
    assert len(results) == 20
    assert results[-4].value_loss < results[0].value_loss
    assert sum(r.surrogate for r in results[-4:]) < sum(r.surrogate for r in results[:4])


@pytest.mark.parametrize(
    ("kl_scale", "expected"), [(0.0, 1e-3), (1e-2, 1.5e-3), (10.0, 1e-3 / 1.5)]
)
def test_the_kl_sets_the_rate_of_the_very_step_it_precedes(kl_scale, expected):
    learner = make_learner()
    batch = sample(collect(learner), 4, torch.Generator().manual_seed(0))[0]
    batch.means.add_(kl_scale)  # the policy "was" elsewhere
    result = learner.optimize(batch, unmoved=True)
    assert result.learning_rate == expected
    assert [group["lr"] for group in learner.optimizer.param_groups] == [expected]


def test_rounding_moves_no_rate_before_the_first_step_and_the_smallest_kl_does_behind_it():
    for unmoved, expected in ((True, 1e-3), (False, 1.5e-3)):
        learner = make_learner()
        batch = sample(collect(learner), 4, torch.Generator().manual_seed(0))[0]
        batch.means.add_(1e-5)
        result = learner.optimize(batch, unmoved=unmoved)
        assert 0.0 < result.kl < 1e-9
        assert result.learning_rate == expected


def test_at_the_lowest_rate_every_mini_batch_behind_the_first_raises_it():
    learner = make_learner(learning_rate=1e-5, num_learning_epochs=1, entropy_coef=0.0)
    rates = [result.learning_rate for result in update(learner, collect(learner))]
    assert rates == pytest.approx([1e-5 * 1.5**i for i in range(len(rates))])


def test_a_fixed_rate_stays_whatever_the_kl():
    learner = make_learner(schedule="fixed")
    batch = sample(collect(learner), 4, torch.Generator().manual_seed(0))[0]
    batch.means.add_(10.0)
    assert learner.optimize(batch).learning_rate == 1e-3


def test_the_rate_comes_back_with_the_optimizer_state():
    learner = make_learner()
    learner.learning_rate = 4.4444e-4
    update(learner, collect(learner))
    resumed = make_learner()
    resumed.load_state_dict(learner.state_dict())
    assert resumed.learning_rate == learner.learning_rate
    moments = resumed.optimizer.state_dict()["state"][0]["exp_avg"]
    assert torch.equal(moments, learner.optimizer.state_dict()["state"][0]["exp_avg"])


def test_actor_and_critic_gradients_are_clipped_each_on_its_own():
    learner = make_learner(max_grad_norm=1e-3)
    batch = sample(collect(learner), 4, torch.Generator().manual_seed(0))[0]
    result = learner.optimize(batch)
    for network, before in (
        (learner.actor, result.actor_grad_norm),
        (learner.critic, result.critic_grad_norm),
    ):
        grads = torch.cat([parameter.grad.flatten() for parameter in network.parameters()])
        assert before > 1e-3
        assert grads.norm().item() == pytest.approx(1e-3, rel=1e-2)


def test_a_small_gradient_is_not_scaled():
    learner = make_learner(max_grad_norm=1e6)
    batch = sample(collect(learner), 4, torch.Generator().manual_seed(0))[0]
    result = learner.optimize(batch)
    grads = torch.cat([parameter.grad.flatten() for parameter in learner.critic.parameters()])
    assert grads.norm().item() == pytest.approx(result.critic_grad_norm, rel=1e-5)


@pytest.mark.parametrize(("target", "expected"), [(1.0, 3.24), (-0.9, 0.81)])
def test_a_value_is_clipped_around_the_stored_one(target, expected):
    """Old 1, new 2, return 3 or 1.1, but for a shift: a fresh old value would clip nothing."""
    learner = make_learner(clip_param=0.2)
    batch = sample(collect(learner), 4, torch.Generator().manual_seed(0))[0]
    with torch.no_grad():
        now = learner.critic(batch.observations["policy"])
    batch = batch._replace(values=now - 1.0, returns=now + target)
    assert learner.optimize(batch).value_loss == pytest.approx(expected, abs=1e-4)


def test_entropy_alone_makes_the_noise_grow():
    learner = make_learner(
        actor=ActorConfig(hidden_dims=(16,), std_type="log"), value_loss_coef=0.0
    )
    rollout = collect(learner)
    rollout.advantages.zero_()
    before = learner.actor.std.detach().clone()
    batch = sample(rollout, 1, torch.Generator().manual_seed(0))[0]
    learner.optimize(batch)
    torch.testing.assert_close(
        learner.actor.distribution.log_std_param.grad, torch.full((NUM_ACTIONS,), -0.01)
    )
    assert (learner.actor.std > before).all()


@pytest.mark.parametrize("parameter", [-0.05, 1e-6])
def test_a_std_driven_below_its_range_comes_back_after_the_step(parameter):
    learner = make_learner(actor=ActorConfig(hidden_dims=(16,), std_range=(0.01, 1e6)))
    with torch.no_grad():
        learner.actor.distribution.std_param.fill_(parameter)
    results = update(learner, collect(learner))
    assert all(math.isfinite(result.surrogate) for result in results)
    assert (learner.actor.std >= 0.01 - 1e-9).all()


def test_per_mini_batch_normalisation_leaves_the_samples_as_they_are():
    learner = make_learner(normalize_advantage_per_mini_batch=True)
    batch = sample(collect(learner), 4, torch.Generator().manual_seed(0))[0]
    before = batch.advantages.clone()
    learner.optimize(batch)
    assert torch.equal(batch.advantages, before)


def test_one_infinite_return_stops_the_update_before_any_step():
    learner = make_learner()
    rollout = collect(learner, num_steps=24, num_envs=2)
    before = weights(learner)
    rollout.returns[5, 1] = math.inf
    with pytest.raises(NonFiniteError, match=r"^returns: 1 of 48 non-finite$"):
        update(learner, rollout)
    assert_same_bits(before, learner)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("returns", "returns: 1 of 12 non-finite"),
        ("advantages", "advantages: 1 of 12 non-finite"),
        ("actions", "actions: 1 of 24 non-finite, column 1"),
        ("log_probs", "log_probs: 1 of 12 non-finite"),
    ],
)
def test_a_bad_mini_batch_is_refused_by_name_and_changes_no_bit(field, message):
    learner = make_learner()
    batch = sample(collect(learner), 4, torch.Generator().manual_seed(0))[0]
    before, state = weights(learner), learner.state_dict()["state"]
    getattr(batch, field)[3, -1] = math.nan
    with pytest.raises(NonFiniteError) as caught:
        learner.optimize(batch)
    assert str(caught.value) == message
    assert_same_bits(before, learner)
    assert state == {}, "the optimizer has not stepped"


def test_an_exploding_ratio_is_named():
    learner = make_learner()
    batch = sample(collect(learner), 4, torch.Generator().manual_seed(0))[0]
    before = weights(learner)
    batch.log_probs[0] = -1e4  # exp overflows
    with pytest.raises(NonFiniteError, match=r"^ratio: 1 of 12 non-finite$"):
        learner.optimize(batch)
    assert_same_bits(before, learner)


def test_an_overflowing_loss_is_named():
    learner = make_learner()
    batch = sample(collect(learner), 4, torch.Generator().manual_seed(0))[0]
    batch.returns[0] = 1e30  # finite, but its square is not
    with pytest.raises(NonFiniteError, match=r"^value_loss: 1 of 1 non-finite$"):
        learner.optimize(batch)


def test_a_bad_weight_is_seen_in_what_it_makes():
    learner = make_learner()
    batch = sample(collect(learner), 4, torch.Generator().manual_seed(0))[0]
    with torch.no_grad():
        learner.critic.mlp[0].weight[0, 0] = math.nan
    with pytest.raises(NonFiniteError, match=r"^new_values: 12 of 12 non-finite$"):
        learner.optimize(batch)


def test_a_rollout_collected_in_inference_mode_can_be_learnt_from():
    learner = make_learner()
    rollout = collect(learner)  # under inference_mode
    before = weights(learner)
    update(learner, rollout)
    learner.update_normalizers(rollout)
    assert any(not torch.equal(a, b) for a, b in zip(before, weights(learner), strict=True))
    rollout.observations["policy"].add_(1.0)
    learner.actor.obs_normalizer._mean.add_(1.0)


def test_two_updates_from_the_same_state_are_equal_bit_for_bit():
    learners = [make_learner(), make_learner()]
    for learner in learners:
        update(learner, collect(learner))
    assert_same_bits(weights(learners[0]), learners[1])


def test_each_network_reads_its_own_group():
    config = TrainerConfig(
        actor=ActorConfig(hidden_dims=(8,), obs_normalization=True),
        critic=CriticConfig(hidden_dims=(8,), obs_normalization=True),
    )
    actor, critic = Actor(config.actor, 3, NUM_ACTIONS), Critic(config.critic, 5)
    sets = ObservationSet(("actor",)), ObservationSet(("critic",))
    learner = Learner(config, actor, critic, *sets)
    rollout = Rollout(2, 4, {"actor": 3, "critic": 5}, NUM_ACTIONS, "cpu")
    for obs in rollout.observations.values():
        obs.normal_()
    rollout.stds.fill_(1.0)
    learner.optimize(sample(rollout, 2, torch.Generator())[0])
    learner.update_normalizers(rollout)
    expected = rollout.observations["critic"].flatten(0, 1).mean(0)
    torch.testing.assert_close(critic.obs_normalizer._mean[0], expected)
