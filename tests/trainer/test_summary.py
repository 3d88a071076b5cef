import datetime as dt
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.rundir import RunDir, process_start
from trainer.summary import curve, last_metrics, settings, summarize_run

CONFIG = 'name = "go2"\n[trainer]\nnum_iterations = 40\n'


@pytest.fixture
def run(tmp_path):
    """A run of three iterations that says it goes on, in a process that is gone."""
    run = RunDir.create(tmp_path / "runs/go2/2026-01-31_12-30-00_wide", CONFIG)
    for iteration, reward in ((1, None), (2, 9.5), (3, -1.25)):
        metrics = {"Loss/value": float(iteration), "Loss/kl_per_mini_batch": [1.0, 2.0]}
        if reward is not None:
            metrics["Train/mean_reward"] = reward
        run.append_metrics(iteration, 100 * iteration, 2.5 * iteration, metrics)
    say(run, "running", pid=2**22 + 1)
    return run


def say(run, state, pid=None, **more):
    status = {"state": state, "pid": pid, "completed_iterations": 2, "num_iterations": 40}
    run.write_status(status | more)


def test_all_that_a_folder_says(run):
    summary = summarize_run(run.path)
    assert summary.folder == run.path
    assert (summary.preset, summary.name, summary.state) == ("go2", "wide", "killed")
    assert (summary.iterations, summary.num_iterations, summary.env_steps) == (3, 40, 300)
    assert (summary.last_reward, summary.best_reward, summary.elapsed) == (-1.25, 9.5, 7.5)
    assert summary.started == dt.datetime(2026, 1, 31, 12, 30, tzinfo=dt.UTC)
    assert (summary.pid, summary.failure) == (None, None)


@pytest.mark.parametrize(
    ("state", "done", "shown"),
    [
        ("starting", 3, "starting"),
        ("running", 3, "running"),
        ("paused", 3, "paused"),
        ("finished", 40, "finished"),
        ("finished", 3, "stopped"),
        ("failed", 3, "failed"),
        ("dancing", 3, "unknown"),
    ],
)
def test_states_of_a_run_whose_process_is_there(run, state, done, shown):
    pid = os.getpid()
    run.append_metrics(done, 0, 0.0, {})
    say(run, state, pid, pid_started=process_start(pid), failure="ValueError: boom")
    summary = summarize_run(run.path)
    assert summary.state == shown
    assert summary.pid == (pid if shown in ("starting", "running", "paused") else None)
    assert summary.failure == "ValueError: boom"


def test_a_process_number_that_was_given_again_is_not_the_run(run):
    pid = os.getpid()
    say(run, "running", pid, pid_started=process_start(pid) - 1)
    assert summarize_run(run.path).state == "killed"


def test_half_a_line_at_the_end_is_not_read(run):
    with run.metrics.open("a") as file:
        file.write('{"iteration": 4, "env_steps": 400, "Train/mean_reward": 99')
    assert summarize_run(run.path) == replace(
        summarize_run(run.path), iterations=3, last_reward=-1.25
    )
    assert curve(run.path) == ([200, 300], [9.5, -1.25])


def test_without_metrics_the_status_tells_and_without_a_stamp_the_first_event(run, tmp_path):
    run.metrics.unlink()
    moved = run.path.rename(tmp_path / "mine")
    (moved / "events.jsonl").write_text('{"time": 86400.0, "kind": "start", "text": ""}\n')
    summary = summarize_run(moved)
    assert (summary.iterations, summary.last_reward, summary.name) == (2, None, "mine")
    assert summary.started == dt.datetime(1970, 1, 2, tzinfo=dt.UTC)
    assert curve(moved) == ([], [])
    assert last_metrics(moved) == {}


def test_curves_and_last_values(run):
    assert curve(run.path, "Loss/value") == ([100, 200, 300], [1.0, 2.0, 3.0])
    assert last_metrics(run.path) == {"Loss/value": 3.0, "Train/mean_reward": -1.25}
    assert settings(run.path) == {"name": "go2", "trainer": {"num_iterations": 40}}


FILES = ("config.toml", "metrics.jsonl", "events.jsonl", "status.json")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["state", "pid", "time", "iteration", "elapsed", "trainer", "env_steps"]
            )
            | st.text(max_size=3),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(FILES), st.binary() | JSON.map(json.dumps)))
def test_nothing_in_a_folder_can_stop_the_list(tmp_path_factory, files):
    folder = tmp_path_factory.mktemp("run")
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode() + b"\n"
        (folder / name).write_bytes(data)
    assert isinstance(summarize_run(folder).state, str)
    curve(folder)
    last_metrics(folder)


def test_folders_in_the_way_of_files_are_nothing(tmp_path):
    for name in FILES:
        (tmp_path / name).mkdir()
    assert summarize_run(tmp_path).state == "unknown"
    assert curve(tmp_path) == ([], [])
    assert Path(tmp_path / "config.toml").is_dir()
