"""A run read back from its folder, at any of its iterations."""

import json
import math
import os
from dataclasses import replace

import numpy as np
import pytest

from tests.tui.fake_session import run_info
from trainer.recording import Recording, standing
from trainer.rundir import RunDir
from trainer.telemetry import Event, RunState
from trainer.wire import to_json


@pytest.fixture
def folder(tmp_path):
    run_dir = RunDir.create(tmp_path / "run", "")
    run_dir.write_info(to_json(run_info(40)))
    run_dir.append_event(Event(1.0, "start", "fake"))
    run_dir.append_event(Event(2.0, "edit", "calmer", 12))
    with run_dir.events.open("a") as file:
        file.write('{"time": 3.0, "kind": "alert", "text": "of an older version"}\n')
    for iteration in range(1, 31):
        run_dir.append_metrics(
            iteration,
            100 * iteration,
            2.0 * iteration,
            {
                "Train/mean_reward": iteration / 2,
                "Perf/total_fps": 50.0,
                "Loss/kl_per_mini_batch": [0.01, 0.02, math.nan],
                "Loss/learning_rate_per_mini_batch": [1e-3, 1e-3, 2e-3],
                "Perf/stage_seconds": [0.1] * 7,
                **({"Episode_Reward/near": 7.0} if iteration == 10 else {}),
            },
        )
    with run_dir.metrics.open("a") as file:
        file.write('{"iteration": 31, "half a li')
    run_dir.write_status({"state": "finished", "pid": 1})
    return run_dir.path


def read(folder):
    recording = Recording(folder)
    recording.start()
    assert recording.join(10)
    return recording


def test_it_opens_at_the_last_whole_iteration(folder):
    recording = read(folder)
    snapshot = recording.snapshot()
    assert len(recording) == 30
    assert snapshot.state is RunState.FINISHED
    assert (snapshot.completed_iterations, snapshot.env_steps, snapshot.elapsed) == (30, 3000, 60.0)
    assert snapshot.eta == 20.0  # 10 more at 2 s each
    assert snapshot.stage_seconds == (0.1,) * 7
    assert snapshot.info == replace(run_info(40), run_dir=str(folder))  # wherever it was written
    assert recording.events.since(0)[1] == [
        Event(1.0, "start", "fake"),
        Event(2.0, "edit", "calmer", 12),
        Event(3.0, "alert", "of an older version", 0),
    ]


def test_the_cursor_moves_and_the_curves_end_there(folder):
    recording = read(folder)
    recording.seek(11)
    snapshot = recording.snapshot()
    assert snapshot.completed_iterations == 12
    assert snapshot.metrics["Train/mean_reward"] == 6.0
    assert snapshot.metrics["Episode_Reward/near"] == 7.0  # last seen two iterations before
    curve = recording.history.curve("Train/mean_reward")
    assert curve.iteration.tolist() == list(range(1, 13))
    assert len(recording.history) == 12
    recording.seek(-5)
    assert recording.snapshot().completed_iterations == 1
    assert math.isnan(recording.snapshot().metrics["Episode_Reward/near"])
    recording.seek(10**9)
    assert recording.snapshot().completed_iterations == 30
    assert recording.history.curve("Train/mean_reward").mean[-1] == 15.0


def test_the_update_is_shown_as_far_as_it_was_recorded(folder):
    update = read(folder).snapshot().update
    np.testing.assert_array_equal(update.kl, np.array([0.01, 0.02, np.nan], np.float32))
    np.testing.assert_array_equal(update.learning_rate, np.array([1e-3, 1e-3, 2e-3], np.float32))
    assert update.ratio_last.size == 0


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"state": "finished", "pid": 1}, RunState.FINISHED),
        ({"state": "failed", "pid": 1, "failure": "ValueError: boom"}, RunState.FAILED),
        ({"state": "running", "pid": 0}, RunState.KILLED),
        ({}, RunState.KILLED),
    ],
)
def test_how_a_run_stands(folder, status, state):
    os.utime(folder / "config.toml", (1, 1))
    (folder / "status.json").write_text(json.dumps(status))
    assert standing(folder) is state
    snapshot = read(folder).snapshot()
    assert snapshot.state is state
    if state is RunState.FAILED:
        assert snapshot.failure.message == "ValueError: boom"


def test_a_run_whose_session_has_not_begun_is_starting(tmp_path):
    run_dir = RunDir.create(tmp_path / "run", "")
    assert standing(run_dir.path) is RunState.STARTING


def test_a_folder_with_next_to_nothing_in_it_is_shown_too(tmp_path):
    recording = read(tmp_path)
    assert len(recording) == 0
    recording.seek(3)
    assert recording.snapshot().info is None
