"""A run that was ended and goes on is the run that was never ended."""

import json
import math

import pytest
import torch

from tests.trainer.test_session import SMALL, metrics_of
from tests.trainer.toy_env import ToyEnv
from trainer import checkpoint
from trainer.checkpoint import CheckpointError
from trainer.config import ActorConfig, CriticConfig
from trainer.loop import Trainer
from trainer.rundir import RunDir
from trainer.session import Session
from trainer.telemetry import Command, RunState

CONFIG = SMALL.model_copy(
    update={
        "num_iterations": 20,
        "save_interval": 5,
        "actor": ActorConfig(hidden_dims=(8,), obs_normalization=True),
        "critic": CriticConfig(hidden_dims=(8,), obs_normalization=True),
    }
)


def finish(session):
    session.start()
    assert session.join(60)
    assert session.snapshot().state is RunState.FINISHED, session.snapshot().failure
    return session


def new(path, iterations=20, **changes):
    config = CONFIG.model_copy(update={"num_iterations": iterations, **changes})
    return Session("toy", ToyEnv, config, RunDir.create(path, ""))


def resumed(path, iterations=20, env=ToyEnv, **changes):
    """The run in `path`, ready to go on from its newest checkpoint."""
    config = CONFIG.model_copy(update={"num_iterations": iterations, **changes})
    newest = checkpoint.newest_readable(path / "checkpoints")
    run_dir = RunDir.reopen(path, "", newest.state["completed_iterations"])
    return Session("toy", env, config, run_dir, resume=newest.state)


