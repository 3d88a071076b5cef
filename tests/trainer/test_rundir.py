import datetime as dt
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.rundir import (
    RunDir,
    RunDirError,
    default_path,
    process_start,
    writer,
)
from trainer.telemetry import Event


def test_a_new_run_has_its_files_and_refuses_a_second_run(tmp_path):
    run = RunDir.create(tmp_path / "a" / "b", "[env]\n")
    assert run.config.read_text() == "[env]\n"
    assert run.checkpoints.is_dir()
    assert run.log.exists()
    with pytest.raises(RunDirError, match="holds another run already"):
        RunDir.create(tmp_path / "a" / "b", "[env]\n")


def test_an_existing_empty_folder_serves_and_a_file_does_not(tmp_path):
    (tmp_path / "empty").mkdir()
    assert RunDir.create(tmp_path / "empty", "").config.exists()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunDirError, match="is a file"):
        RunDir.create(tmp_path / "file", "")
    with pytest.raises(RunDirError, match="in the way"):
        RunDir.create(tmp_path / "file" / "run", "")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_with_someone_s_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RunDirError, match=r"thesis\.tex"):
        RunDir.create(tmp_path, "")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_metrics_are_json_lines_in_which_nan_and_inf_are_null(tmp_path):
    run = RunDir.create(tmp_path / "r", "")
    run.append_metrics(1, 96, 1.23456, {"a": math.nan, "b": 2.0, "c": [1.0, math.inf]})
    run.append_metrics(2, 192, 2.0, {"a": 1.0})
    lines = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    assert lines[0] == {
        "iteration": 1,
        "env_steps": 96,
        "elapsed": 1.235,
        "a": None,
        "b": 2.0,
        "c": [1.0, None],
    }
    assert lines[1]["a"] == 1.0


def test_what_can_no_longer_be_written_is_told_once_and_raises_nothing(tmp_path):
    run = RunDir.create(tmp_path / "r", "")
    told: list[str] = []
    run.on_trouble = told.append
    run.metrics.mkdir()  # a folder in the way: not writable, even for root
    for iteration in range(3):
        run.append_metrics(iteration, 0, 0.0, {})
    run.append_event(Event(0.0, "start", "still works"))
    assert len(told) == 1
    assert "metrics.jsonl cannot be written" in told[0]
    assert json.loads(run.events.read_text())["text"] == "still works"


def test_the_status_is_replaced_whole(tmp_path):
    run = RunDir.create(tmp_path / "r", "")
    run.write_status({"state": "running", "long": "x" * 1000})
    run.write_status({"state": "finished"})
    assert json.loads(run.status.read_text()) == {"state": "finished"}
    assert not list(run.path.glob(".*.tmp"))


def test_the_default_path_has_the_time_and_never_an_existing_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    now = dt.datetime(2026, 11, 29, 21, 1, 33, tzinfo=dt.UTC)
    first = default_path("go2_flat", "try", now)
    assert str(first) == "runs/go2_flat/2026-11-29_21-01-33_try"
    assert first.is_dir()
    assert default_path("go2_flat", "try", now).name == "2026-11-29_21-01-33_try_2"
    assert default_path("go2_flat", "", now).name == "2026-11-29_21-01-33"


@pytest.mark.parametrize("link", ["runs", "runs/go2_flat"])
def test_a_link_that_leads_nowhere_is_refused_and_not_tried_for_ever(tmp_path, monkeypatch, link):
    monkeypatch.chdir(tmp_path)
    Path(link).parent.mkdir(exist_ok=True)
    Path(link).symlink_to("nowhere")
    path = default_path("go2_flat", "")
    with pytest.raises(
        RunDirError, match=f"--run-dir {path}: is a file, or a broken link is in the way"
    ):
        RunDir.create(path, "")
    assert not Path("nowhere").exists()


def test_a_reopened_run_drops_later_rows_half_lines_and_stray_files(tmp_path):
    run = RunDir.create(tmp_path / "r", "old")
    for iteration in (1, 2, 3, 4):
        run.append_metrics(iteration, 0, 0.0, {"a": iteration, "list": [1.0]})
    before = run.metrics.read_text().splitlines(keepends=True)
    with run.metrics.open("a") as file:
        file.write('{"iteration": 2, "a"')
    run.events.write_text('{"kind": "start"}\n{"ki')
    (run.path / ".status.json.99.tmp").touch()
    (run.checkpoints / ".model_4.pt.99.tmp").touch()
    (run.checkpoints / "model_2.pt").touch()

    again = RunDir.reopen(run.path, "new", 2)
    assert run.metrics.read_text() == "".join(before[:2])
    assert run.events.read_text() == '{"kind": "start"}\n'
    assert run.config.read_text() == "new"
    assert not list(run.path.rglob("*.tmp"))
    assert (run.checkpoints / "model_2.pt").exists()
    assert [row[:2] for row in again.read_metrics()] == [(1, {"a": 1.0}), (2, {"a": 2.0})]


def test_null_is_read_back_as_nan_and_a_run_without_metrics_has_no_rows(tmp_path):
    run = RunDir.create(tmp_path / "r", "")
    assert list(run.read_metrics()) == []
    run.append_metrics(1, 96, 1.0, {"a": math.inf})
    ((iteration, metrics, *_),) = run.read_metrics()
    assert iteration == 1
    assert math.isnan(metrics["a"])


def test_a_folder_that_cannot_be_written_is_not_reopened(tmp_path):
    run = RunDir.create(tmp_path / "r", "")
    run.config.unlink()
    run.config.mkdir()  # in the way, even for root
    with pytest.raises(RunDirError, match="cannot be written"):
        RunDir.reopen(run.path, "new", 1)


def test_a_run_is_busy_while_the_process_that_its_status_names_lives(tmp_path):
    run = RunDir.create(tmp_path / "r", "")
    assert writer(run.path) is None
    mine = {"pid": os.getpid(), "pid_started": process_start(os.getpid())}
    for state in ("starting", "running", "paused"):
        run.write_status({"state": state, **mine})
        assert writer(run.path) == os.getpid()
    run.write_status({"state": "running", "pid": os.getpid()})
    assert writer(run.path) == os.getpid()
    for state in ("finished", "failed"):
        run.write_status({"state": state, **mine})
        assert writer(run.path) is None
    run.write_status({"state": "running", **mine, "pid_started": mine["pid_started"] - 1})
    assert writer(run.path) is None  # the number was given to another process since
    run.status.write_text("{")
    assert writer(run.path) is None


def test_a_process_that_is_dead_and_not_yet_waited_for_is_no_writer(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert process_start(child.pid) is not None
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process_start(child.pid) is None
    child.communicate()


def test_a_line_that_the_disk_takes_in_part_is_taken_back(tmp_path, monkeypatch):
    run = RunDir.create(tmp_path / "r", "")
    told: list[str] = []
    run.on_trouble = told.append
    run.append_metrics(1, 96, 1.0, {})
    whole = run.metrics.read_bytes()
    opened = type(run.metrics).open

    def nearly_full(path, *args, **kwargs):
        file = opened(path, *args, **kwargs)
        return HalfWriter(file) if path == run.metrics else file

    monkeypatch.setattr(type(run.metrics), "open", nearly_full)
    run.append_metrics(2, 192, 2.0, {})
    monkeypatch.undo()
    assert run.metrics.read_bytes() == whole
    assert "No space left" in told[0]


class HalfWriter:
    """A file on a disk that has room for half of what is written."""

    def __init__(self, file):
        self.file = file

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def write(self, data):
        return self.file.write(data[: len(data) // 2])

    def __getattr__(self, name):
        return getattr(self.file, name)
