"""Runs the checks of all invariants at the stage boundaries, and settles what they found."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import torch

from trainer import collect_invariants as collect
from trainer import learn_invariants as learn
from trainer.invariants import Invariant, Pair
from trainer.loop import Trainer
from trainer.stages import Stage
from trainer.telemetry import Position
from trainer.trace import CheckCost, InvariantState, Verdict

INVARIANTS: tuple[type[Invariant], ...] = (
    collect.OneRowAWorld,
    collect.WeightsFixed,
    collect.StoredActionIsSample,
    collect.TimeOutsBootstrapped,
    collect.CursorCountsRows,
    collect.RowsStay,
    learn.DoneCutsChain,
    learn.ReturnsNotNormalised,
    learn.SamePartition,
    learn.BatchFrozen,
    learn.FirstRatioIsOne,
    learn.AllStepsRun,
    learn.ObsCarriedOver,
    learn.StaysInFresh,
)
"""In the order of the stages."""

Hook = Callable[[Trainer, Position], None]


class InvariantChecker:
    """All invariants of one trainer; told of every stage boundary.

    Iterations may be so short that checking each of them would be felt: then only every so many is
    checked, together with the first row of the one behind it.

    Args:
        trainer: whose stages to watch.
        budget: share of the time of iterations that the checks may take.
    """

    def __init__(self, trainer: Trainer, budget: float = 0.005) -> None:
        self._trainer = trainer
        self._budget = budget
        self._invariants = [kind() for kind in INVARIANTS]
        self._entering = self._hooks("entering")
        self._leaving = self._hooks("leaving")
        self._told: set[str] = set()
        self._is_due = True
        self._next = 0
        self._spent = 0.0
        self.cost: CheckCost | None = None
        """What checking costs, as far as known."""

    @property
    def states(self) -> tuple[InvariantState, ...]:
        """What is known of each, in the order of the stages."""
        return tuple(invariant.state for invariant in self._invariants)

    def entering(self, position: Position) -> None:
        """Check what must hold before a stage."""
        if position.stage is Stage.OBSERVE and position.step == 0:
            self._is_due = self._is_due or position.iteration >= self._next
        if self._is_due:
            self._run(self._entering[position.stage], position)

    def leaving(self, position: Position) -> None:
        """Check what must hold behind a stage; behind the last one, settle."""
        if self._is_due:
            self._run(self._leaving[position.stage], position)
        if position.stage is Stage.STORE and position.step == 1:
            self._is_due = position.iteration >= self._next
        elif position.stage is Stage.FRESH:
            self._complete(position)

    def _complete(self, position: Position) -> None:
        """Settle, and choose the next iteration to check."""
        self.settle()
        if self._is_due:
            total = sum(self._trainer.stage_seconds)
            every = min(max(math.ceil(self._spent / max(self._budget * total, 1e-9)), 1), 100)
            share = self._spent / max(every * total, 1e-9)
            self.cost = CheckCost(self._spent, share, every)
            self._next = position.iteration + every
        self._spent = 0.0

    def settle(self) -> None:
        """Read all findings from the device at once and judge them."""
        started = time.thread_time()
        found = [(i, finding) for i in self._invariants for finding in i.findings]
        pairs = [(i, pair) for i in self._invariants for pair in i.pairs]
        numbers = [number for _, finding in found for number in finding.numbers]
        read: list[float] = []
        if numbers:
            read = torch.cat([number.reshape(-1).double() for number in numbers]).tolist()
        start = 0
        for invariant, finding in found:
            stop = start + sum(number.numel() for number in finding.numbers)
            invariant.judged(finding.judge(read[start:stop]), finding.iteration)
            start = stop
        for (invariant, pair), differ in zip(pairs, _differ(pairs), strict=True):
            invariant.judged(pair.detail if differ else "", pair.iteration)
        for invariant in self._invariants:
            invariant.findings.clear()
            invariant.pairs.clear()
        self._spent += time.thread_time() - started

    def newly_broken(self) -> list[InvariantState]:
        """Return those that broke since the last call."""
        broken = [
            s for s in self.states if s.verdict is Verdict.BROKEN and s.name not in self._told
        ]
        self._told.update(state.name for state in broken)
        return broken

    @torch.no_grad()
    def _run(self, hooks: Sequence[Hook], position: Position) -> None:
        if hooks:
            started = time.thread_time()
            for hook in hooks:
                hook(self._trainer, position)
            self._spent += time.thread_time() - started

    def _hooks(self, when: str) -> dict[Stage, list[Hook]]:
        return {
            stage: [
                getattr(invariant, name)
                for invariant in self._invariants
                if hasattr(invariant, name := f"{when}_{stage.label}")
            ]
            for stage in Stage
        }


def _differ(pairs: Sequence[tuple[Invariant, Pair]]) -> Sequence[bool]:
    if not pairs:
        return ()
    before = torch.stack([pair.before for _, pair in pairs])
    differ: list[bool] = (before != torch.stack([pair.now for _, pair in pairs])).tolist()
    return differ
