"""Two real processes over Gloo learn as one with the worlds of both."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
import torch

from tests.trainer import rank_tasks
from tests.trainer.rank_tasks import CONFIG
from tests.trainer.test_session import metrics_of, wait_for
from tests.trainer.toy_env import ToyEnv
from trainer import checkpoint
from trainer.control import Edit, RunIterations, Undo
from trainer.launch import StartedRanks
from trainer.leading import lead
from trainer.rundir import RunDir
from trainer.session import Session
from trainer.stages import Stage
from trainer.telemetry import Command, RunState

LONG = {"num_iterations": 100_000, "save_interval": 100_000}
CPU = torch.device("cpu")


class Pair:
    """A session in this process, and rank 1 in another."""

    def __init__(self, path, fault="", resume=None, **changes):
        config = CONFIG.model_copy(update=changes)
        log = path / "log.txt"
        run_dir = (
            RunDir.create(path, "")
            if resume is None
            else RunDir.reopen(path, "", resume["completed_iterations"])
        )
        command = [sys.executable, str(Path(__file__).with_name("toy_rank.py")), "worlds", fault]
        self.launcher = StartedRanks(2, command, log)

        def job_for(rank):
            state = checkpoint.for_rank(resume, rank, 2) if resume is not None else {}
            return {"config": changes, "state": state}

        self.session = Session(
            "toy",
            ToyEnv,
            config,
            run_dir,
            resume=checkpoint.for_rank(resume, 0, 2) if resume is not None else None,
            join=lambda on_loss, interrupted: lead(
                self.launcher, CPU, job_for, on_loss, interrupted
            ),
        )

    def __enter__(self):
        self.session.start()
        return self

    def __exit__(self, *_):
        self.session.command(Command.STOP_NOW)
        assert self.session.join(20)
        assert self.rank_1.poll() is not None

    @property
    def rank_1(self):
        return self.launcher._processes[1]

    def finish(self):
        assert self.session.join(40)
        assert self.session.snapshot().state is RunState.FINISHED, self.session.snapshot().failure
        return self.session

    def wait_for_failure(self, seconds=8.0):
        return wait_for(self.session, lambda now: now.state is RunState.FAILED, seconds).failure

    def wait_for_iteration(self, number):
        wait_for(self.session, lambda now: now.completed_iterations >= number, 30)


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    assert "LOCAL_WORLD_SIZE" not in os.environ


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What each of two ranks computed together with the other."""
    threads = torch.get_num_threads()
    log = tmp_path_factory.mktemp("maths") / "log.txt"
    command = [sys.executable, str(Path(__file__).with_name("toy_rank.py")), "maths"]
    group = lead(StartedRanks(2, command, log), CPU, lambda rank: {}, lambda: None, lambda: False)
    try:
        group.assemble([], lambda: False)
        own = rank_tasks.do_all(group)
        (other,) = group.worlds_of_others(1)
        assert other is not None, log.read_text()
        return own, other
    finally:
        group.close()
        torch.set_num_threads(threads)


def test_moments_of_two_ranks_are_those_of_all_rows(results):
    for result in results:
        count, mean, var = result["even"]
        assert (count, float(mean), float(var)) == (4, 6.5, 32.75)
        count, mean, var = result["uneven"]
        assert (count, float(mean), float(var)) == (4, 2.0, 12.0)  # not 4, the mean of two means


def test_the_normalizer_is_that_of_the_joined_batch(results):
    joined = rank_tasks.normalizer_of([*rank_tasks.UNEVEN[0], *rank_tasks.UNEVEN[1]], None)
    for result in results:
        for name, expected in joined.items():
            torch.testing.assert_close(result["normalizer"][name], expected, rtol=0, atol=1e-6)
    assert int(joined["count"]) == 8


def test_the_mean_of_all_ranks_kl_moves_the_rate_of_each(results):
    for result in results:
        assert result["kl"] == pytest.approx(0.027)
        assert result["rate"] == pytest.approx(6.6667e-4, rel=1e-4)  # alone 1.5e-3 on rank 0
    assert results[0]["kl"] == results[1]["kl"]


def test_advantages_are_normalised_over_all_ranks(results):
    both = torch.cat([rank_tasks.advantages(rank) for rank in (0, 1)])
    normalised = (both - both.mean()) / (both.std() + 1e-8)
    ours = torch.cat([result["advantages"] for result in results])
    torch.testing.assert_close(ours, normalised, rtol=0, atol=1e-6)


