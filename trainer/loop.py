"""One PPO iteration as seven stages, in the order in which the screen shows them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from trainer import continuing, mini_batches, recurrent, targets, update
from trainer.config import TrainerConfig
from trainer.distributed import Group
from trainer.env import Env, Feedback
from trainer.episodes import EpisodeStatistics
from trainer.guard import check_rollout
from trainer.live import Live
from trainer.metrics import update_metrics
from trainer.observation_sets import resolve_set
from trainer.policy import Actor, Critic, Sample
from trainer.ranks import rank_seed
from trainer.reports import Report, from_json, merged, require_equal_weights, weights_fingerprint
from trainer.rnd import IntrinsicReward, make_rnd
from trainer.rollout import Rollout, Transition
from trainer.stages import Stage
from trainer.symmetry import make_symmetry
from trainer.telemetry import Position
from trainer.threads import TorchThreads


class StageWatcher(Protocol):
    """Told of every stage boundary; the session's gate and telemetry hang here."""

    def entering(self, position: Position) -> None:
        """A stage is about to run."""
        ...

    def leaving(self, position: Position, *, phase_ends: bool) -> None:
        """A stage has run; this may wait, and may raise to end the run."""
        ...


class Unwatched:
    """A watcher that does nothing."""

    def entering(self, position: Position) -> None:
        """Do nothing."""

    def leaving(self, position: Position, *, phase_ends: bool) -> None:
        """Do nothing."""