def assert_same(one, other, path="state"):
    """Compare two checkpoints bit for bit, times aside."""
    assert type(one) is type(other), path
    if isinstance(one, dict):
        assert list(one) == list(other), path
        for key in one:
            if key != "elapsed":
                assert_same(one[key], other[key], f"{path}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), path
        for index, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{path}[{index}]")
    elif isinstance(one, torch.Tensor):
        assert one.dtype == other.dtype, path
        assert torch.equal(one, other), path
    else:
        assert one == other, path


def last_state(session):
    return checkpoint.load(checkpoint.saved(session.run_dir.checkpoints)[-1])


def test_events_know_the_iteration_from_which_a_run_goes_on(tmp_path):
    finish(new(tmp_path / "run", 10))
    session = finish(resumed(tmp_path / "run"))
    loaded = [event for event in session.events.since(0)[1] if " loaded" in event.text]
    assert [event.iteration for event in loaded] == [11]


def test_ten_and_ten_iterations_are_twenty_bit_for_bit(tmp_path):
    straight = finish(new(tmp_path / "straight"))
    finish(new(tmp_path / "parts", 10))
    parts = finish(resumed(tmp_path / "parts"))
    assert_same(last_state(straight), last_state(parts))
    assert metrics_of(straight) == metrics_of(parts)
    assert [list(line) for line in metrics_of(straight)] == [
        list(line) for line in metrics_of(parts)
    ]
    assert len(metrics_of(parts)) == 20
    for tag in straight.history.tags:
        if not tag.startswith("Perf/"):
            for ours, theirs in zip(
                straight.history.curve(tag), parts.history.curve(tag), strict=True
            ):
                assert ours.tolist() == pytest.approx(theirs.tolist(), nan_ok=True, abs=0)


@pytest.mark.parametrize("rnn_type", ["gru", "lstm"])
def test_memories_go_on_as_if_the_run_had_not_been_ended(rnn_type, tmp_path):
    network = {"hidden_dims": (8,), "rnn_type": rnn_type, "rnn_hidden_dim": 6}
    networks = {"actor": ActorConfig(**network), "critic": CriticConfig(**network)}
    straight = finish(new(tmp_path / "straight", 6, **networks))
    finish(new(tmp_path / "parts", 3, **networks))
    parts = finish(resumed(tmp_path / "parts", 6, **networks))
    state = last_state(parts)
    assert state["actor_hidden"][0].any()
    assert_same(last_state(straight), state)
    assert metrics_of(straight) == metrics_of(parts)


def test_stopped_in_the_middle_of_an_iteration_it_goes_on_as_if_it_had_not_been(tmp_path):
    straight = finish(new(tmp_path / "straight"))
    session = new(tmp_path / "parts", save_interval=100)
    session.command(Command.PAUSE)
    session.start()
    for command in (Command.STEP_ITERATION, Command.STEP_ITERATION, Command.STEP_STAGE):
        _after_pause(session, command)
    _after_pause(session, Command.STOP_NOW)
    assert session.join(20)
    # between two save intervals: the last complete iteration is what the run goes on from
    assert checkpoint.saved_iterations(session.run_dir.checkpoints) == [2]
    parts = finish(resumed(tmp_path / "parts"))
    assert_same(last_state(straight), last_state(parts))
    assert metrics_of(straight) == metrics_of(parts)


def _after_pause(session, command):
    seen = None
    while not (session.snapshot().state is RunState.PAUSED and session.snapshot().pending == ""):
        assert not session.join(0.005), session.snapshot()
    seen = session.snapshot().tensors
    session.command(command)
    while command is not Command.STOP_NOW and session.snapshot().tensors in (seen, ()):
        assert not session.join(0.005), session.snapshot()


def test_rows_that_a_killed_run_left_behind_its_checkpoint_are_written_once(tmp_path):
    straight = finish(new(tmp_path / "straight"))
    killed = finish(new(tmp_path / "killed", 12))
    (killed.run_dir.checkpoints / "model_12.pt").unlink()  # as if killed before it was saved
    parts = finish(resumed(tmp_path / "killed"))
    assert [line["iteration"] for line in metrics_of(parts)] == list(range(1, 21))
    assert metrics_of(straight) == metrics_of(parts)


def test_counters_and_times_go_on_and_the_eta_is_of_this_process(tmp_path):
    finish(new(tmp_path / "run", 10))
    (path,) = (tmp_path / "run" / "checkpoints").glob("model_10.pt")
    state = checkpoint.load(path)
    (*_, last) = (json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open())
    assert state["elapsed"] == pytest.approx(last["elapsed"], abs=1e-3)
    assert state["elapsed"] > 0.001
    state["elapsed"] = 1_000_000.0  # a slow machine, long ago
    checkpoint.save(path, state)
    session = resumed(tmp_path / "run", 14)
    assert session.snapshot().completed_iterations == 10
    assert session.snapshot().elapsed == 1_000_000.0
    assert math.isnan(session.snapshot().eta)
    rows = session.follow()
    finish(session)
    got = [rows.get() for _ in range(4)]
    assert [row.iteration for row in got] == [11, 12, 13, 14]
    assert [row.env_steps for row in got] == [16 * n for n in (11, 12, 13, 14)]
    assert all(1_000_000 < row.elapsed < 1_000_060 for row in got)
    assert 0 < got[0].eta < 60
    steps = [json.loads(line)["elapsed"] for line in (tmp_path / "run/metrics.jsonl").open()]
    assert steps == sorted(steps)
    status = json.loads(session.run_dir.status.read_text())
    assert status["elapsed"] > 1_000_000
    assert status["env_steps"] == 14 * 16


def test_before_its_first_iteration_a_run_that_goes_on_shows_what_was_there(tmp_path):
    before = finish(new(tmp_path / "run", 10))
    session = resumed(tmp_path / "run")
    session.command(Command.PAUSE)
    session.start()
    while session.snapshot().state is not RunState.PAUSED:
        assert not session.join(0.005)
    snapshot = session.snapshot()
    session.command(Command.STOP_NOW)
    assert session.join(20)
    assert snapshot.position.iteration == 10
    assert snapshot.env_steps == before.snapshot().env_steps
    assert snapshot.metrics == before.snapshot().metrics
    assert len(session.history) == 10
    assert checkpoint.saved_iterations(session.run_dir.checkpoints) == [5, 10]
    status = json.loads(session.run_dir.status.read_text())
    assert status["checkpoint"] == 10
    texts = [event.text for event in session.events.since(0)[1]]
    assert "model_10.pt loaded, goes on after 10 iterations" in texts


def test_ages_are_drawn_once_and_not_again_when_a_run_goes_on(tmp_path):
    finish(new(tmp_path / "run", 10))
    saved = checkpoint.newest_readable(tmp_path / "run" / "checkpoints").state["env"]
    ages = []

    class Watched(ToyEnv):
        def step(self, actions):
            ages.append(self.episode_length.clone())
            return super().step(actions)

    finish(resumed(tmp_path / "run", 11, env=Watched))
    assert torch.equal(ages[0], saved["episode_length"])


def test_the_best_checkpoint_is_marked_and_survives_a_resume(tmp_path):
    before = finish(new(tmp_path / "run", 10, keep_checkpoints=1))
    best = json.loads(before.run_dir.status.read_text())["best_checkpoint"]
    rewards = {line["iteration"]: line.get("Train/mean_reward") for line in metrics_of(before)}
    assert rewards[best["iteration"]] == best["mean_reward"]
    after = finish(resumed(tmp_path / "run", keep_checkpoints=1))
    best = json.loads(after.run_dir.status.read_text())["best_checkpoint"]
    rewards = {line["iteration"]: line.get("Train/mean_reward") for line in metrics_of(after)}
    assert best["mean_reward"] == max(rewards[n] for n in (5, 10, 15, 20) if rewards[n] is not None)
    left = checkpoint.saved_iterations(after.run_dir.checkpoints)
    assert {best["iteration"], 10, 20} <= set(left)
    assert len(left) <= 3


@pytest.fixture
def trained():
    """A learner after two iterations, whose one mini-batch has a KL of exactly 0: no new rate."""
    trainer = Trainer(ToyEnv(), _one_batch())
    trainer.iterate()
    trainer.iterate()
    return trainer


def _one_batch():
    return CONFIG.model_copy(update={"num_mini_batches": 1, "num_learning_epochs": 1})


def test_the_learning_rate_is_the_saved_one_before_and_after_the_next_iteration(trained, tmp_path):
    trained.learner.learning_rate = 1e-3 / 1.5**2
    checkpoint.save(tmp_path / "model_2.pt", trained.state_dict())
    again = Trainer(ToyEnv(seed=5), _one_batch())
    again.load_state_dict(checkpoint.load(tmp_path / "model_2.pt"))
    rates = [[group["lr"] for group in again.learner.optimizer.param_groups]]
    again.iterate()
    rates.append([group["lr"] for group in again.learner.optimizer.param_groups])
    assert rates == [[1e-3 / 1.5**2]] * 2
    assert again.metrics()["Loss/learning_rate"] == pytest.approx(4.4444e-4, rel=1e-4)


def test_normalisation_comes_back_and_a_state_without_it_is_refused_by_name(trained, tmp_path):
    checkpoint.save(tmp_path / "model_2.pt", trained.state_dict())
    state = checkpoint.load(tmp_path / "model_2.pt")
    obs = torch.linspace(-3, 3, 20).view(10, 2)
    again = Trainer(ToyEnv(seed=5), _one_batch())
    with torch.no_grad():
        assert not torch.equal(again.actor(obs)[0], trained.actor(obs)[0])
        again.load_state_dict(state)
        assert torch.equal(again.actor(obs)[0], trained.actor(obs)[0])
    del state["actor"]["obs_normalizer._mean"]
    with pytest.raises(CheckpointError, match=r"actor does not fit: .*obs_normalizer\._mean"):
        again.load_state_dict(state)


def test_random_numbers_of_another_kind_of_device_begin_anew_the_same_way_each_time(trained):
    state = trained.state_dict()
    state["generator"] = torch.zeros(16, dtype=torch.uint8)  # the state of a GPU's generator
    drawn = []
    for _ in range(2):
        again = Trainer(ToyEnv(), _one_batch())
        again.load_state_dict(state)
        drawn.append(torch.rand(5, generator=again.generator))
    assert torch.equal(*drawn)
    fresh = Trainer(ToyEnv(), _one_batch())
    assert not torch.equal(drawn[0], torch.rand(5, generator=fresh.generator))


def test_a_state_that_does_not_fit_fails_the_run_and_leaves_its_checkpoints(tmp_path):
    finish(new(tmp_path / "run", 10))
    session = resumed(tmp_path / "run", critic=CriticConfig(hidden_dims=(9,)))
    session.start()
    assert session.join(20)
    assert "size mismatch" in session.snapshot().failure.message
    assert checkpoint.saved_iterations(session.run_dir.checkpoints) == [5, 10]