def test_ranks_take_the_step_of_one_process_with_the_joined_batch(results):
    mine, other = (rank_tasks.batch(rank) for rank in (0, 1))
    joined = mine._replace(
        observations={
            group: torch.cat((rows, other.observations[group]))
            for group, rows in mine.observations.items()
        },
        **{
            name: torch.cat((rows, getattr(other, name)))
            for name, rows in mine._asdict().items()
            if isinstance(rows, torch.Tensor)
        },
    )
    alone = rank_tasks.learn(rank_tasks.new_learner(), joined)
    for result in results:
        learnt = result["learnt"]
        for name in ("rates", "kls", "losses", "norms"):
            torch.testing.assert_close(
                torch.tensor(learnt[name]), torch.tensor(alone[name]), rtol=1e-5, atol=1e-6
            )
        for name, gradient in alone["gradients"].items():
            torch.testing.assert_close(learnt["gradients"][name], gradient, rtol=0, atol=1e-6)
    assert len(set(alone["rates"])) > 1  # the schedule had something to do


def test_after_an_update_all_ranks_hold_the_same_bits(results):
    one, other = (result["learnt"] for result in results)
    assert one["rates"] == other["rates"]
    assert one["kls"] == other["kls"]
    for name, weights in one["weights"].items():
        assert torch.equal(weights, other["weights"][name]), name