class Trainer:
    """PPO over a vectorised env: RSL-RL's maths, cut into seven stages.

    Args:
        env: N worlds, freshly made.
        config: the learner's settings; `seed` must be set.
        watcher: told of every stage boundary.
        group: the ranks that learn together; unset: this process alone.
    """

    def __init__(
        self,
        env: Env,
        config: TrainerConfig,
        watcher: StageWatcher | None = None,
        group: Group | None = None,
    ) -> None:
        if config.seed is None:
            raise ValueError("a trainer needs a seed")
        self.env = env
        self.config = config
        self.watcher: StageWatcher = watcher or Unwatched()
        self.group = group or Group()
        self.seed = rank_seed(config.seed, self.group.rank.rank)
        """Of this rank's noise."""
        network_seed, *_ = _independent_seeds(config.seed)
        _, noise_seed, age_seed = _independent_seeds(self.seed)

        self.obs: dict[str, Tensor] | None = env.observe()
        """Observation groups of the present state; None after a step until they are computed."""
        widths = {group: obs.shape[1] for group, obs in self.obs.items()}
        self.actor_set = resolve_set(config.obs_groups, "actor", widths)
        self.critic_set = resolve_set(config.obs_groups, "critic", widths)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(network_seed)
            self.actor = Actor(config.actor, self.actor_set.width(widths), env.num_actions)
            self.critic = Critic(config.critic, self.critic_set.width(widths))
            self.rnd = make_rnd(config.rnd, config.obs_groups, widths, env, self.group)
        networks = {"actor": self.actor, "critic": self.critic, "rnd": self.rnd}
        self.networks = {name: net for name, net in networks.items() if net is not None}
        """All networks by name."""
        for network in self.networks.values():
            network.to(env.device)
        self.threads = TorchThreads(env.device)
        self.learner = update.Learner(
            config,
            self.actor,
            self.critic,
            self.actor_set,
            self.critic_set,
            self.group,
            make_symmetry(config.symmetry, env),
            self.rnd,
            self.threads,
        )
        # Each group is stored once, however many networks read it, and none that nobody reads.
        read = {*self.actor_set.groups, *self.critic_set.groups}
        if self.rnd is not None:
            read.update(self.rnd.read.groups)
        stored = {group: width for group, width in widths.items() if group in read}
        self.rollout = Rollout(
            config.num_steps_per_env, env.num_envs, stored, env.num_actions, env.device
        )
        self.actor_hidden = self.actor.initial_hidden(env.num_envs)
        """Of a recurrent actor in every world, [layers, N, H] each; carried from step to step."""
        self.critic_hidden = self.critic.initial_hidden(env.num_envs)
        """Of a recurrent critic."""
        self.generator = torch.Generator(env.device).manual_seed(noise_seed)
        self.episodes = EpisodeStatistics(env.num_envs, env.device)
        self.intrinsic = (
            None if self.rnd is None else IntrinsicReward(self.rnd, env.num_envs, env.device)
        )
        """What is paid for new states beside the env's own reward."""
        if config.init_at_random_ep_len:
            ages = torch.Generator(env.device).manual_seed(age_seed)
            env.episode_length.random_(0, env.max_episode_length, generator=ages)

        self.live = Live(self)
        """What may change between two iterations, and has been changed."""
        self.decision: Sample | None = None
        """What the actor decided for the running step, cached before physics."""
        self.values: Tensor | None = None
        """V of the running step's observation, [N, 1], cached before physics."""
        self.feedback: Feedback | None = None
        """What the worlds answered."""
        self.last_values: Tensor | None = None
        """V(obs_T), [N, 1]."""
        self.mini_batches: mini_batches.MiniBatches | None = None
        self.results: list[update.MiniBatchResult] = []
        """One entry an optimizer step of the running update."""
        self.stage_seconds = [0.0] * len(Stage)
        """Seconds spent in each stage of the running iteration, pauses left out."""
        self.completed_iterations = 0
        self.env_steps = 0
        """Env steps of all worlds of all ranks in all completed iterations."""
        self.position = Position()
        self._logs: list[Mapping[str, float | Tensor]] = []
        self._counts: list[Mapping[str, float | Tensor]] = []
        self._faults: list[str] = []
        self._target_metrics: dict[str, float] = {}
        self._reports: list[Report] = []  # of all ranks, on rank 0

    @property
    def action_std(self) -> Tensor:
        """Standard deviation of each action, [A].

        Where it depends on the observation, this is its mean over the rollout.
        """
        if self.config.actor.state_dependent_std:
            return self.rollout.stds.mean((0, 1))
        return self.actor.std

    @property
    def env_steps_of_iteration(self) -> int:
        """Env steps of all worlds of all ranks in one iteration."""
        return self.group.world_size * self.rollout.num_samples

    @property
    def num_boundaries(self) -> int:
        """Stage boundaries that an iteration passes."""
        updates = self.config.num_learning_epochs * self.config.num_mini_batches
        return 3 * self.rollout.num_steps + updates + 3

    def reconfigure(self, config: TrainerConfig) -> None:
        """Learn by other settings from now on; call it between two iterations.

        The learning rate in force is the optimizer's own and stays.

        Args:
            config: differs from the present one in what `trainer.live` may edit.
        """
        self.config = self.learner.config = config
        if self.rnd is not None and config.rnd is not None:
            self.rnd.initial_weight = config.rnd.weight * self.env.step_dt

    def iterate(self) -> None:
        """Run one PPO iteration: collect a rollout under fixed weights, then learn from it."""
        self.stage_seconds = [0.0] * len(Stage)
        self._logs, self._counts, self._faults, self._reports = [], [], [], []
        mini_batch_rows = self.rollout.num_samples // self.config.num_mini_batches
        # the operations of a step of few worlds are small, and physics needs the cores
        with self.threads.at(self.env.num_envs * self.learner.num_weights):
            for step in range(self.rollout.num_steps):
                self._run(Stage.OBSERVE, self.observe, step=step)
                self._run(Stage.ACT_STEP, self.act_step, step=step)
                self._run(Stage.STORE, self.store, step=step)
        with self.threads.at(mini_batch_rows * self.learner.num_weights):
            self._run(Stage.TARGETS, self.targets)
            self._run(Stage.SAMPLE, self.sample)
            for epoch in range(self.config.num_learning_epochs):
                for mini_batch in range(self.config.num_mini_batches):
                    self._run(Stage.OPTIMIZE, self.optimize, epoch=epoch, mini_batch=mini_batch)
            self._run(Stage.FRESH, self.fresh)

    def observe(self) -> None:
        """Stage 1: simulator state to observation groups [N, O_g].

        The first rollout row of an iteration uses obs_T, which `targets` has computed already. An
        intrinsic reward for what is seen goes to the step that led there, which is stored already.
        """
        if self.obs is None:
            self.obs = self._look()

    def _look(self) -> dict[str, Tensor]:
        observations = self.env.observe()
        if self.intrinsic is not None:
            self.intrinsic.pay(self.rollout, observations)
        return observations

    def act_step(self) -> None:
        """Stage 2: cache what the policy thinks before physics, then advance the worlds."""
        assert self.obs is not None
        with torch.no_grad():
            if self.rollout.cursor == 0:
                self.rollout.actor_hidden = self.actor_hidden
                self.rollout.critic_hidden = self.critic_hidden
            actor_obs, critic_obs = self.actor_set(self.obs), self.critic_set(self.obs)
            decision, (self.values, self.critic_hidden) = self.threads.side_by_side(
                lambda: self.actor.act(actor_obs, self.generator, self.actor_hidden),
                lambda: self.critic.evaluate(critic_obs, self.critic_hidden),
                work=self.env.num_envs * self.learner.num_weights,
            )
        self.decision, self.actor_hidden = decision, decision.hidden
        actions = decision.action
        if (limit := self.config.clip_actions) is not None:
            actions = actions.clamp(-limit, limit)
        self.feedback = self.env.step(actions)
        self._faults.extend(self.feedback.faults)
        if self.feedback.log:
            self._logs.append(self.feedback.log)
        if self.feedback.counts:
            self._counts.append(self.feedback.counts)

    def store(self) -> None:
        """Stage 3: complete the cached record with its reward and done, and write row t.

        A time-out adds gamma V_t to the reward; done stays 1.
        """
        assert self.obs is not None
        assert self.decision is not None
        assert self.values is not None
        assert self.feedback is not None
        reward, terminated, time_outs = self.feedback[:3]
        done = terminated | time_outs
        self.episodes.add(reward, done)
        bootstrapped = targets.bootstrap_time_outs(
            reward, self.values, time_outs, self.config.gamma, terminated
        )
        action, log_prob, mean, std, _ = self.decision
        self.rollout.add(
            Transition(self.obs, action, bootstrapped, done, self.values, log_prob, mean, std)
        )
        for hidden in (self.actor_hidden, self.critic_hidden):
            recurrent.reset(hidden, done)
        self.obs = None

    def targets(self) -> None:
        """Stage 4: bootstrap V(obs_T), then backward GAE to advantages and returns [T, N, 1]."""
        self.obs = self._look()
        with torch.no_grad():
            # The critic has not made this step yet: its hidden state stays as it is.
            self.last_values, _ = self.critic.evaluate(
                self.critic_set(self.obs), self.critic_hidden
            )
        targets.compute_returns(self.rollout, self.last_values, self.config.gamma, self.config.lam)
        if self.group.world_size > 1:  # before others hear of it: the culprit is to be named
            check_rollout(self.rollout)
        self._target_metrics = targets.target_metrics(self.rollout, self.group)
        if not self.config.normalize_advantage_per_mini_batch:
            targets.normalize_advantages(self.rollout.advantages, group=self.group)

    def sample(self) -> None:
        """Stage 5: one permutation of the B rows, cut into mini-batches; or blocks of worlds."""
        self.mini_batches = mini_batches.sample(
            self.rollout,
            self.config.num_mini_batches,
            self.generator,
            recurrent=self.config.recurrent,
        )
        self.results = []

    def optimize(self) -> None:
        """Stage 6: re-score one mini-batch's actions and make one optimizer step."""
        assert self.mini_batches is not None
        batch = self.mini_batches[self.position.mini_batch]
        self.results.append(self.learner.optimize(batch, unmoved=not self.results))

    def fresh(self) -> None:
        """Stage 7: the cursor goes back to 0; weights, obs_T and running episodes stay."""
        self.learner.update_normalizers(self.rollout)
        self.rollout.clear()
        self.completed_iterations += 1
        self.env_steps += self.env_steps_of_iteration
        if self.group.world_size > 1:
            networks = self.networks.values()
            weights = weights_fingerprint(p for net in networks for p in net.parameters())
            own = self._report()._replace(weights=weights, iteration=self.completed_iterations)
            self._reports = from_json(self.group.exchange(own._asdict()))
            require_equal_weights(self._reports)

    def _report(self) -> Report:
        """What this rank's worlds brought in the iteration."""
        report = Report.of(self._logs, self._counts, self.episodes, self._faults)
        if self.intrinsic is None:
            return report
        return report._replace(episodes=self.intrinsic.metrics(report.episodes))

    def metrics(self) -> dict[str, float]:
        """Metrics of the iteration just completed, under RSL-RL's tags."""
        collection = sum(self.stage_seconds[: Stage.STORE])
        learning = sum(self.stage_seconds[Stage.STORE :])
        brought = merged(self._reports or [self._report()])
        return {
            **brought.logs,
            **brought.counts,
            **update_metrics(self.results, self.action_std),
            **self._target_metrics,
            "Perf/total_fps": self.env_steps_of_iteration / max(collection + learning, 1e-9),
            "Perf/collection_time": collection,
            "Perf/learning_time": learning,
            **({} if self.rnd is None else {"Rnd/weight": self.rnd.weight}),
            **brought.episodes,
        }

    @property
    def faults(self) -> list[str]:
        """A sentence for each world that went bad in the iteration just completed.

        While one runs, for each of this rank's own worlds.
        """
        return merged(self._reports).faults if self._reports else self._faults

    def state_dict(self) -> dict[str, Any]:
        """All that an exact continuation needs, valid between two iterations."""
        return continuing.state_of(self)

    def own_state_dict(self) -> dict[str, Any]:
        """The part of the state that is another one on every rank: its worlds and its noise."""
        return continuing.own_state_of(self)

    def shared_tensors(self) -> list[Tensor]:
        """Weights and running statistics, which are the same on all ranks."""
        states = (network.state_dict() for network in self.networks.values())
        return [tensor for state in states for tensor in state.values()]

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that `state_dict` returned, as `trainer.continuing` says.

        Raises:
            CheckpointError: a part of it is missing or does not fit; named.
        """
        continuing.restore(self, state)

    def _run(
        self,
        stage: Stage,
        function: Callable[[], None],
        step: int | None = None,
        epoch: int = 0,
        mini_batch: int = 0,
    ) -> None:
        filled = self.rollout.num_steps if step is None else step
        self.position = Position(self.completed_iterations, stage, filled, epoch, mini_batch)
        self.watcher.entering(self.position)
        started = time.perf_counter()
        function()
        self.stage_seconds[stage - 1] += time.perf_counter() - started
        if stage is Stage.STORE:
            filled += 1
            self.position = self.position._replace(step=filled)
        rollout_full = stage is Stage.STORE and filled == self.rollout.num_steps
        self.watcher.leaving(self.position, phase_ends=rollout_full or stage is Stage.FRESH)


def _independent_seeds(seed: int) -> list[int]:
    """Seeds for networks, policy noise and starting ages, unlike the env's own."""
    return [int(state) for state in np.random.SeedSequence(seed).generate_state(3)]
