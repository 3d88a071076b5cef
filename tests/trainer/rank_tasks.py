"""What all ranks of a test do alike, each with rows of its own."""

import torch

from trainer.config import ActorConfig, CriticConfig, RndConfig, SymmetryConfig, TrainerConfig
from trainer.distributed import Moments
from trainer.losses import adapt_learning_rate
from trainer.normalizer import EmpiricalNormalizer
from trainer.policy import Actor, Critic, log_prob
from trainer.rnd import RandomNetworkDistillation
from trainer.rollout import Samples
from trainer.symmetry import Symmetry
from trainer.targets import normalize_advantages
from trainer.update import Learner

CONFIG = TrainerConfig(
    seed=7,
    num_iterations=4,
    num_steps_per_env=4,
    num_mini_batches=2,
    num_learning_epochs=2,
    save_interval=2,
    actor=ActorConfig(hidden_dims=(8,), obs_normalization=True),
    critic=CriticConfig(hidden_dims=(8,), obs_normalization=True),
)
LEARNING = TrainerConfig(
    seed=7,
    max_grad_norm=0.5,
    desired_kl=0.001,
    actor=ActorConfig(hidden_dims=(16, 8)),
    critic=CriticConfig(hidden_dims=(16, 8)),
)
SYMMETRY = SymmetryConfig(use_data_augmentation=True, use_mirror_loss=True, mirror_loss_coeff=0.3)
RND = RndConfig(weight=2.0, num_outputs=2, state_normalization=True, reward_normalization=True)
EVEN = ([[0.0], [2.0]], [[10.0], [14.0]])
UNEVEN = ([[0.0], [0.0], [0.0]], [[8.0]])
KLS = (0.004, 0.05)
NUM_OBS, NUM_ACTIONS, ROWS = 5, 3, 32


def new_learner(group=None):
    torch.manual_seed(3)
    actor = Actor(LEARNING.actor, NUM_OBS, NUM_ACTIONS)
    critic = Critic(LEARNING.critic, NUM_OBS)
    return Learner(LEARNING, actor, critic, group=group)


class Negative:
    """A mirror that changes every sign."""

    def observations(self, observations):
        return {group: -rows for group, rows in observations.items()}

    def actions(self, actions):
        return -actions


def new_extended_learner(group=None):
    """One that also learns from the mirror image, and what is new."""
    torch.manual_seed(3)
    config = LEARNING.model_copy(update={"symmetry": SYMMETRY})
    actor = Actor(config.actor, NUM_OBS, NUM_ACTIONS)
    critic = Critic(config.critic, NUM_OBS)
    num_envs = ROWS if group is not None else 2 * ROWS
    rnd = RandomNetworkDistillation(RND, NUM_OBS, num_envs, 0.1, group=group)
    symmetry = Symmetry(SYMMETRY, Negative())
    return Learner(config, actor, critic, group=group, symmetry=symmetry, rnd=rnd)


def learn_extended(learner, samples):
    """Three optimizer steps between rewards for what is new."""
    states = samples.observations["policy"]
    rewards = [learner.rnd.intrinsic_reward(states * scale).clone() for scale in (1.0, 2.0)]
    learner.rnd.update_normalizer(states)
    steps = [learner.optimize(samples, unmoved=i == 0) for i in range(3)]
    return {
        "losses": [[step.surrogate, step.symmetry, step.rnd] for step in steps],
        "rewards": [*rewards, learner.rnd.intrinsic_reward(states)],
        "weights": {
            name: tensor.clone()
            for name, tensor in (
                *learner.actor.state_dict().items(),
                *learner.rnd.state_dict().items(),
            )
        },
    }


def batch(rank):
    """One mini-batch of a rank, whose rollout's policy was a little different."""
    generator = torch.Generator().manual_seed(100 + rank)

    def normal(width):
        return torch.randn(ROWS, width, generator=generator)

    means, stds = 0.1 * normal(NUM_ACTIONS), torch.full((ROWS, NUM_ACTIONS), 0.9)
    actions = means + stds * normal(NUM_ACTIONS)
    return Samples(
        observations={"policy": normal(NUM_OBS)},
        actions=actions,
        values=normal(1),
        advantages=normal(1),
        returns=normal(1),
        log_probs=log_prob(actions, means, stds),
        means=means,
        stds=stds,
    )


def learn(learner, samples):
    """Three optimizer steps; rates, KLs, and what the last one left behind."""
    steps = [learner.optimize(samples, unmoved=i == 0) for i in range(3)]
    named = [*learner.actor.named_parameters("actor"), *learner.critic.named_parameters("critic")]
    return {
        "rates": [step.learning_rate for step in steps],
        "kls": [step.kl for step in steps],
        "losses": [[step.surrogate, step.value_loss, step.entropy] for step in steps],
        "norms": [[step.actor_grad_norm, step.critic_grad_norm] for step in steps],
        "gradients": {name: parameter.grad.clone() for name, parameter in named},
        "weights": {name: parameter.detach().clone() for name, parameter in named},
    }


def moments_of(rows):
    var, mean = torch.var_mean(torch.tensor(rows), dim=0, correction=0, keepdim=True)
    return Moments(len(rows), mean, var)


def normalizer_of(rows, group):
    normalizer = EmpiricalNormalizer(1)
    for _ in range(2):
        normalizer.update(torch.tensor(rows), group=group)
    return normalizer.state_dict()


def advantages(rank):
    return torch.randn(6, 4, 1, generator=torch.Generator().manual_seed(rank)) * (1 + rank) + rank


def do_all(group):
    """Everything that ranks compute together, in one order on all."""
    rank = group.rank.rank
    even, uneven = (list(group.merge_moments(moments_of(rows[rank]))) for rows in (EVEN, UNEVEN))
    (mean_kl,) = group.average([torch.tensor(KLS[rank])])
    return {
        "even": even,
        "uneven": uneven,
        "normalizer": normalizer_of(UNEVEN[rank], group),
        "kl": float(mean_kl),
        "rate": adapt_learning_rate(1e-3, float(mean_kl), 0.01),
        "advantages": normalize_advantages(advantages(rank), group=group),
        "learnt": learn(new_learner(group), batch(rank)),
        "extended": learn_extended(new_extended_learner(group), batch(rank)),
    }
