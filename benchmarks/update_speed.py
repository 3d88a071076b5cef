"""Time one PPO update against RSL-RL's, on the same rollout, in turns.

    python benchmarks/update_speed.py [--rounds 9] [--large]

Both sides run the whole update that follows the targets: shuffling, 5 epochs of 4 mini-batches,
adaptive rate, gradient clipping, optimizer steps. They start every round from the policy that made
the rollout and take turns in one process, so that noise of a shared machine meets both; the ratio
is the median over the rounds of ours / theirs. The bare
matrix products of the same 20 steps (forward and backward, no activation) are timed as a floor.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.models import MLPModel
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.mini_batches import sample
from trainer.policy import Actor, Critic
from trainer.rollout import Rollout
from trainer.targets import normalize_advantages
from trainer.update import Learner

State = dict[str, Any]


class Case(NamedTuple):
    """One size of the problem."""

    num_envs: int
    num_steps: int
    num_obs: int
    hidden_dims: tuple[int, ...]
    num_actions: int = 12


SMALL = Case(512, 24, 48, (128, 128, 128))
LARGE = Case(4096, 24, 235, (512, 256, 128))


def fill(rollout: Rollout, actor: Actor, critic: Critic) -> None:
    """Make up a rollout: random observations, the actor's own actions, random targets."""
    obs = rollout.observations["policy"].normal_()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        decision = actor.act(obs, generator)
        rollout.actions.copy_(decision.action)
        rollout.log_probs.copy_(decision.log_prob)
        rollout.means.copy_(decision.mean)
        rollout.stds.copy_(decision.std)
        rollout.values.copy_(critic(obs))
        rollout.advantages.normal_()
        torch.add(rollout.values, rollout.advantages, out=rollout.returns)
    normalize_advantages(rollout.advantages)


def rsl_rl_learner(case: Case, rollout: Rollout, config: TrainerConfig) -> PPO:
    """Build RSL-RL's learner over the tensors of our rollout."""
    obs = TensorDict({"policy": rollout.observations["policy"][0]}, batch_size=[case.num_envs])
    groups = {"actor": ["policy"], "critic": ["policy"]}
    noise = {"class_name": "GaussianDistribution", "init_std": 1.0}
    actor = MLPModel(
        obs, groups, "actor", case.num_actions, case.hidden_dims, distribution_cfg=noise
    )
    critic = MLPModel(obs, groups, "critic", 1, case.hidden_dims)
    storage = RolloutStorage("rl", case.num_envs, case.num_steps, obs, [case.num_actions])
    storage.observations["policy"].copy_(rollout.observations["policy"])
    for theirs, ours in (
        (storage.actions, rollout.actions),
        (storage.actions_log_prob, rollout.log_probs),
        (storage.values, rollout.values),
        (storage.advantages, rollout.advantages),
        (storage.returns, rollout.returns),
    ):
        theirs.copy_(ours)
    storage.distribution_params = (rollout.means.clone(), rollout.stds.clone())
    return PPO(actor, critic, storage, learning_rate=config.learning_rate)


def bare_products(case: Case, updates: int, mini_batch: int) -> None:
    """The matrix products of one update's forward and backward passes, both networks."""
    for outputs in (case.num_actions, 1):
        widths = (case.num_obs, *case.hidden_dims, outputs)
        inputs = [torch.zeros(mini_batch, width) for width in widths]
        weights = [torch.zeros(b, a) for a, b in pairwise(widths)]
        for _ in range(updates):
            for layer, weight in enumerate(weights):
                torch.mm(inputs[layer], weight.t(), out=inputs[layer + 1])
            for layer in reversed(range(len(weights))):
                inputs[layer + 1].t() @ inputs[layer]
                if layer:
                    torch.mm(inputs[layer + 1], weights[layer], out=inputs[layer])


def restore(learner: Learner | PPO, actor: State, critic: State, optimizer: State) -> None:
    """Go back to the policy that made the rollout, with an optimizer that has not stepped."""
    learner.actor.load_state_dict(actor)
    learner.critic.load_state_dict(critic)
    learner.optimizer.load_state_dict(optimizer)
    learner.learning_rate = learner.optimizer.param_groups[0]["lr"]


def measure(case: Case, rounds: int) -> None:
    """Run both learners in turns and print one row of the table."""
    config = TrainerConfig(
        actor=ActorConfig(hidden_dims=case.hidden_dims),
        critic=CriticConfig(hidden_dims=case.hidden_dims),
    )
    actor = Actor(config.actor, case.num_obs, case.num_actions)
    critic = Critic(config.critic, case.num_obs)
    rollout = Rollout(
        case.num_steps, case.num_envs, {"policy": case.num_obs}, case.num_actions, "cpu"
    )
    fill(rollout, actor, critic)
    reference = rsl_rl_learner(case, rollout, config)
    learner = Learner(config, actor, critic)
    networks = copy.deepcopy((actor.state_dict(), critic.state_dict()))
    learners = [(each, each.optimizer.state_dict()) for each in (learner, reference)]
    generator = torch.Generator().manual_seed(0)
    updates = config.num_learning_epochs * config.num_mini_batches
    mini_batch = rollout.num_samples // config.num_mini_batches

    def ours() -> None:
        with learner.threads.at(mini_batch * learner.num_weights):  # as in `Trainer.iterate`
            mini_batches = sample(rollout, config.num_mini_batches, generator)
            for _ in range(config.num_learning_epochs):
                for batch in mini_batches:
                    learner.optimize(batch)

    def floor() -> None:
        bare_products(case, updates, mini_batch)

    sides = (ours, reference.update, floor)
    times: list[list[float]] = [[], [], []]
    for round_ in range(rounds + 1):
        for side, record in zip(sides, times, strict=True):
            for each, optimizer in learners:
                restore(each, *networks, optimizer)
            started = time.perf_counter()
            side()
            if round_:  # the first round warms up
                record.append(time.perf_counter() - started)
    ratio = statistics.median(a / b for a, b in zip(times[0], times[1], strict=True))
    over_floor = statistics.median(a / b for a, b in zip(times[0], times[2], strict=True))
    medians = [statistics.median(record) for record in times]
    widths = "-".join(map(str, case.hidden_dims))
    print(
        f"| {rollout.num_samples:,} | {case.num_obs} | {widths} "
        f"| {medians[0]:.3f} | {medians[1]:.3f} | {ratio:.2f} | {over_floor:.2f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--large", action="store_true", help="also the 98,304-sample case (slow)")
    parser.add_argument("--threads", type=int, help="threads of PyTorch; else its own choice")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    print("| samples | obs | networks | ours [s] | RSL-RL [s] | ratio | ours / bare products |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    measure(SMALL, arguments.rounds)
    if arguments.large:
        measure(LARGE, arguments.rounds)


if __name__ == "__main__":
    main()
