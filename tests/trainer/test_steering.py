"""A running session is steered: it counts, dwells, pauses behind chosen stages, breaks, edits."""

import json
import time
from dataclasses import replace

import pytest
import torch

from tests.trainer.adjustable_env import AdjustableToyEnv
from tests.trainer.test_session import LONG, ONE_ITERATION, SMALL, metrics_of, wait_for
from tests.trainer.toy_env import ToyEnv
from trainer import checkpoint
from trainer.breakpoints import parse
from trainer.control import Arm, Disarm, Edit, PauseBehind, RunIterations, SlowMotion, Undo
from trainer.rundir import RunDir
from trainer.session import Session
from trainer.stages import Stage
from trainer.telemetry import Command, RunState


@pytest.fixture
def make(tmp_path, sessions):
    def make(config=SMALL, env=AdjustableToyEnv, first=(), resume=None, run_dir=None):
        run_dir = run_dir or RunDir.create(tmp_path / f"run{len(sessions)}", "")
        session = Session("toy", env, config, run_dir, resume=resume)
        sessions.append(session)
        for request in first:
            (session.command if isinstance(request, Command) else session.control)(request)
        session.start()
        return session

    return make


def paused(session, **wanted):
    """Wait until the loop is paused, with these fields of the snapshot."""
    return wait_for(
        session,
        lambda now: (
            now.state is RunState.PAUSED
            and now.tensors
            and not now.pending
            and all(getattr(now, name) == value for name, value in wanted.items())
        ),
    )


def texts(session, kind):
    return [event.text for event in session.events.since(0)[1] if event.kind == kind]


def weights(session, iteration):
    state = checkpoint.load(session.run_dir.checkpoints / f"model_{iteration}.pt")
    return torch.cat([w.flatten() for net in ("actor", "critic") for w in state[net].values()])


def test_so_many_iterations_are_run_and_no_more(make):
    session = make(LONG, first=[RunIterations(3)])
    assert paused(session).completed_iterations == 3
    session.control(RunIterations(2))
    assert paused(session, completed_iterations=5).position.stage is Stage.FRESH


def test_the_running_iteration_counts(make):
    session = make(LONG, first=[Command.PAUSE])
    paused(session)
    session.control(RunIterations(2))
    assert "2 iterations" in session.snapshot().pending or paused(session)
    assert paused(session, completed_iterations=2)


def test_a_run_pauses_behind_every_stage_of_the_mask_and_behind_no_other(make):
    session = make(LONG, first=[PauseBehind((Stage.TARGETS, Stage.OPTIMIZE))])
    seen = []
    for _ in range(7):
        now = paused(session)
        seen.append(now.position)
        session.command(Command.RUN)
        wait_for(session, lambda n, at=now: n.position != at.position)
    expected = [Stage.TARGETS, *[Stage.OPTIMIZE] * 4, Stage.TARGETS, Stage.OPTIMIZE]
    assert [at.stage for at in seen] == expected
    session.control(PauseBehind(()))
    session.command(Command.RUN)
    wait_for(session, lambda now: now.completed_iterations > 3)


def test_pauses_slow_motion_and_masks_change_no_result(make):
    straight = make()
    assert straight.join(30)
    steered = make(first=[SlowMotion(0.002), PauseBehind((Stage.STORE, Stage.SAMPLE))])
    for _ in range(4 * 5):
        now = paused(steered)
        steered.command(Command.RUN)
        wait_for(steered, lambda n, at=now: n.position != at.position or n.state.is_over)
    assert steered.join(30)
    assert metrics_of(straight) == metrics_of(steered)
    assert torch.equal(weights(straight, 4), weights(steered, 4))


def test_slow_motion_is_no_training_time_and_is_shown(make):
    config = SMALL.model_copy(update={"num_iterations": 2})
    began = time.monotonic()
    session = make(config, first=[SlowMotion(0.02)])
    assert session.snapshot().control.dwell == 0.02
    assert session.join(30)
    passed = time.monotonic() - began
    assert passed > 2 * len(ONE_ITERATION) * 0.02
    assert session.snapshot().elapsed < passed - 2 * len(ONE_ITERATION) * 0.02
    assert sum(session.snapshot().stage_seconds) < 0.02 * len(ONE_ITERATION)


@pytest.mark.parametrize("command", [Command.PAUSE, Command.STOP_NOW])
def test_a_loop_that_dwells_answers_at_once(make, command):
    session = make(LONG, first=[SlowMotion(2.0)])
    wait_for(session, lambda now: now.state is RunState.RUNNING and session._gate._orders == 0)
    time.sleep(0.1)
    began = time.monotonic()
    session.command(command)
    wait_for(session, lambda now: now.state in (RunState.PAUSED, RunState.FINISHED))
    assert time.monotonic() - began < 1.0


def test_slow_motion_that_is_switched_off_ends_the_dwell(make):
    session = make(LONG, first=[SlowMotion(2.0)])
    wait_for(session, lambda now: now.state is RunState.RUNNING)
    session.control(SlowMotion(0.0))
    wait_for(session, lambda now: now.completed_iterations > 2, seconds=1.5)


