"""The same rollouts through our learner and through the published rsl-rl-lib."""

import copy
from itertools import pairwise

import pytest
import torch
from rsl_rl.algorithms import PPO
from rsl_rl.models import MLPModel
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.metrics import update_metrics
from trainer.mini_batches import sample
from trainer.policy import Actor, Critic
from trainer.rollout import Rollout, Transition
from trainer.targets import bootstrap_time_outs, compute_returns, normalize_advantages
from trainer.update import Learner

T, N, NUM_OBS, NUM_ACTIONS = 8, 16, 7, 3
UPDATES = 4
HIDDEN_DIMS = (32, 16)

VARIANTS = {
    "defaults": {},
    "normalised observations": {"obs_normalization": True},
    "log std": {"std_type": "log", "init_std": 0.6},
    "fixed schedule": {"schedule": "fixed", "learning_rate": 3e-4},
    "unclipped value loss": {"use_clipped_value_loss": False},
    "advantages per mini-batch": {"normalize_advantage_per_mini_batch": True},
    "tight gradient clip": {"max_grad_norm": 0.05},
    "other coefficients": {"entropy_coef": 0.05, "value_loss_coef": 0.5, "clip_param": 0.1},
    "tanh": {"activation": "tanh"},
}


class Pair:
    """Our learner and RSL-RL's, with the same weights."""

    def __init__(
        self, *, obs_normalization=False, std_type="scalar", init_std=1.0, activation="elu", **ppo
    ):
        torch.manual_seed(0)
        network = {
            "hidden_dims": HIDDEN_DIMS,
            "activation": activation,
            "obs_normalization": obs_normalization,
        }
        noise = {"init_std": init_std, "std_type": std_type}
        self.config = TrainerConfig(
            actor=ActorConfig(**network, **noise), critic=CriticConfig(**network), **ppo
        )
        self.actor = Actor(self.config.actor, NUM_OBS, NUM_ACTIONS)
        self.critic = Critic(self.config.critic, NUM_OBS)
        self.learner = Learner(self.config, self.actor, self.critic)
        self.rollout = Rollout(T, N, {"policy": NUM_OBS}, NUM_ACTIONS, "cpu")

        obs = observations(torch.zeros(N, NUM_OBS))
        groups = {"actor": ["policy"], "critic": ["policy"]}
        actor = MLPModel(
            obs,
            groups,
            "actor",
            NUM_ACTIONS,
            **network,
            distribution_cfg={"class_name": "GaussianDistribution", **noise},
        )
        critic = MLPModel(obs, groups, "critic", 1, **network)
        storage = RolloutStorage("rl", N, T, obs, [NUM_ACTIONS])
        self.reference = PPO(actor, critic, storage, **ppo)
        self.reference_kl: list[float] = []
        self.reference_rate: list[float] = []
        self._spy()

    def _spy(self) -> None:
        """Record RSL-RL's KL and rate for each of its optimizer steps."""
        divergence, step = self.reference.actor.get_kl_divergence, self.reference.optimizer.step

        def recorded_divergence(*params):
            kl = divergence(*params)
            self.reference_kl.append(kl.mean().item())
            return kl

        def recorded_step():
            self.reference_rate.append(self.reference.optimizer.param_groups[0]["lr"])
            return step()

        self.reference.actor.get_kl_divergence = recorded_divergence
        self.reference.optimizer.step = recorded_step

    def align(self) -> None:
        """Give RSL-RL our weights to the bit; optimizers and rates go on as they are.

        The rollout comes from our policy. One rounding off it, RSL-RL would see a KL of 1e-14
        instead of 0 in its first mini-batch, and raise its rate.
        """
        self.reference.actor.load_state_dict(self.actor.state_dict())
        self.reference.critic.load_state_dict(self.critic.state_dict())

    def collect(self, generator: torch.Generator) -> None:
        """Feed the same random steps, by our policy, to both sides, up to the targets."""
        self.align()
        self.rollout.clear()
        with torch.inference_mode():
            for _ in range(T):
                obs = 2.0 * torch.randn(N, NUM_OBS, generator=generator) + 0.5
                decision, values = self.actor.act(obs, generator), self.critic(obs)
                reward = torch.randn(N, generator=generator)
                terminated, time_outs = torch.rand(2, N, generator=generator) < 0.1
                time_outs &= ~terminated
                dones = terminated | time_outs
                bootstrapped = bootstrap_time_outs(
                    reward, values, time_outs, self.config.gamma, terminated
                )
                action, log_prob, mean, std, _ = decision
                self.rollout.add(
                    Transition(
                        {"policy": obs}, action, bootstrapped, dones, values, log_prob, mean, std
                    )
                )
                theirs = self.reference.transition
                theirs.observations, theirs.actions, theirs.values = (
                    observations(obs),
                    action,
                    values,
                )
                theirs.actions_log_prob = log_prob.squeeze(1)
                theirs.distribution_params = (mean, std.expand_as(mean))
                self.reference.process_env_step(
                    observations(obs), reward, dones, {"time_outs": time_outs}
                )
            last_obs = torch.randn(N, NUM_OBS, generator=generator)
            last_values = self.critic(last_obs)
            self.reference.compute_returns(observations(last_obs))
        compute_returns(self.rollout, last_values, self.config.gamma, self.config.lam)
        if not self.config.normalize_advantage_per_mini_batch:
            normalize_advantages(self.rollout.advantages)

    def update(self, seed: int):
        """Run one update on both sides from one seed; return our results and RSL-RL's losses."""
        self.reference_kl.clear()
        self.reference_rate.clear()
        torch.manual_seed(seed)
        losses = self.reference.update()
        generator = torch.Generator().manual_seed(seed)
        batches = sample(self.rollout, self.config.num_mini_batches, generator)
        results = [
            self.learner.optimize(batch)
            for _ in range(self.config.num_learning_epochs)
            for batch in batches
        ]
        self.learner.update_normalizers(self.rollout)
        return results, losses


