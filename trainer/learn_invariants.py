"""What must hold while the rollout is learned from: targets, sample, optimize and fresh."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from trainer.fingerprints import fingerprint, parameters_fingerprint
from trainer.invariants import Invariant, Judge
from trainer.loop import Trainer
from trainer.mini_batches import MiniBatches, ShuffledRows, WorldBlocks
from trainer.stages import Stage
from trainer.telemetry import Position

RATIO_TOLERANCE = 1e-2
"""How far a ratio may lie from 1 before the first step: what rounding makes of float32 sums."""
KL_TOLERANCE = 1e-5
"""The same for the mean KL; in units of std a mean has then moved by less than a thousandth."""
RETURN_TOLERANCE = 1e-4
"""Relative to the largest return: float32 against float64 over a whole rollout."""


class DoneCutsChain(Invariant):
    """targets: no credit across a reset."""

    name = "a done cuts the chain"
    stage = Stage.TARGETS
    statement = "no value and no advantage flows backward across an episode's end"
    method = "GAE of the world with most ends, computed again step by step"

    def leaving_targets(self, trainer: Trainer, at: Position) -> None:
        """Gather that world's column; the scan itself waits until the numbers are read."""
        if trainer.last_values is None:
            return
        rollout = trainer.rollout
        world = rollout.dones.sum(0).view(-1).argmax().view(1)
        columns = [
            tensor.index_select(1, world).view(-1).double()
            for tensor in (rollout.rewards, rollout.values, rollout.dones, rollout.returns)
        ]
        last = trainer.last_values.index_select(0, world).view(-1).double()
        gamma, lam = trainer.config.gamma, trainer.config.lam
        judge = _judge_scan(rollout.num_steps, gamma, lam)
        self.later([torch.cat([*columns, last])], judge, at)


def _judge_scan(steps: int, gamma: float, lam: float) -> Judge:
    def judge(numbers: Sequence[float]) -> str:
        rewards, values, dones, returns = (numbers[i * steps : (i + 1) * steps] for i in range(4))
        if not all(map(math.isfinite, numbers)):
            return ""  # the update refuses them, and says where they are
        next_value, advantage = numbers[-1], 0.0
        size = 1.0 + max(map(abs, numbers))
        for t in reversed(range(steps)):
            going = 1.0 - dones[t]
            delta = rewards[t] + gamma * going * next_value - values[t]
            advantage = delta + gamma * lam * going * advantage
            if (off := abs(advantage + values[t] - returns[t])) > RETURN_TOLERANCE * size:
                return f"return at t {t} off by {off:.2g}"
            next_value = values[t]
        return ""

    return judge


class ReturnsNotNormalised(Invariant):
    """targets: the critic learns returns in the reward's own unit."""

    name = "returns never normalised"
    stage = Stage.TARGETS
    statement = "R = A + V of the raw advantages; only the advantages are normalised"
    method = "R - V of all samples, shifted and scaled, against the advantages"

    def leaving_targets(self, trainer: Trainer, at: Position) -> None:
        """Fit the advantages to R - V: shift and scale are those of the normalisation, or none."""
        rollout = trainer.rollout
        raw = rollout.returns - rollout.values
        std, mean = torch.std_mean(raw)
        scale, shift = torch.std_mean(rollout.advantages)
        off = ((raw - mean) / (std + 1e-8) * scale + shift - rollout.advantages).abs().amax()
        self.later((off, std, rollout.returns.abs().amax()), _judge_returns, at)


def _judge_returns(numbers: Sequence[float]) -> str:
    off, std, size = numbers
    # Where R - V cancels, float32 leaves 6e-8 of the larger, magnified by the division.
    rounding = 1e-3 + 1e-6 * size / max(std, 1e-12)
    return f"R - V and the advantages differ by {off:.2g}" if off > rounding else ""


