"""The numbers of each stage for one world and one step, as the stage itself has them.

Runs in the session's thread alone; what it returns holds no tensor.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from trainer.fingerprints import parameters_fingerprint
from trainer.loop import Trainer
from trainer.metrics import NUM_RATIO_BINS, RATIO_RANGE, ratio_histogram
from trainer.mini_batches import ShuffledRows, WorldBlocks
from trainer.stages import Stage
from trainer.telemetry import Floats
from trainer.tensors import action_columns, observation_columns, reward_term_values
from trainer.trace import (
    ActStepNumbers,
    FreshNumbers,
    Numbers,
    ObserveNumbers,
    OptimizeNumbers,
    Rescored,
    RowField,
    SampleNumbers,
    StoreNumbers,
    TargetsNumbers,
    TermValues,
    TraceRequest,
)

HEAD = 16
"""Flat indices shown of each mini-batch."""
WINDOW = 160
"""Worlds around the chosen one whose mini-batches are shown."""
PREVIEW = 12
"""Columns shown of an observation in a row."""


class StageNumbers:
    """Reads the numbers of one trainer.

    Args:
        trainer: whose stages to look at.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._row_before: tuple[int, int, int, dict[str, Floats]] | None = None

    def remember_row(self, world: int) -> None:
        """Keep what row t holds of one world, just before `store` overwrites it."""
        position, rollout = self._trainer.position, self._trainer.rollout
        if rollout.cursor < rollout.num_steps:
            world = min(max(world, 0), rollout.num_envs - 1)
            row = _row(self._trainer, rollout.cursor, world)
            self._row_before = (position.iteration, rollout.cursor, world, row)

    # Where the chosen transition is.

    def _is_pending(self, step: int) -> bool:
        """Whether a step is decided, or about to be, and not stored yet."""
        at = self._trainer.position
        return at.stage in (Stage.OBSERVE, Stage.ACT_STEP) and step == at.step

    def _is_stored(self, step: int) -> bool:
        """Whether a row of the rollout holds anything, be it of the last iteration."""
        trainer = self._trainer
        return step < trainer.position.step or trainer.completed_iterations > 0

    # The numbers of each stage.

    def of(self, request: TraceRequest) -> Numbers | None:
        """Return the numbers of the stage asked for; None where there are none yet.

        Args:
            request: within the rollout.
        """
        match request.stage:
            case Stage.OBSERVE:
                return self._observe(request)
            case Stage.ACT_STEP:
                return self._act_step(request)
            case Stage.STORE:
                return self._store(request)
            case Stage.TARGETS:
                return self._targets(request)
            case Stage.SAMPLE:
                return self._sample(request)
            case Stage.OPTIMIZE:
                return self._optimize(request)
            case _:
                return self._fresh(request)

    def _observe(self, request: TraceRequest) -> ObserveNumbers | None:
        trainer, t, n = self._trainer, request.step, request.world
        if self._is_pending(t) and trainer.obs is not None:
            rows = {group: obs[n] for group, obs in trainer.obs.items()}
        elif self._is_stored(t):
            rows = {group: obs[t, n] for group, obs in trainer.rollout.observations.items()}
        else:
            return None
        terms = []
        for group, row in rows.items():
            values, first = _floats(row), 0
            for term, width in trainer.env.observation_terms.get(group, ((group, len(values)),)):
                terms.append(TermValues(group, term, first, values[first : first + width]))
                first += width
        return ObserveNumbers(tuple(terms))

    def _act_step(self, request: TraceRequest) -> ActStepNumbers | None:
        trainer, t, n = self._trainer, request.step, request.world
        decided = self._is_pending(t) and trainer.position.stage is Stage.ACT_STEP
        if not decided and not self._is_stored(t):
            return None
        rollout = trainer.rollout
        if decided:
            assert trainer.decision is not None
            assert trainer.values is not None
            sample = trainer.decision
            action, mean = sample.action[n], sample.mean[n]
            std = sample.std if sample.std.ndim == 1 else sample.std[n]
            log_prob, value = sample.log_prob[n], trainer.values[n]
        else:
            action, mean, std = rollout.actions[t, n], rollout.means[t, n], rollout.stds[t, n]
            log_prob, value = rollout.log_probs[t, n], rollout.values[t, n]
        reward, terminated, time_out = self._feedback(t, n)
        limit = trainer.config.clip_actions
        return ActStepNumbers(
            names=action_columns(trainer),
            mean=_floats(mean),
            std=_floats(std),
            action=_floats(action),
            sent=_floats(action if limit is None else action.clamp(-limit, limit)),
            clip_actions=limit,
            log_prob=float(log_prob),
            value=float(value),
            reward=reward,
            terminated=terminated,
            time_out=time_out,
            reward_terms=self._reward_terms(t, n),
        )

    def _answered_step(self) -> int:
        """The step that the kept feedback belongs to; -1 where there is none."""
        at = self._trainer.position
        if self._trainer.feedback is None or (at.stage is Stage.OBSERVE and at.step == 0):
            return -1
        return at.step if at.stage is Stage.ACT_STEP else at.step - 1

    def _feedback(self, t: int, n: int) -> tuple[float, bool, bool]:
        """What the worlds answered to a step, as they gave it where it is the newest one."""
        feedback, rollout = self._trainer.feedback, self._trainer.rollout
        if feedback is not None and t == self._answered_step():
            return (
                float(feedback.reward[n]),
                bool(feedback.terminated[n]),
                bool(feedback.time_outs[n]),
            )
        return math.nan, bool(rollout.dones[t, n]), False

    def _reward_terms(self, t: int, n: int) -> tuple[tuple[str, float], ...]:
        values = reward_term_values(self._trainer)
        if values is None or t != self._answered_step():
            return ()
        return tuple(zip(self._trainer.env.reward_terms, values[:, n].tolist(), strict=True))

    def _store(self, request: TraceRequest) -> StoreNumbers | None:
        trainer, t, n = self._trainer, request.step, request.world
        pending = self._is_pending(t) and trainer.position.stage is Stage.ACT_STEP
        if not pending and not self._is_stored(t):
            return None
        row = _row(trainer, t, n)
        before: dict[str, Floats] = {}
        if pending:
            before = row
        elif self._row_before and self._row_before[:3] == (trainer.position.iteration, t, n):
            before = self._row_before[3]
        # Behind targets the observation is the next one, behind optimize the std another.
        kept = trainer.position.stage in (Stage.ACT_STEP, Stage.STORE)
        cached = self._cached(n) if kept and t == self._answered_step() else {}
        reward, _, time_out = self._feedback(t, n)
        return StoreNumbers(
            step=t,
            cursor=trainer.position.step,
            fields=tuple(
                RowField(name, cached.get(name), before.get(name), None if pending else stored)
                for name, stored in row.items()
            ),
            reward=reward,
            value=float((cached or row)["value"][0]),
            time_out=time_out,
            gamma=trainer.config.gamma,
        )

    def _cached(self, n: int) -> dict[str, Floats]:
        """The record made before physics, completed by what the worlds answered."""
        trainer = self._trainer
        assert trainer.decision is not None
        assert trainer.values is not None
        assert trainer.feedback is not None
        sample, feedback = trainer.decision, trainer.feedback
        fields = {f"obs {group}": obs[n] for group, obs in (trainer.obs or {}).items()} | {
            "action": sample.action[n],
            "mean": sample.mean[n],
            "std": sample.std if sample.std.ndim == 1 else sample.std[n],
            "log_prob": sample.log_prob[n],
            "value": trainer.values[n],
            "reward": feedback.reward[n],
            "done": feedback.terminated[n] | feedback.time_outs[n],
        }
        return {name: _floats(field)[:PREVIEW] for name, field in fields.items()}

    def _targets(self, request: TraceRequest) -> TargetsNumbers | None:
        trainer, n = self._trainer, request.world
        if trainer.last_values is None:
            return None
        rollout, config = trainer.rollout, trainer.config
        columns = (rollout.rewards, rollout.values, rollout.returns, rollout.advantages)
        rewards, values, returns, advantages = (_floats(column[:, n]) for column in columns)
        dones = rollout.dones[:, n, 0].cpu().numpy().copy()
        last = float(trainer.last_values[n])
        following = np.append(values[1:], np.float32(last))
        deltas = rewards + config.gamma * ~dones * following - values
        mean = std = math.nan
        if not config.normalize_advantage_per_mini_batch:
            spread, centre = torch.std_mean(rollout.returns - rollout.values)
            mean, std = float(centre), float(spread)
        return TargetsNumbers(
            rewards=rewards,
            values=values,
            dones=dones,
            deltas=deltas.astype(np.float32),
            raw=returns - values,
            advantages=advantages,
            returns=returns,
            last_value=last,
            gamma=config.gamma,
            lam=config.lam,
            mean=mean,
            std=std,
        )

    def _sample(self, request: TraceRequest) -> SampleNumbers | None:
        trainer, rollout = self._trainer, self._trainer.rollout
        if (order := read_order(trainer)) is None:
            return None
        size = rollout.num_samples // trainer.config.num_mini_batches
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order), device=order.device)
        batches = (place // size).view(rollout.num_steps, rollout.num_envs)
        first = max(0, min(request.world - WINDOW // 2, rollout.num_envs - WINDOW))
        return SampleNumbers(
            num_envs=rollout.num_envs,
            mini_batch_size=size,
            place=int(place[request.step * rollout.num_envs + request.world]),
            whole_worlds=isinstance(trainer.mini_batches, WorldBlocks),
            heads=order.view(-1, size)[:, :HEAD].cpu().numpy().copy(),
            window=batches[:, first : first + WINDOW].cpu().numpy().copy(),
            first_world=first,
        )

    def _optimize(self, request: TraceRequest) -> OptimizeNumbers | None:
        results, config = self._trainer.results, self._trainer.config
        if not results:
            return None
        newest, low_high = results[-1], RATIO_RANGE
        epoch, mini_batch = divmod(len(results) - 1, config.num_mini_batches)
        return OptimizeNumbers(
            epoch=epoch,
            mini_batch=mini_batch,
            kl=np.asarray([result.kl for result in results], np.float32),
            learning_rate=np.asarray([result.learning_rate for result in results], np.float32),
            clip_fraction=newest.clip_fraction,
            surrogate=newest.surrogate,
            value_loss=newest.value_loss,
            entropy=newest.entropy,
            value_loss_coef=config.value_loss_coef,
            entropy_coef=config.entropy_coef,
            actor_grad_norm=newest.actor_grad_norm,
            critic_grad_norm=newest.critic_grad_norm,
            max_grad_norm=config.max_grad_norm,
            clip_param=config.clip_param,
            desired_kl=config.desired_kl if config.schedule == "adaptive" else None,
            num_mini_batches=config.num_mini_batches,
            num_learning_epochs=config.num_learning_epochs,
            ratio_edges=np.linspace(*low_high, NUM_RATIO_BINS + 1, dtype=np.float32),
            ratio_counts=ratio_histogram(newest.ratio).cpu().numpy(),
            chosen=self._rescored(request),
        )

    def _rescored(self, request: TraceRequest) -> Rescored | None:
        """The chosen transition in the newest step that its mini-batch had."""
        trainer, rollout = self._trainer, self._trainer.rollout
        t, n, count = request.step, request.world, trainer.config.num_mini_batches
        mini_batch, row = divmod(place_of(trainer, request), rollout.num_samples // count)
        epoch = (len(trainer.results) - 1 - mini_batch) // count
        if epoch < 0:
            return None
        return Rescored(
            mini_batch=mini_batch,
            epoch=epoch,
            old_log_prob=float(rollout.log_probs[t, n]),
            ratio=float(trainer.results[epoch * count + mini_batch].ratio[row]),
            advantage=float(rollout.advantages[t, n]),
        )

    def _fresh(self, request: TraceRequest) -> FreshNumbers:
        trainer, rollout, n = self._trainer, self._trainer.rollout, request.world
        networks = (trainer.actor, trainer.critic)
        kept = [*rollout.observations.values()]
        kept += [tensor for tensor in vars(rollout).values() if isinstance(tensor, Tensor)]
        group, obs = next(iter((trainer.obs or {"": torch.empty(n + 1, 0)}).items()))
        return FreshNumbers(
            cursor=rollout.cursor,
            num_steps=rollout.num_steps,
            weights=f"{int(parameters_fingerprint(*networks)) & 0xFFFFFFFFFFFFFFFF:016x}",
            num_parameters=sum(p.numel() for network in networks for p in network.parameters()),
            obs_group=group,
            obs=_floats(obs[n])[:PREVIEW],
            obs_names=observation_columns(trainer, group)[:PREVIEW],
            episode_length=int(trainer.env.episode_length[n]),
            num_tensors=len(kept),
            num_bytes=sum(tensor.numel() * tensor.element_size() for tensor in kept),
            completed_iterations=trainer.completed_iterations,
        )


def read_order(trainer: Trainer) -> Tensor | None:
    """Flat row t N + n of every sample in the order in which the mini-batches read them, [B]."""
    match trainer.mini_batches:
        case ShuffledRows() as shuffled:
            return shuffled.permutation
        case WorldBlocks() as blocks:
            steps = torch.arange(trainer.rollout.num_steps, device=blocks.worlds.device)
            rows = steps[:, None] * trainer.rollout.num_envs + blocks.worlds[:, None, :]
            return rows.flatten()
    return None


def place_of(trainer: Trainer, request: TraceRequest) -> int:
    """Where the chosen transition stands in `read_order`; 0 where there is none yet."""
    order = read_order(trainer)
    if order is None:
        return 0
    flat = request.step * trainer.rollout.num_envs + request.world
    return int((order == flat).nonzero()[0])


def _row(trainer: Trainer, t: int, n: int) -> dict[str, Floats]:
    """What row t holds of one world, field by field; the first columns of each."""
    rollout = trainer.rollout
    fields = {f"obs {group}": obs[t, n] for group, obs in rollout.observations.items()} | {
        "action": rollout.actions[t, n],
        "mean": rollout.means[t, n],
        "std": rollout.stds[t, n],
        "log_prob": rollout.log_probs[t, n],
        "value": rollout.values[t, n],
        "reward": rollout.rewards[t, n],
        "done": rollout.dones[t, n],
    }
    return {name: _floats(field)[:PREVIEW] for name, field in fields.items()}


def _floats(tensor: Tensor) -> Floats:
    return tensor.detach().flatten().to(torch.float32).cpu().numpy().copy()