def test_extensions_learn_as_one_process_would_from_the_joined_batch(results):
    first, second = (rank_tasks.batch(rank) for rank in (0, 1))
    joined = first._replace(
        observations={"policy": torch.cat([b.observations["policy"] for b in (first, second)])},
        **{
            name: torch.cat((getattr(first, name), getattr(second, name)))
            for name in first._fields[1:8]
        },
    )
    alone = rank_tasks.learn_extended(rank_tasks.new_extended_learner(), joined)
    one, other = (result["extended"] for result in results)
    for paid in zip(one["rewards"], other["rewards"], alone["rewards"], strict=True):
        torch.testing.assert_close(torch.cat(paid[:2]), paid[2], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(
        torch.tensor(one["losses"]), torch.tensor(alone["losses"]), rtol=1e-4, atol=1e-6
    )
    for name, weights in one["weights"].items():
        assert torch.equal(weights, other["weights"][name]), name
        torch.testing.assert_close(weights, alone["weights"][name], rtol=1e-4, atol=1e-5)


def test_two_and_two_iterations_of_two_ranks_are_four_bit_for_bit(tmp_path):
    with Pair(tmp_path / "straight") as pair:
        straight = pair.finish()
        assert straight.snapshot().env_steps == 4 * 4 * 4 * 2
    state = checkpoint.load(tmp_path / "straight" / "checkpoints" / "model_2.pt")
    assert state["world_size"] == 2
    (other,) = state["other_ranks"]
    assert not torch.equal(other["env"]["x"], state["env"]["x"])  # worlds of its own
    last = checkpoint.load(tmp_path / "straight" / "checkpoints" / "model_4.pt")
    rows = metrics_of(straight)
    with Pair(tmp_path / "straight", resume=state) as pair:
        resumed = pair.finish()
    again = checkpoint.load(tmp_path / "straight" / "checkpoints" / "model_4.pt")
    assert metrics_of(resumed) == rows
    for part in ("actor", "critic"):
        for name, weights in last[part].items():
            assert torch.equal(weights, again[part][name]), name
    assert torch.equal(last["other_ranks"][0]["env"]["x"], again["other_ranks"][0]["env"]["x"])
    kinds = [json.loads(line)["kind"] for line in resumed.run_dir.events.read_text().splitlines()]
    assert "alert" not in kinds


def test_a_rank_that_is_killed_ends_the_run_with_its_cause_and_a_checkpoint(tmp_path):
    with Pair(tmp_path / "run", **LONG) as pair:
        pair.wait_for_iteration(2)
        killed = time.monotonic()
        os.kill(pair.rank_1.pid, signal.SIGKILL)
        failure = pair.wait_for_failure()
        assert time.monotonic() - killed < 6
        assert failure.message == f"rank 1 (process {pair.rank_1.pid}) was killed by SIGKILL"
        assert pair.session.join(8)
        done = pair.session.snapshot().completed_iterations
        state = checkpoint.load(tmp_path / "run" / "checkpoints" / f"model_{done}.pt")
        assert state["other_ranks"] == [None]
        assert "was killed by SIGKILL" in pair.session.run_dir.log.read_text()


def test_a_pause_of_rank_0_pauses_all_and_a_rank_lost_meanwhile_ends_it(tmp_path):
    with Pair(tmp_path / "run", **LONG) as pair:
        pair.wait_for_iteration(1)
        pair.session.command(Command.STEP_ITERATION)
        before = wait_for(pair.session, lambda now: now.state is RunState.PAUSED)
        time.sleep(0.5)
        assert pair.session.snapshot().completed_iterations == before.completed_iterations
        pair.session.command(Command.STEP_ITERATION)
        wait_for(
            pair.session,
            lambda now: (
                now.state is RunState.PAUSED
                and now.completed_iterations == before.completed_iterations + 1
            ),
        )
        assert pair.session.snapshot().position.stage is Stage.FRESH
        pair.rank_1.send_signal(signal.SIGTERM)
        assert pair.wait_for_failure().message == "rank 1 was ended by SIGTERM"
        assert pair.session.join(8)
        done = before.completed_iterations + 1
        state = checkpoint.load(tmp_path / "run" / "checkpoints" / f"model_{done}.pt")
        assert state["other_ranks"][0]["env"]["x"].shape == (4,)  # told in time, so nothing is lost
        assert pair.rank_1.poll() == 0


@pytest.mark.parametrize(
    ("fault", "message", "trace"),
    [
        ("boom", "rank 1: ValueError: boom", 'raise ValueError("boom")'),
        ("infinite", "rank 1: NonFiniteError: rewards: 1 of 16 non-finite", "check_rollout"),
    ],
)
def test_what_goes_wrong_on_a_rank_is_named_with_its_traceback(tmp_path, fault, message, trace):
    with Pair(tmp_path / "run", fault, **LONG) as pair:
        assert pair.wait_for_failure(30).message == message
        assert pair.session.join(8)
        assert trace in pair.session.run_dir.log.read_text()
        assert (tmp_path / "run" / "checkpoints" / "model_2.pt").exists()


def test_a_rank_that_steps_by_another_rate_is_found_after_its_first_update(tmp_path):
    with Pair(tmp_path / "run", "another rate", **LONG) as pair:
        assert pair.wait_for_failure(30).message == (
            "rank 1: its weights differ from those of rank 0 after iteration 1; "
            "do all ranks run the same torch on like machines?"
        )


def test_an_edit_reaches_all_ranks_at_the_same_boundary_and_is_taken_back_on_all(tmp_path):
    """A rate that only one rank knew would make their weights differ, which ends the run."""
    asked = [
        RunIterations(1),
        Edit("trainer.learning_rate", 3e-3),
        Edit("trainer.clip_param", -1.0),  # refused on both
        Edit("trainer.schedule", "adaptive"),
        Undo(),
    ]
    with Pair(tmp_path / "run", num_iterations=6) as pair:
        for request in asked[:4]:
            pair.session.control(request)
        wait_for(pair.session, lambda now: now.state is RunState.PAUSED and now.tensors, 30)
        assert not pair.session.snapshot().control.edits  # rank 1 has just heard of them
        pair.session.control(RunIterations(1))
        done = wait_for(
            pair.session,
            lambda now: now.state is RunState.PAUSED and now.tensors and now.control.edits,
            30,
        )
        assert [edit.iteration for edit in done.control.edits] == [2, 2]
        pair.session.control(asked[4])
        pair.session.control(Edit("trainer.max_grad_norm", 0.5, "calm"))
        pair.session.command(Command.RUN)
        session = pair.finish()
    assert [edit.changes[0].key for edit in session.snapshot().control.edits] == [
        "trainer.learning_rate",
        "trainer.max_grad_norm",
    ]
    texts = [event.text for event in session.events.since(0)[1] if event.kind == "edit"]
    assert len(texts) == 5
    assert texts[1].startswith("refused: trainer.clip_param")
    state = checkpoint.load(tmp_path / "run" / "checkpoints" / "model_6.pt")
    assert [edit["iteration"] for edit in state["edits"]] == [2, 3]
