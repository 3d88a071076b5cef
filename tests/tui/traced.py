"""Answers to those who look at a stage, from a small real trainer stopped where a fake one is."""

from dataclasses import replace
from functools import cache

from tests.trainer.stopped import different, stopped_behind
from tests.trainer.toy_env import ToyEnv
from trainer.checker import InvariantChecker
from trainer.stages import Stage
from trainer.telemetry import Position
from trainer.trace import Verdict
from trainer.tracing import Tracer

NUM_ENVS, NUM_STEPS = 64, 24
CONFIG = different(num_steps_per_env=NUM_STEPS, num_mini_batches=4, num_learning_epochs=5)


@cache
def tracer_behind(stage):
    """A tracer whose trainer is stopped behind a stage, in the middle of its third iteration."""
    step = {Stage.OBSERVE: 17, Stage.ACT_STEP: 17, Stage.STORE: 18}.get(stage, NUM_STEPS)
    epoch, mini_batch = (2, 1) if stage is Stage.OPTIMIZE else (0, 0)
    at = Position(2, stage, step, epoch, mini_batch)
    return Tracer(stopped_behind(at, CONFIG, ToyEnv(NUM_ENVS, 20)))


def answer(request, behind, *, in_full=True):
    """What a session paused behind a stage would say."""
    return tracer_behind(behind).trace(request, in_full=in_full)


@cache
def all_hold(iteration=312):
    """What checking shows where everything is as it should be."""
    checker = InvariantChecker(tracer_behind(Stage.FRESH)._trainer)
    return tuple(
        replace(state, verdict=Verdict.HOLDS, iteration=iteration) for state in checker.states
    )
