"""Event files, read back with TensorBoard's own reader."""

import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.trainer.test_resume import finish, new, resumed
from trainer.progress import IterationRow
from trainer.trackers import tensorboard
from trainer.trackers.tensorboard import EventFiles, cut, read

TIMES = ("Train/mean_reward/time", "Train/mean_episode_length/time")


def events_of(folder):
    """For each tag the steps and values that TensorBoard shows."""
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    accumulator.Reload()
    return {
        tag: [(event.step, event.value) for event in accumulator.Scalars(tag)]
        for tag in accumulator.Tags()["scalars"]
    }


def metrics_of(folder):
    """The same from metrics.jsonl."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    tags = {tag: [] for line in lines for tag, value in line.items() if "/" in tag}
    for line in lines:
        for tag, values in tags.items():
            if tag in line and not isinstance(line[tag], list):
                value = math.nan if line[tag] is None else line[tag]
                values.append((line["iteration"] - 1, value))
    return {tag: values for tag, values in tags.items() if values}


def assert_same(folder):
    shown, written = events_of(folder), metrics_of(folder)
    assert set(shown) - set(TIMES) == set(written)
    for tag, values in written.items():
        steps, numbers = zip(*values, strict=True)
        assert tuple(step for step, _ in shown[tag]) == steps, tag
        read_back = [value for _, value in shown[tag]]
        assert read_back == pytest.approx(numbers, rel=1e-6, nan_ok=True), tag
    return shown


def test_a_run_can_be_read_by_tensorboard_under_the_tags_and_steps_of_rsl_rl(tmp_path):
    finish(new(tmp_path / "run", 20))
    shown = assert_same(tmp_path / "run")
    assert [step for step, _ in shown["Loss/value"]] == list(range(20))
    assert {
        "Loss/value", "Loss/surrogate", "Loss/entropy", "Loss/learning_rate", "Policy/mean_std",
        "Perf/total_fps", "Perf/collection_time", "Perf/learning_time",
        "Train/mean_reward", "Train/mean_episode_length", "Episode_Termination/fell", *TIMES,
    } <= set(shown)  # fmt: skip
    # the toy's episodes last 20 steps, 4 an iteration: the first ends within these
    assert len(shown["Train/mean_reward"]) < 20


def row(iteration, elapsed=0.0, **metrics):
    return IterationRow(iteration, metrics or {"Loss/value": float(iteration)}, 0, elapsed, 0.0)


def write(folder, *rows, completed=0):
    """Write one event file, as one process does; returns the troubles told."""
    told = []
    files = EventFiles(folder, completed, lambda kind, text: told.append(text))
    files.open()
    for each in rows:
        files.write(each)
    files.close(failed=False)
    return told


def test_time_tags_count_whole_seconds_of_training(tmp_path):
    write(tmp_path, row(1, 1.9, **{"Train/mean_reward": 3.0}), row(2, 7.2, **{"Loss/value": 1.0}))
    assert events_of(tmp_path)["Train/mean_reward/time"] == [(1, 3.0)]


def test_what_is_not_finite_stays_so(tmp_path):
    write(tmp_path, row(1, a=math.nan), row(2, a=math.inf))
    (_, nan), (_, inf) = events_of(tmp_path)["a"]
    assert math.isnan(nan)
    assert inf == math.inf


def test_a_resume_leaves_no_step_twice_and_loses_none(tmp_path):
    run = tmp_path / "run"
    finish(new(run, 12))
    (run / "checkpoints/model_12.pt").unlink()  # goes on from 10
    finish(resumed(run))
    assert len(list(run.glob(tensorboard.PATTERN))) == 2
    shown = assert_same(run)
    assert [step for step, _ in shown["Loss/value"]] == list(range(20))
    seconds = [step for step, _ in shown[TIMES[0]]]
    assert seconds == sorted(seconds)
    assert len(seconds) == len(shown["Train/mean_reward"])


def test_cutting_drops_later_events_with_their_times_and_half_a_record(tmp_path):
    reward = {"Train/mean_reward": 1.0}
    write(tmp_path, *(row(i, 100.0 * i, **reward) for i in (1, 2, 3)))
    (path,) = tmp_path.glob(tensorboard.PATTERN)
    whole = path.read_bytes()
    ends = [event.end for event in read(path)]
    assert ends[-1] == len(whole)
    cut(path, 3)
    assert path.read_bytes() == whole
    path.write_bytes(whole[:-5])
    cut(path, 3)
    assert path.read_bytes() == whole[: ends[-2]]
    cut(path, 1)
    assert events_of(tmp_path) == {
        "Train/mean_reward": [(0, 1.0)],
        "Train/mean_reward/time": [(100, 1.0)],
    }


@pytest.mark.parametrize("junk", [b"", b"\0", b"not an event file", bytes(range(256)) * 20])
def test_a_damaged_file_ends_neither_the_cutting_nor_the_writing(tmp_path, junk):
    path = tmp_path / "events.out.tfevents.1.host"
    path.write_bytes(junk)
    assert write(tmp_path, row(1), completed=0) == []
    assert len(path.read_bytes()) <= len(junk)
    assert events_of(tmp_path)["Loss/value"] == [(0, 1.0)]


def test_two_processes_in_one_second_write_two_files(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1000.5)
    for _ in range(3):
        write(tmp_path, row(1))
    names = sorted(path.name.split(".", 4)[-1] for path in tmp_path.glob(tensorboard.PATTERN))
    assert len(names) == 3


def test_a_full_disk_is_told_once_and_rows_behind_it_are_whole(tmp_path, monkeypatch):
    told = []
    files = EventFiles(tmp_path, 0, lambda kind, text: told.append((kind, text)))
    files.open()

    def full(path, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(tensorboard, "append_whole", full)
        for number in (1, 2):
            files.write(row(number))
            files.flush()
    ((kind, text),) = told
    assert kind == "alert"
    assert text.endswith("cannot be written: No space left on device; training goes on")
    files.write(row(3))
    files.close(failed=False)
    assert events_of(tmp_path)["Loss/value"] == [(2, 3.0)]


def test_no_files_without_a_logger(tmp_path):
    finish(new(tmp_path / "run", 2, logger="none"))
    assert list((tmp_path / "run").glob(tensorboard.PATTERN)) == []


KILLED = """
import sys, time
from tests.trainer.test_resume import new
from pathlib import Path
session = new(Path(sys.argv[1]), 10**6)
session.start()
while True:
    time.sleep(0.05)
    print(session.snapshot().completed_iterations, flush=True)
"""


def test_a_kill_takes_the_last_seconds_only(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    since = {}
    for line in child.stdout:
        since.setdefault(int(line), time.monotonic())
        if int(line) and time.monotonic() - since[next(n for n in since if n)] > 4.0:
            break
    now = time.monotonic()
    child.send_signal(signal.SIGKILL)
    child.wait()
    old = max(number for number, when in since.items() if when < now - 3.0)
    assert old > 0
    assert events_of(tmp_path / "run")["Loss/value"][-1][0] >= old - 1


def test_writing_costs_less_than_a_hundredth_of_a_short_iteration(tmp_path):
    metrics = {f"Group/tag_{number}": float(number) for number in range(60)}
    files = EventFiles(tmp_path, 0, print)
    files.open()
    files.write(row(1, **metrics))
    started = time.thread_time()
    for number in range(2, 102):
        files.write(row(number, **metrics))
    seconds = (time.thread_time() - started) / 100
    assert seconds < 0.005  # iterations of real tasks take half a second and more
