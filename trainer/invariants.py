"""What an invariant of a stage is, checked while the run goes on.

A check reads and never writes, draws no random number and does not wait for the device: what it
finds stays there as a few numbers, which `trainer.checker` reads together once an iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

from torch import Tensor

from trainer.stages import Stage
from trainer.telemetry import Position
from trainer.trace import InvariantState, Verdict

Judge = Callable[[Sequence[float]], str]
"""From the numbers read to what is wrong with them; empty where nothing is."""


class Finding(NamedTuple):
    """Numbers on the device that will decide on an invariant."""

    numbers: tuple[Tensor, ...]
    """Of any shape; judged in the order of memory."""
    judge: Judge
    iteration: int


class Pair(NamedTuple):
    """Two fingerprints on the device that must be equal."""

    before: Tensor
    now: Tensor
    detail: str
    iteration: int


class Invariant:
    """One statement about the stages; its methods `entering_<stage>` and `leaving_<stage>` check.

    A subclass hands what it finds to `require`, where it is known at once, or to `later`.
    """

    name: ClassVar[str]
    stage: ClassVar[Stage]
    statement: ClassVar[str]
    method: ClassVar[str]

    def __init__(self) -> None:
        self.state = InvariantState(self.name, self.stage, self.statement, self.method)
        self.findings: list[Finding] = []
        self.pairs: list[Pair] = []

    def require(self, holds: bool, detail: str, at: Position) -> None:
        """Note what is known at once."""
        self.judged("" if holds else detail, at.iteration)

    def later(self, numbers: Sequence[Tensor], judge: Judge, at: Position) -> None:
        """Note what the device will tell."""
        self.findings.append(Finding(tuple(numbers), judge, at.iteration))

    def unchanged(self, before: Tensor, now: Tensor, detail: str, at: Position) -> None:
        """Note that two fingerprints must be equal."""
        self.pairs.append(Pair(before, now, detail, at.iteration))

    def judged(self, wrong: str, iteration: int) -> None:
        """What broke once stays broken: the first iteration where it did is what one looks for."""
        known = self.state.iteration == iteration + 1 and not wrong
        if self.state.verdict is Verdict.BROKEN or known:
            return
        verdict = Verdict.BROKEN if wrong else Verdict.HOLDS
        self.state = replace(self.state, verdict=verdict, iteration=iteration + 1, detail=wrong)
