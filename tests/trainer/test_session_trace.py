"""A session answers those who look at a stage, and says once what is broken."""

import pytest
import torch

from tests.trainer.stopped import different
from tests.trainer.test_session import wait_for
from tests.trainer.toy_env import ToyEnv
from trainer.checker import InvariantChecker
from trainer.loop import Trainer
from trainer.rundir import RunDir
from trainer.session import Session
from trainer.stages import Stage
from trainer.telemetry import Command, RunState
from trainer.trace import TraceRequest, Verdict


@pytest.fixture
def start(tmp_path, sessions):
    def start(first=None, num_iterations=100_000):
        config = different(num_iterations=num_iterations, save_interval=100_000)
        session = Session("toy", ToyEnv, config, RunDir.create(tmp_path / "run", ""))
        sessions.append(session)
        if first is not None:
            session.command(first)
        session.start()
        return session

    return start


def answers(stage):
    """Whether a snapshot tells of a stage."""
    return lambda now: now.trace and now.trace.request.stage is stage


def test_a_paused_session_answers_at_once_and_in_full(start):
    session = start(Command.PAUSE)
    wait_for(session, lambda now: now.state is RunState.PAUSED)
    for stage in (Stage.OBSERVE, Stage.FRESH):
        session.look(TraceRequest(stage, world=2))
        trace = wait_for(session, answers(stage)).trace
        assert trace.in_full
        assert trace.request.world == 2
    session.look(None)
    session.command(Command.STEP_STAGE)
    wait_for(session, lambda now: now.state is RunState.PAUSED and now.trace is None)


def test_a_running_session_answers_between_iterations_and_only_if_asked(start):
    session = start()
    wait_for(session, lambda now: now.completed_iterations > 2)
    assert session.snapshot().trace is None
    session.look(TraceRequest(Stage.OPTIMIZE))
    first = wait_for(session, lambda now: now.trace).trace
    assert not first.in_full
    assert first.behind is Stage.FRESH
    later = wait_for(session, lambda now: now.trace.iteration > first.iteration).trace
    assert later.numbers.kl.size == 4


def test_the_row_before_store_is_there_when_stepping_past_it(start):
    session = start(Command.PAUSE)
    wait_for(session, lambda now: now.state is RunState.PAUSED)
    session.command(Command.STEP_ITERATION)
    wait_for(session, lambda now: now.completed_iterations == 1 and now.state is RunState.PAUSED)
    session.look(TraceRequest(Stage.STORE))
    session.command(Command.STEP_PHASE)
    trace = wait_for(session, lambda now: now.trace and now.trace.behind is Stage.STORE).trace
    assert trace.filled == 4
    assert all(field.before is not None for field in trace.numbers.fields)
    assert all(
        field.cached is not None for field in trace.numbers.fields if "obs" not in field.name
    )


def test_ticks_are_published_and_a_broken_one_is_an_event_once(start, monkeypatch):
    monkeypatch.setattr(InvariantChecker.__init__, "__defaults__", (1e9,))  # check them all
    fresh = Trainer.fresh

    def leaky(trainer):
        fresh(trainer)
        if trainer.completed_iterations == 2:
            with torch.no_grad():
                trainer.critic.mlp[0].bias += 1e-6

    monkeypatch.setattr(Trainer, "fresh", leaky)
    session = start(num_iterations=5)
    assert session.join(20)
    states = {state.name: state for state in session.snapshot().invariants}
    red = states.pop("weights, worlds and memory stay")
    assert (red.verdict, red.iteration) == (Verdict.BROKEN, 2)
    assert {state.verdict for state in states.values()} == {Verdict.HOLDS}
    told = [event for event in session.events.since(0)[1] if "invariant" in event.text]
    assert len(told) == 1
    assert "iteration 2, fresh" in told[0].text
    assert session.snapshot().check_cost.every == 1
