import json
import time

import pytest
import torch

from tests.trainer.toy_env import ToyEnv
from trainer import checkpoint
from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.rundir import RunDir
from trainer.session import Session
from trainer.stages import Stage
from trainer.telemetry import Command, RunState

SMALL = TrainerConfig(
    seed=7,
    num_iterations=4,
    num_steps_per_env=4,
    num_mini_batches=2,
    num_learning_epochs=2,
    save_interval=2,
    actor=ActorConfig(hidden_dims=(8,)),
    critic=CriticConfig(hidden_dims=(8,)),
)
LONG = SMALL.model_copy(update={"num_iterations": 100_000, "save_interval": 100_000})
ONE_ITERATION = [
    *([Stage.OBSERVE, Stage.ACT_STEP, Stage.STORE] * 4),
    Stage.TARGETS,
    Stage.SAMPLE,
    *([Stage.OPTIMIZE] * 4),
    Stage.FRESH,
]


@pytest.fixture
def start(tmp_path, sessions):
    def start(config=SMALL, env=ToyEnv, first=None):
        run_dir = RunDir.create(tmp_path / f"run{len(sessions)}", "")
        session = Session("toy", env, config, run_dir)
        sessions.append(session)
        if first is not None:
            session.command(first)
        session.start()
        return session

    return start


