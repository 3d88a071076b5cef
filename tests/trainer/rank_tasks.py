"""What all ranks of a test do alike, each with rows of its own."""

import torch

from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.distributed import Moments
from trainer.losses import adapt_learning_rate
from trainer.normalizer import EmpiricalNormalizer
from trainer.policy import Actor, Critic, log_prob
from trainer.rollout import Samples
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
EVEN = ([[0.0], [2.0]], [[10.0], [14.0]])
UNEVEN = ([[0.0], [0.0], [0.0]], [[8.0]])
KLS = (0.004, 0.05)
NUM_OBS, NUM_ACTIONS, ROWS = 5, 3, 32


def new_learner(group=None):
    torch.manual_seed(3)
    actor = Actor(LEARNING.actor, NUM_OBS, NUM_ACTIONS)
    critic = Critic(LEARNING.critic, NUM_OBS)
    return Learner(LEARNING, actor, critic, group=group)


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
    steps = [learner.optimize(samples) for _ in range(3)]
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
    }