def test_a_breakpoint_pauses_at_the_end_of_the_iteration_once(make):
    session = make(
        LONG, first=[Arm(parse("iteration 3")), Arm(parse("Loss/entropy > -100 always"))]
    )
    now = paused(session)
    assert now.completed_iterations == 1
    assert now.position.stage is Stage.FRESH
    assert now.control.paused_by.startswith("Loss/entropy 1.4")
    assert len(now.control.breakpoints) == 2
    session.control(Disarm(parse("Loss/entropy > -100 always")))
    session.command(Command.RUN)
    now = paused(session, completed_iterations=3)
    assert now.control.paused_by == "iteration 3 is done"
    assert now.control.breakpoints == ()
    assert "paused: iteration 3 is done (breakpoint iteration 3)" in texts(session, "break")
    session.command(Command.RUN)
    wait_for(session, lambda n: n.completed_iterations > 5 and not n.control.paused_by)


def test_a_number_that_is_not_finite_can_be_looked_at_before_the_run_fails(make):
    class Infinite(ToyEnv):
        def step(self, actions):
            feedback = super().step(actions)
            if len(self.actions_seen) == 6:
                feedback.reward[2] = float("inf")
            return feedback

    session = make(LONG, env=Infinite, first=[Arm(parse("nan"))])
    now = paused(session)
    assert "rewards: 1 of 16 non-finite" in now.control.paused_by
    session.command(Command.RUN)
    assert session.join(10)
    assert "rewards: 1 of 16 non-finite" in session.snapshot().failure.message


def test_an_edit_waits_for_the_end_of_the_iteration_and_is_logged_with_its_reason(make):
    session = make(LONG, first=[Command.PAUSE])
    paused(session)
    session.control(Edit("trainer.entropy_coef", 0.2, "it stands still"))
    session.control(Edit("trainer.clip_param", -1.0))
    assert session.snapshot().pending == "2 edits when this iteration ends"
    assert not session.snapshot().control.edits
    session.command(Command.STEP_ITERATION)
    now = paused(session, completed_iterations=1)
    assert [edit.iteration for edit in now.control.edits] == [1]
    done, refused = texts(session, "edit")
    assert done == "trainer.entropy_coef 0.01 to 0.2 (it stands still)"
    assert refused.startswith("refused: trainer.clip_param = -1.0: must be greater than 0")
    logged = [json.loads(line) for line in session.run_dir.events.read_text().splitlines()]
    assert done in [event["text"] for event in logged if event["kind"] == "edit"]


def test_what_is_shown_of_a_run_follows_its_edits(make):
    session = make(LONG, first=[RunIterations(1)])
    paused(session)
    session.control(Edit("trainer.clip_param", 0.1))
    session.control(Edit("env.rewards.near.weight", 2.0))
    session.control(Edit("trainer.learning_rate", 1e-4))
    now = wait_for(session, lambda now: len(now.control.edits) == 3)
    now = wait_for(session, lambda now: now.info.desired_kl is None)
    assert now.info.clip_param == 0.1
    assert now.info.reward_terms == {"near": 2.0}
    assert {one.key: one.value for one in now.control.adjustables}["trainer.schedule"] == "fixed"
    session.control(Undo("too slow"))
    now = wait_for(session, lambda now: now.info.desired_kl == 0.01)
    assert len(now.control.edits) == 2
    assert texts(session, "edit")[-1].startswith("taken back: trainer.learning_rate")
    assert texts(session, "edit")[-1].endswith("(too slow)")


def test_an_edit_behind_a_saved_iteration_is_in_its_checkpoint_and_goes_on_bit_for_bit(make):
    config = SMALL.model_copy(update={"num_iterations": 6, "save_interval": 2})
    session = make(config, first=[RunIterations(2)])
    paused(session)
    session.control(Edit("trainer.entropy_coef", 0.3))
    session.control(Edit("env.commands.start.x", (-0.2, 0.2)))
    wait_for(session, lambda now: len(now.control.edits) == 2)
    path = session.run_dir.checkpoints / "model_2.pt"
    wait_for(session, lambda now: len(checkpoint.load(path).get("edits", ())) == 2)
    resumed = make(config, resume=checkpoint.load(path))
    session.command(Command.RUN)
    assert session.join(30)
    assert resumed.join(30)
    assert torch.equal(weights(session, 6), weights(resumed, 6))
    assert metrics_of(resumed) == metrics_of(session)[2:]
    assert len(resumed.snapshot().control.edits) == 2


def test_nobody_there_means_no_pause_but_the_one_that_was_asked_for(make):
    session = make(LONG, first=[SlowMotion(0.5), PauseBehind((Stage.STORE,)), Arm(parse("nan"))])
    paused(session)
    session.command(Command.LET_GO)
    now = session.snapshot()
    assert now.state is RunState.PAUSED
    assert (now.control.dwell, now.control.mask, now.control.breakpoints) == (0.0, (), ())
    session.command(Command.RUN)
    wait_for(session, lambda n: n.completed_iterations > 3)


def test_the_end_of_an_iteration_is_kept_whole(make):
    session = make(LONG, first=[RunIterations(2)])
    ended = paused(session).boundary
    assert ended.completed_iterations == 2
    assert ended.rollout.filled == SMALL.num_steps_per_env
    assert ended.boundary is None
    assert replace(ended, seq=0).metrics


def test_what_is_no_request_is_refused(make):
    with pytest.raises(TypeError, match="no request"):
        make(LONG).control("faster")


def test_nothing_that_slows_or_pauses_holds_up_the_end(make):
    session = make(
        LONG,
        first=[SlowMotion(2.0), PauseBehind((Stage.STORE,)), Arm(parse("iteration 1"))],
    )
    wait_for(session, lambda now: now.state is RunState.RUNNING)
    session.command(Command.FINISH)
    assert session.join(5)
    assert session.snapshot().state is RunState.FINISHED
    assert session.snapshot().completed_iterations == 1