class SamePartition(Invariant):
    """sample: one partition for all epochs."""

    name = "same partition in all epochs"
    stage = Stage.SAMPLE
    statement = "mini-batch k holds the same samples in every epoch, and each sample is in one"
    method = "the order they are read in: untouched at every optimizer step, its sum before fresh"

    def leaving_sample(self, trainer: Trainer, at: Position) -> None:
        """Begin an update; the members of all mini-batches must be 0 to their number - 1."""
        if (order := _order(trainer.mini_batches)) is None:
            return
        self._touched = _touched(order)
        self._members = _members(order, trainer.config.num_mini_batches)
        whole = _mixed(torch.arange(order.numel(), device=order.device)).sum()
        self.unchanged(whole, self._members.sum(), "a sample is missing, or there twice", at)

    def entering_optimize(self, trainer: Trainer, at: Position) -> None:
        """Only where something has touched the order, compare the members."""
        order = _order(trainer.mini_batches)
        if order is not None and _touched(order) != self._touched:
            self._touched = _touched(order)
            self._compare(trainer, order, at)

    def entering_fresh(self, trainer: Trainer, at: Position) -> None:
        """Compare at the end in any case."""
        if (order := _order(trainer.mini_batches)) is not None:
            self._compare(trainer, order, at)

    def _compare(self, trainer: Trainer, order: Tensor, at: Position) -> None:
        now = _members(order, trainer.config.num_mini_batches)
        for k, (first, member) in enumerate(zip(self._members, now, strict=True)):
            detail = f"mini-batch {k + 1} of epoch {at.epoch + 1} holds other samples"
            self.unchanged(first, member, detail, at)


def _order(mini_batches: MiniBatches | None) -> Tensor | None:
    """Rows, or worlds, in the order in which the mini-batches read them."""
    match mini_batches:
        case ShuffledRows() as shuffled:
            return shuffled.permutation
        case WorldBlocks() as blocks:
            return blocks.worlds
    return None


def _touched(order: Tensor) -> tuple[int, int]:
    """What changes when another tensor takes its place, or when it is written to."""
    return id(order), order._version


def _members(order: Tensor, num_mini_batches: int) -> Tensor:
    """A number for the set of members of each mini-batch, [mini-batches] int64."""
    return _mixed(order.view(num_mini_batches, -1)).sum(1)


def _mixed(numbers: Tensor) -> Tensor:
    """Spread numbers out, so that other sets do not have the same sum."""
    return numbers * (numbers ^ 0x5BD1E995)


class BatchFrozen(Invariant):
    """sample: what the update reads does not move."""

    name = "targets and old statistics frozen"
    stage = Stage.SAMPLE
    statement = "no epoch changes targets, old log-probs, old values, means or stds"
    method = "fingerprint of each field behind sample and before fresh"

    def leaving_sample(self, trainer: Trainer, at: Position) -> None:
        """Take the fingerprints."""
        self._before = _frozen(trainer)

    def entering_fresh(self, trainer: Trainer, at: Position) -> None:
        """Compare."""
        for name, now in _frozen(trainer).items():
            if (before := self._before.get(name)) is not None:
                self.unchanged(before, now, f"{name} changed during the update", at)


def _frozen(trainer: Trainer) -> dict[str, Tensor]:
    rollout = trainer.rollout
    fields = ("returns", "advantages", "log_probs", "values", "means", "stds", "actions")
    found = {name: fingerprint(getattr(rollout, name)) for name in fields}
    return found | {"observations": fingerprint(*rollout.observations.values())}


