"""What must hold while a rollout is collected: observe, act_step and store."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from trainer.distributions import log_prob
from trainer.fingerprints import fingerprint, parameters_fingerprint
from trainer.invariants import Invariant, Judge
from trainer.loop import Trainer
from trainer.stages import Stage
from trainer.telemetry import Position


class OneRowAWorld(Invariant):
    """observe: [N, O_g]."""

    name = "one row a world"
    stage = Stage.OBSERVE
    statement = "every observation group has N rows, one a world, for one shared network"
    method = "shapes, at every step"

    def __init__(self) -> None:
        super().__init__()
        self._shapes: dict[str, tuple[int, int]] = {}

    def leaving_observe(self, trainer: Trainer, at: Position) -> None:
        """Compare the shapes with the env's own widths."""
        for group, obs in (trainer.obs or {}).items():
            wanted = self._shapes.get(group)
            if wanted is None:
                terms = trainer.env.observation_terms.get(group, ())
                width = sum(width for _, width in terms) or obs.shape[-1]
                wanted = self._shapes.setdefault(group, (trainer.env.num_envs, width))
            if obs.shape != wanted:
                self.require(False, f"{group} is {list(obs.shape)}, not {list(wanted)}", at)
                return
        self.require(True, "", at)


class WeightsFixed(Invariant):
    """act_step: one policy for all T steps."""

    name = "weights fixed"
    stage = Stage.ACT_STEP
    statement = "no weight and no normaliser changes while the rollout is collected"
    method = "fingerprint of both networks before row 0 and behind row T - 1"

    def entering_observe(self, trainer: Trainer, at: Position) -> None:
        """Take the fingerprint."""
        if at.step == 0:
            self._before = _networks(trainer)

    def leaving_store(self, trainer: Trainer, at: Position) -> None:
        """Compare."""
        if at.step != trainer.rollout.num_steps or not hasattr(self, "_before"):
            return
        for name, before, now in zip(
            ("actor", "critic"), self._before, _networks(trainer), strict=True
        ):
            self.unchanged(before, now, f"the {name} changed while collecting", at)


def _networks(trainer: Trainer) -> tuple[Tensor, Tensor]:
    return (
        parameters_fingerprint(trainer.actor, buffers=True),
        parameters_fingerprint(trainer.critic, buffers=True),
    )


def _is_sampled_row(trainer: Trainer, at: Position) -> bool:
    """Whether the row just stored is the one that this iteration looks at; each has its turn."""
    return at.step - 1 == at.iteration % trainer.rollout.num_steps


class StoredActionIsSample(Invariant):
    """act_step: whatever the env clamps."""

    name = "stored action is the sample"
    stage = Stage.ACT_STEP
    statement = "the row holds the actor's own sample, whatever the env was sent"
    method = "one row an iteration: bits of the action, and its log-probability scored again"

    def leaving_store(self, trainer: Trainer, at: Position) -> None:
        """Compare the row with the decision, and score it."""
        if not _is_sampled_row(trainer, at) or trainer.decision is None:
            return
        rollout, t, sample = trainer.rollout, at.step - 1, trainer.decision
        stored = rollout.actions[t]
        scored = log_prob(stored, rollout.means[t], rollout.stds[t]) - rollout.log_probs[t]
        size = rollout.log_probs[t].abs().amax()
        self.later(
            ((stored != sample.action).any(), scored.abs().amax(), size), _judge_sample(t), at
        )


def _judge_sample(t: int) -> Judge:
    def judge(numbers: Sequence[float]) -> str:
        differs, off, size = numbers
        if differs:
            return f"row {t} holds other actions than were sampled"
        return f"row {t}: log-prob off by {off:.2g}" if off > 1e-3 * (1.0 + size) else ""

    return judge


class TimeOutsBootstrapped(Invariant):
    """store: reward + gamma V_t at a time limit, and nowhere else."""

    name = "time-out adds gamma V_t"
    stage = Stage.STORE
    statement = "a time-out adds gamma V_t to the reward and stays done; a fall adds nothing"
    method = "one row an iteration, all worlds, from what the worlds answered"

    def leaving_store(self, trainer: Trainer, at: Position) -> None:
        """Compute the row again."""
        if not _is_sampled_row(trainer, at) or (feedback := trainer.feedback) is None:
            return
        rollout, t = trainer.rollout, at.step - 1
        cut = feedback.time_outs & ~feedback.terminated
        bonus = trainer.config.gamma * rollout.values[t].view(-1)
        expected = feedback.reward + torch.where(cut, bonus, torch.zeros_like(bonus))
        off = (rollout.rewards[t].view(-1) - expected).abs().amax()
        done = (rollout.dones[t].view(-1) != (feedback.terminated | feedback.time_outs)).any()
        self.later((off, done, expected.abs().amax()), _judge_reward(t), at)


def _judge_reward(t: int) -> Judge:
    def judge(numbers: Sequence[float]) -> str:
        off, done, size = numbers
        if done:
            return f"row {t}: done is not terminated or timed out"
        return f"row {t}: reward off by {off:.2g}" if off > 1e-5 * (1.0 + size) else ""

    return judge


class CursorCountsRows(Invariant):
    """store: t -> t + 1."""

    name = "cursor counts rows"
    stage = Stage.STORE
    statement = "the cursor grows by one a step, and all T rows are filled before targets"
    method = "the cursor, at every step"

    def leaving_store(self, trainer: Trainer, at: Position) -> None:
        """Compare with the loop's own t."""
        cursor = trainer.rollout.cursor
        self.require(cursor == at.step, f"cursor {cursor} behind row {at.step - 1}", at)

    def entering_targets(self, trainer: Trainer, at: Position) -> None:
        """All rows must be there."""
        cursor, steps = trainer.rollout.cursor, trainer.rollout.num_steps
        self.require(cursor == steps, f"cursor {cursor} of {steps} before targets", at)


class RowsStay(Invariant):
    """store: a row is written once."""

    name = "rows stay as stored"
    stage = Stage.STORE
    statement = "a row is written once: no later step touches it"
    method = "fingerprint of one row an iteration, when stored and when the rollout is full"

    def leaving_store(self, trainer: Trainer, at: Position) -> None:
        """Take the fingerprint."""
        if _is_sampled_row(trainer, at):
            self._row, self._before = at.step - 1, _row(trainer, at.step - 1)

    def entering_targets(self, trainer: Trainer, at: Position) -> None:
        """Compare."""
        if hasattr(self, "_before"):
            t = self._row
            self.unchanged(self._before, _row(trainer, t), f"row {t} was written again", at)
            del self._before


def _row(trainer: Trainer, t: int) -> Tensor:
    rollout = trainer.rollout
    tensors = [*rollout.observations.values(), rollout.actions, rollout.rewards, rollout.dones]
    tensors += [rollout.values, rollout.log_probs, rollout.means, rollout.stds]
    return fingerprint(*(tensor[t] for tensor in tensors))