def observations(policy: torch.Tensor) -> TensorDict:
    return TensorDict({"policy": policy}, batch_size=[len(policy)])


def assert_close(ours, theirs):
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_updates_give_the_same_losses_kl_rate_and_weights(variant):
    pair = Pair(**variant)
    generator = torch.Generator().manual_seed(11)
    rates = []
    for seed in range(UPDATES):
        pair.collect(generator)
        stored = pair.reference.storage
        assert_close(pair.rollout.rewards, stored.rewards)
        assert_close(pair.rollout.returns, stored.returns)
        assert_close(pair.rollout.advantages, stored.advantages)

        results, losses = pair.update(seed)
        metrics = update_metrics(results, pair.actor.std)
        for name in ("value", "surrogate", "entropy"):
            assert metrics[f"Loss/{name}"] == pytest.approx(losses[name], abs=1e-5, rel=1e-5)
        if pair.config.schedule == "adaptive":
            assert [r.kl for r in results] == pytest.approx(pair.reference_kl, abs=1e-5)
        assert [r.learning_rate for r in results] == pair.reference_rate
        assert_close(dict(pair.actor.state_dict()), dict(pair.reference.actor.state_dict()))
        assert_close(dict(pair.critic.state_dict()), dict(pair.reference.critic.state_dict()))
        rates += pair.reference_rate
    if pair.config.schedule == "adaptive":
        assert len(set(rates)) >= 4, "the comparison must cover a rate that moves"
        assert {a < b for a, b in pairwise(rates) if a != b} == {True, False}


@pytest.mark.parametrize("std_type", ["scalar", "log"])
@pytest.mark.parametrize("obs_normalization", [False, True])
def test_the_actor_says_the_same_of_an_action(std_type, obs_normalization):
    pair = Pair(std_type=std_type, init_std=0.4, obs_normalization=obs_normalization)
    generator = torch.Generator().manual_seed(5)
    pair.collect(generator)
    pair.learner.update_normalizers(pair.rollout)
    reference = pair.reference.actor
    reference.load_state_dict(pair.actor.state_dict())
    obs = torch.randn(N, NUM_OBS, generator=generator)

    torch.manual_seed(9)
    action = reference(observations(obs), stochastic_output=True)
    decision = pair.actor.act(obs, torch.Generator().manual_seed(9))
    assert_close(decision.action, action)
    assert_close(decision.log_prob.squeeze(1), reference.get_output_log_prob(action))
    assert_close(decision.mean, reference.output_mean)
    assert_close(decision.std.expand(N, -1), reference.output_std)


def test_networks_of_one_seed_have_the_same_weights():
    config = ActorConfig(hidden_dims=HIDDEN_DIMS, obs_normalization=True)
    torch.manual_seed(4)
    ours = Actor(config, NUM_OBS, NUM_ACTIONS)
    torch.manual_seed(4)
    theirs = MLPModel(
        observations(torch.zeros(1, NUM_OBS)),
        {"actor": ["policy"]},
        "actor",
        NUM_ACTIONS,
        hidden_dims=HIDDEN_DIMS,
        obs_normalization=True,
        distribution_cfg={"class_name": "GaussianDistribution"},
    )
    expected = theirs.state_dict()
    assert ours.state_dict().keys() == expected.keys()
    for name, tensor in ours.state_dict().items():
        assert torch.equal(tensor, expected[name])


def test_a_state_of_their_optimizer_continues_in_ours():
    pair = Pair()
    generator = torch.Generator().manual_seed(11)
    pair.collect(generator)
    pair.update(0)
    pair.learner.load_state_dict(copy.deepcopy(pair.reference.optimizer.state_dict()))
    pair.collect(generator)
    pair.update(1)
    assert_close(dict(pair.actor.state_dict()), dict(pair.reference.actor.state_dict()))