class FirstRatioIsOne(Invariant):
    """optimize: the policy has not moved before the first step."""

    name = "ratio 1 and KL 0 at first"
    stage = Stage.OPTIMIZE
    statement = "before the first step the new policy is the old: every ratio is 1, the KL 0"
    method = (
        "the first mini-batch: largest |ratio - 1| and KL, to rounding "
        f"({RATIO_TOLERANCE:g}, {KL_TOLERANCE:g}); normalisers move only in fresh"
    )

    def leaving_optimize(self, trainer: Trainer, at: Position) -> None:
        """Look at the first mini-batch."""
        if (at.epoch, at.mini_batch) != (0, 0) or not trainer.results:
            return
        result = trainer.results[0]
        own = trainer.rollout.num_samples // trainer.config.num_mini_batches
        off, kl = (result.ratio[:own] - 1.0).abs().amax(), result.kl

        def judge(numbers: Sequence[float]) -> str:
            if abs(kl) > KL_TOLERANCE:
                return f"KL {kl:.2g} before the first step"
            off = numbers[0]
            return f"a ratio is off 1 by {off:.2g}" if not off <= RATIO_TOLERANCE else ""

        self.later((off,), judge, at)


class AllStepsRun(Invariant):
    """optimize: the KL moves the rate and nothing else."""

    name = "no epoch ends early"
    stage = Stage.OPTIMIZE
    statement = "the KL moves the rate; every epoch runs all its mini-batches"
    method = "optimizer steps counted before fresh"

    def entering_fresh(self, trainer: Trainer, at: Position) -> None:
        """Count."""
        config = trainer.config
        wanted = config.num_learning_epochs * config.num_mini_batches
        made = len(trainer.results)
        self.require(made == wanted, f"{made} of {wanted} optimizer steps", at)


class ObsCarriedOver(Invariant):
    """fresh: obs_T is row 0 of what follows."""

    name = "obs_T goes on as row 0"
    stage = Stage.FRESH
    statement = "the last observation of an iteration is row 0 of the next rollout"
    method = "fingerprint of obs_T behind targets and of the next row 0"

    def leaving_targets(self, trainer: Trainer, at: Position) -> None:
        """Take the fingerprint of the groups that are stored."""
        stored = trainer.rollout.observations
        last = [obs for group, obs in (trainer.obs or {}).items() if group in stored]
        self._last = fingerprint(*last) if last else None

    def leaving_store(self, trainer: Trainer, at: Position) -> None:
        """Compare with row 0."""
        if at.step == 1 and (last := getattr(self, "_last", None)) is not None:
            row = fingerprint(*(obs[0] for obs in trainer.rollout.observations.values()))
            self.unchanged(last, row, "row 0 is not the last rollout's obs_T", at)
            self._last = None


class StaysInFresh(Invariant):
    """fresh: only the cursor moves."""

    name = "weights, worlds and memory stay"
    stage = Stage.FRESH
    statement = "weights, obs_T, running episodes and the rollout's tensors stay; the cursor is 0"
    method = "fingerprints and addresses before and behind fresh"

    def entering_fresh(self, trainer: Trainer, at: Position) -> None:
        """Take them."""
        self._before = _kept(trainer)
        self._addresses = _addresses(trainer)

    def leaving_fresh(self, trainer: Trainer, at: Position) -> None:
        """Compare."""
        if not hasattr(self, "_before"):
            return
        cursor = trainer.rollout.cursor
        self.require(cursor == 0, f"the cursor is at {cursor}", at)
        self.require(self._addresses == _addresses(trainer), "the rollout was made anew", at)
        for name, now in _kept(trainer).items():
            self.unchanged(self._before[name], now, f"{name} changed in fresh", at)


def _kept(trainer: Trainer) -> dict[str, Tensor]:
    obs = (trainer.obs or {}).values()
    return {
        "a weight": parameters_fingerprint(trainer.actor, trainer.critic),
        "obs_T": fingerprint(*obs) if obs else torch.zeros((), dtype=torch.int64),
        "a running episode": fingerprint(trainer.env.episode_length),
    }


def _addresses(trainer: Trainer) -> tuple[int, ...]:
    rollout = trainer.rollout
    return tuple(
        tensor.data_ptr()
        for tensor in (*rollout.observations.values(), rollout.actions, rollout.returns)
    )