def wait_for(session, condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition(snapshot := session.snapshot()):
            return snapshot
        time.sleep(0.002)
    raise AssertionError(f"never happened; last: {session.snapshot()}")


def step(session, command=Command.STEP_STAGE):
    """Give a stepping command and wait until the loop has paused again, further on."""
    before = session.snapshot()
    session.command(command)
    return wait_for(
        session,
        lambda now: (
            now.state is RunState.PAUSED
            and not now.pending
            and now.tensors != ()
            and (now.position != before.position or now.tensors is not before.tensors)
        ),
    )


def metrics_of(session):
    """The metrics file without its times."""
    lines = [json.loads(line) for line in session.run_dir.metrics.read_text().splitlines()]
    return [
        {k: v for k, v in line.items() if not k.startswith("Perf/") and k != "elapsed"}
        for line in lines
    ]


def test_a_run_ends_finished_with_metrics_checkpoints_status_and_events(start):
    session = start()
    assert session.join(30)
    snapshot = session.snapshot()
    assert snapshot.state is RunState.FINISHED
    assert snapshot.completed_iterations == 4
    assert snapshot.env_steps == 4 * 4 * 4
    lines = metrics_of(session)
    assert [line["iteration"] for line in lines] == [1, 2, 3, 4]
    assert len(lines[0]["Loss/kl_per_mini_batch"]) == 4
    for tag in ("Loss/value", "Loss/surrogate", "Loss/entropy", "Loss/learning_rate"):
        assert tag in lines[0]
    saved = checkpoint.saved(session.run_dir.checkpoints)
    assert [path.name for path in saved] == ["model_2.pt", "model_4.pt"]
    status = json.loads(session.run_dir.status.read_text())
    assert status["state"] == "finished"
    assert status["checkpoint"] == 4
    events = [json.loads(line) for line in session.run_dir.events.read_text().splitlines()]
    assert (events[0]["kind"], events[0]["iteration"]) == ("start", 1)
    assert (events[-1]["kind"], events[-1]["iteration"]) == ("end", 4)
    saved_at = [event["iteration"] for event in events if event["kind"] == "checkpoint"]
    assert saved_at == [2, 4]


def test_stepping_visits_the_seven_stages_in_order_and_lists_their_tensors(start):
    session = start(LONG, first=Command.PAUSE)
    snapshot = wait_for(session, lambda now: now.state is RunState.PAUSED and now.tensors)
    seen = [snapshot.position.stage]
    tensors = {snapshot.position.stage: snapshot.tensors}
    while len(seen) < 2 * len(ONE_ITERATION):
        snapshot = step(session)
        seen.append(snapshot.position.stage)
        tensors[snapshot.position.stage] = snapshot.tensors
    assert seen == ONE_ITERATION * 2
    shapes = {
        (stage, entry.name): (entry.symbols, entry.shape)
        for stage, entries in tensors.items()
        for entry in entries
    }
    assert shapes[Stage.OBSERVE, "obs.policy"] == ("[N,O_policy]", (4, 2))
    assert shapes[Stage.ACT_STEP, "action"] == ("[N,A]", (4, 1))
    assert shapes[Stage.STORE, "rollout.rewards"] == ("[T,N,1]", (4, 4, 1))
    assert shapes[Stage.TARGETS, "last_values"] == ("[N,1]", (4, 1))
    assert shapes[Stage.SAMPLE, "permutation"] == ("[B]", (16,))
    assert shapes[Stage.OPTIMIZE, "mini_batch.advantages"] == ("[M,1]", (8, 1))
    assert (Stage.FRESH, "actor.mlp.0.weight") in shapes


def test_one_phase_and_one_iteration_stop_where_they_say(start):
    session = start(LONG, first=Command.PAUSE)
    wait_for(session, lambda now: now.state is RunState.PAUSED and now.tensors)
    assert step(session, Command.STEP_PHASE).position.stage is Stage.STORE
    snapshot = step(session, Command.STEP_PHASE)
    assert snapshot.position.stage is Stage.FRESH
    assert snapshot.completed_iterations == 1
    snapshot = step(session, Command.STEP_ITERATION)
    assert snapshot.position.stage is Stage.FRESH
    assert snapshot.completed_iterations == 2


def test_pausing_and_stepping_change_nothing(start):
    straight = start()
    assert straight.join(30)  # two at once would share torch's generator while they build networks
    stepped = start(first=Command.PAUSE)
    wait_for(stepped, lambda now: now.state is RunState.PAUSED and now.tensors)
    for command in [Command.STEP_STAGE] * 9 + [Command.STEP_PHASE] * 2:
        step(stepped, command)
    stepped.command(Command.RUN)
    assert stepped.join(30)
    assert metrics_of(straight) == metrics_of(stepped)
    first, second = (
        checkpoint.load(session.run_dir.checkpoints / "model_4.pt")
        for session in (straight, stepped)
    )
    for network in ("actor", "critic"):
        for name, weights in first[network].items():
            assert torch.equal(weights, second[network][name])


def test_a_checkpoint_asked_for_while_paused_is_saved_at_once(start):
    session = start(LONG, first=Command.PAUSE)
    wait_for(session, lambda now: now.state is RunState.PAUSED and now.tensors)
    step(session, Command.STEP_ITERATION)
    session.command(Command.CHECKPOINT)
    path = session.run_dir.checkpoints / "model_1.pt"
    wait_for(session, lambda now: path.exists())
    assert session.snapshot().state is RunState.PAUSED


def test_stopping_in_the_middle_of_a_pause_saves_the_last_completed_iteration(start):
    session = start(LONG, first=Command.PAUSE)
    wait_for(session, lambda now: now.state is RunState.PAUSED and now.tensors)
    step(session, Command.STEP_ITERATION)
    step(session)
    session.command(Command.STOP_NOW)
    assert session.join(10)
    assert session.snapshot().state is RunState.FINISHED
    state = checkpoint.load(session.run_dir.checkpoints / "model_1.pt")
    assert state["completed_iterations"] == 1
    assert [line["iteration"] for line in metrics_of(session)] == [1]


def test_stopping_behind_fresh_loses_not_even_that_iteration(start):
    session = start(LONG, first=Command.PAUSE)
    wait_for(session, lambda now: now.state is RunState.PAUSED and now.tensors)
    while step(session).position.stage is not Stage.FRESH:
        pass
    session.command(Command.STOP_NOW)
    assert session.join(10)
    assert (session.run_dir.checkpoints / "model_1.pt").exists()
    assert len(metrics_of(session)) == 1


def test_finish_ends_a_paused_run_after_its_iteration(start):
    session = start(LONG, first=Command.PAUSE)
    wait_for(session, lambda now: now.state is RunState.PAUSED and now.tensors)
    session.command(Command.FINISH)
    assert session.join(10)
    assert session.snapshot().completed_iterations == 1
    assert (session.run_dir.checkpoints / "model_1.pt").exists()


def test_an_error_in_the_worlds_is_named_kept_in_the_log_and_loses_nothing(start):
    class Breaks(ToyEnv):
        def step(self, actions):
            if len(self.actions_seen) == 9:
                raise ValueError("boom")
            return super().step(actions)

    session = start(env=Breaks)
    assert session.join(10)
    snapshot = session.snapshot()
    assert snapshot.state is RunState.FAILED
    assert snapshot.failure.message == "ValueError: boom"
    assert snapshot.failure.stage is Stage.ACT_STEP
    assert snapshot.failure.iteration == 3
    assert 'raise ValueError("boom")' in session.run_dir.log.read_text()
    assert (session.run_dir.checkpoints / "model_2.pt").exists()
    assert json.loads(session.run_dir.status.read_text())["state"] == "failed"


def test_a_non_finite_reward_stops_the_update_and_is_named(start):
    class Infinite(ToyEnv):
        def step(self, actions):
            feedback = super().step(actions)
            if len(self.actions_seen) == 6:
                feedback.reward[2] = float("inf")
            return feedback

    session = start(env=Infinite)
    assert session.join(10)
    failure = session.snapshot().failure
    assert "rewards: 1 of 16 non-finite" in failure.message
    assert failure.iteration == 2
    assert (session.run_dir.checkpoints / "model_1.pt").exists()


class Breaking(ToyEnv):
    """Twelve worlds in which all go bad on every step."""

    def __init__(self):
        super().__init__(12)

    def step(self, actions):
        faults = tuple(f"world {world} was reset" for world in range(12))
        return super().step(actions)._replace(faults=faults)


def test_of_many_bad_worlds_an_iteration_names_a_few_and_counts_the_rest(start):
    session = start(env=Breaking)
    assert session.join(20)
    told = [event.text for event in session.events.since(0)[1] if event.kind == "fault"]
    at = {event.iteration for event in session.events.since(0)[1] if event.kind == "fault"}
    assert at == set(range(1, len(at) + 1))
    # 4 steps of 12 worlds
    of_one = [*(f"world {world} was reset" for world in range(8)), "... and 40 more"]
    assert [text.partition(" in this")[0] for text in told] == of_one * 4


class Stuck(ToyEnv):
    def close(self):
        raise OSError("the simulator has gone")


def test_worlds_that_do_not_close_keep_nobody_waiting(tmp_path):
    session = Session("toy", Stuck, SMALL, RunDir.create(tmp_path / "run", ""))
    rows = session.follow()
    session.start()
    seen = 0
    while rows.get(timeout=20) is not None:
        seen += 1
    assert seen == SMALL.num_iterations
    assert session.join(20)
    assert session.snapshot().state is RunState.FINISHED
    assert "did not close: OSError: the simulator has gone" in session.events.since(0)[1][-1].text


def test_worlds_that_cannot_be_built_fail_the_run_with_the_reason(start):
    def broken():
        raise MemoryError("10000000 worlds do not fit")

    session = start(env=broken)
    assert session.join(10)
    assert "10000000 worlds do not fit" in session.snapshot().failure.message


def test_an_error_that_says_nothing_is_named_alone(start):
    def broken():
        raise AssertionError

    session = start(env=broken)
    assert session.join(10)
    assert session.snapshot().failure.message == "AssertionError"


def test_what_the_worlds_tell_while_they_are_built_is_shown_and_their_notices_are_kept(tmp_path):
    seen = []

    def build():
        session.notice("there is less room than there was")
        for text in ("compiling kernels (3 modules, 12 s)", ""):
            session.progress(text)
            seen.append(session.snapshot().progress)
        return ToyEnv()

    session = Session("toy", build, SMALL, RunDir.create(tmp_path / "run", ""))
    session.start()
    assert session.join(20)
    assert seen == ["compiling kernels (3 modules, 12 s)", "building the worlds"]
    assert session.snapshot().progress == ""
    lines = (tmp_path / "run" / "events.jsonl").read_text().splitlines()
    assert "there is less room than there was" in [json.loads(line)["text"] for line in lines]


@pytest.mark.parametrize("command", [Command.STOP_NOW, Command.FINISH])
def test_a_run_that_is_ended_while_kernels_compile_does_not_wait_for_the_rest(tmp_path, command):
    told = []

    def build():
        session.command(command)
        for modules in range(5):
            told.append(modules)
            session.progress(f"compiling kernels ({modules} modules, 1 s)")
        return ToyEnv()

    session = Session("toy", build, SMALL, RunDir.create(tmp_path / "run", ""))
    session.start()
    assert session.join(20)
    assert told == [0]
    assert session.snapshot().state is RunState.FINISHED
    assert session.snapshot().failure is None


def test_a_follower_gets_every_iteration_once_and_then_none(tmp_path):
    session = Session("toy", ToyEnv, SMALL, RunDir.create(tmp_path / "r", ""))
    rows = session.follow()
    session.start()
    got = []
    while (row := rows.get(timeout=10)) is not None:
        got.append(row)
    assert [row.iteration for row in got] == [1, 2, 3, 4]
    assert got[-1].eta == 0.0
    assert session.join(10)


def test_a_checkpoint_that_cannot_be_written_does_not_stop_training(start):
    session = start(LONG, first=Command.PAUSE)
    wait_for(session, lambda now: now.state is RunState.PAUSED and now.tensors)
    session.run_dir.checkpoints.rmdir()
    session.run_dir.checkpoints.touch()  # a file where the folder was
    step(session, Command.STEP_ITERATION)
    session.command(Command.CHECKPOINT)
    wait_for(session, lambda now: any("not saved" in e.text for e in session.events.since(0)[1]))
    assert step(session, Command.STEP_ITERATION).completed_iterations == 2


def test_the_stored_action_is_the_sample_whatever_the_env_receives(start):
    env = ToyEnv()
    config = SMALL.model_copy(update={"clip_actions": 0.01, "num_iterations": 1})
    session = start(config, env=lambda: env)
    assert session.join(10)
    assert max(float(action.abs().max()) for action in env.actions_seen) <= 0.01
    assert float(session._trainer.rollout.actions.abs().max()) > 0.1


def test_a_run_whose_end_cannot_be_saved_does_not_end_as_finished(start):
    session = start(LONG, first=Command.PAUSE)
    wait_for(session, lambda now: now.state is RunState.PAUSED and now.tensors)
    step(session, Command.STEP_ITERATION)
    session.run_dir.checkpoints.rmdir()
    session.run_dir.checkpoints.touch()  # a file where the folder was
    session.command(Command.STOP_NOW)
    assert session.join(10)
    snapshot = session.snapshot()
    assert snapshot.state is RunState.FAILED
    assert "the last 1 iteration could not be saved" in snapshot.failure.message


def test_the_tensors_of_the_stage_that_failed_can_be_looked_at(start):
    class Infinite(ToyEnv):
        def step(self, actions):
            feedback = super().step(actions)
            feedback.reward[2] = float("inf")
            return feedback

    session = start(env=Infinite)
    assert session.join(10)
    assert any(entry.inf for entry in session.snapshot().tensors)
