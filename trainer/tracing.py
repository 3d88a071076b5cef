"""Looks at one stage from the inside: its numbers for one world, its tensors, one of them large.

Runs in the session's thread alone; what it returns holds no tensor.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from trainer.loop import Trainer
from trainer.stage_numbers import StageNumbers, place_of
from trainer.stages import Stage
from trainer.telemetry import Position, TensorSummary
from trainer.tensors import (
    NamedTensor,
    reward_term_values,
    stage_tensors,
    summarize,
)
from trainer.trace import NEWEST, Trace, TraceRequest
from trainer.views import tensor_view


class Tracer:
    """Answers requests to look at a stage.

    Args:
        trainer: whose stages to look at.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._numbers = StageNumbers(trainer)

    @torch.no_grad()
    def trace(self, request: TraceRequest, *, in_full: bool) -> Trace:
        """Look at a stage.

        Args:
            request: what to look at.
            in_full: all entries of all tensors; else statistics of a part of them.
        """
        trainer, at = self._trainer, self._trainer.position
        request = self._within(request)
        entries = stage_tensors(trainer, request.stage)
        opened = next((entry for entry in entries if entry.name == request.tensor), None)
        return Trace(
            request=request,
            behind=at.stage,
            iteration=at.iteration,
            filled=at.step,
            has_run=has_run(request.stage, at),
            in_full=in_full,
            tensors=tuple(self._summary(entry, in_full) for entry in entries),
            numbers=self._numbers.of(request),
            view=tensor_view(opened, request, trainer.rollout.dones, place_of(trainer, request))
            if opened is not None
            else None,
        )

    @torch.no_grad()
    def remember_row(self, world: int) -> None:
        """Keep what row t holds of one world, just before `store` overwrites it."""
        self._numbers.remember_row(world)

    def _within(self, request: TraceRequest) -> TraceRequest:
        """Keep a request inside the rollout, and say which step the newest one is."""
        rollout, at = self._trainer.rollout, self._trainer.position
        step = (
            request.step
            if request.step != NEWEST
            else newest_step(request.stage, at, rollout.num_steps)
        )
        return replace(
            request,
            step=min(max(step, 0), rollout.num_steps - 1),
            world=min(max(request.world, 0), rollout.num_envs - 1),
        )

    def _summary(self, entry: NamedTensor, in_full: bool) -> TensorSummary:
        summary = summarize(entry, in_full=in_full)
        if summary.bad_index and not summary.bad_name and "reward" in entry.name:
            return replace(summary, bad_name=self._bad_reward_terms(entry, summary.bad_index))
        return summary

    def _bad_reward_terms(self, entry: NamedTensor, index: tuple[int, ...]) -> str:
        """Name the terms that made a reward bad, where it is of the newest step."""
        terms, at = reward_term_values(self._trainer), self._trainer.position
        newest = len(index) == 1 or index[0] == at.step - 1
        if terms is None or not newest:
            return ""
        world = index[0] if len(index) == 1 else index[1]
        bad = ~terms[:, world].isfinite()
        names = list(self._trainer.env.reward_terms)
        return ", ".join(names[i] for i in bad.nonzero().flatten().tolist())


def has_run(stage: Stage, at: Position) -> bool:
    """Whether a stage has run in the present iteration."""
    if stage >= Stage.TARGETS:
        return at.stage >= stage
    return at.step > 0 or at.stage >= stage


def newest_step(stage: Stage, at: Position, num_steps: int) -> int:
    """The newest step that a stage has something to show of.

    Behind act_step `store` shows the row that it is about to write.
    """
    pending = {
        Stage.OBSERVE: at.stage in (Stage.OBSERVE, Stage.ACT_STEP),
        Stage.ACT_STEP: at.stage is Stage.ACT_STEP,
        Stage.STORE: at.stage is Stage.ACT_STEP,
    }
    if pending.get(stage, False):
        return at.step
    return at.step - 1 if at.step > 0 else num_steps - 1
