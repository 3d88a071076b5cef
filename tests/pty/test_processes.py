"""Several processes from the command line: started here or by torchrun, ended in every way."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.pty.terminal import Terminal
from trainer import checkpoint
from trainer.rundir import process_start

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-m", "tui", "run", "cartpole"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
SMALL = ["--device", "cpu", "--num-envs", "16", "--seed", "3", "--logger", "none"]
LONG = [*SMALL, "--iterations", "100000"]


def start(command, **options):
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )


def read_until(process, pattern, seconds=60.0):
    """Read the process's lines until one fits; returns all."""
    lines = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and (line := process.stdout.readline()):
        lines.append(line)
        if re.search(pattern, line):
            return lines
    raise AssertionError("".join(lines))


def children_of(pid):
    """Every process that stems from this one, by number and start."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [(child, process_start(child)), *children_of(child)]
    return found


def is_rank(pid):
    return b"presets.follow" in Path(f"/proc/{pid}/cmdline").read_bytes()


def wait_until_gone(processes, seconds=8.0):
    deadline = time.monotonic() + seconds
    while any(process_start(pid) == started for pid, started in processes):
        assert time.monotonic() < deadline, f"still there: {processes}"
        time.sleep(0.05)


def newest_state(run_dir):
    return checkpoint.newest_readable(run_dir / "checkpoints").state


def test_torchrun_and_processes_train_the_same_weights(tmp_path):
    own, launched = tmp_path / "own", tmp_path / "launched"
    options = [*SMALL, "--headless", "--iterations", "3"]
    process = start([*PROGRAM, *options, "--processes", "2", "--run-dir", str(own)])
    text = process.communicate(timeout=60)[0]
    assert process.returncode == 0, text
    assert "2 processes x 16 worlds = 32 worlds" in text
    assert re.search(r"^it 3/3  steps +1536 ", text, re.MULTILINE)  # 3 x 16 x 16 x 2
    command = [*TORCHRUN, *PROGRAM[1:], *options, "--run-dir", str(launched)]
    process = start(command)
    text = process.communicate(timeout=90)[0]
    assert process.returncode == 0, text
    assert text.count("it 3/3") == 1  # rank 0 alone prints
    one, other = newest_state(own), newest_state(launched)
    assert one["world_size"] == other["world_size"] == 2
    for name, weights in one["actor"].items():
        assert weights.equal(other["actor"][name]), name


def test_a_signal_to_torchrun_saves_and_ends_all(tmp_path):
    run_dir = tmp_path / "run"
    process = start([*TORCHRUN, *PROGRAM[1:], *LONG, "--headless", "--run-dir", str(run_dir)])
    read_until(process, "^it +3/")
    ranks = children_of(process.pid)
    assert len(ranks) >= 2
    process.send_signal(signal.SIGINT)
    text = process.communicate(timeout=30)[0]
    assert process.returncode != 0
    assert "SIGINT: saves and stops" in text
    wait_until_gone(ranks)
    state = newest_state(run_dir)
    assert state["completed_iterations"] >= 3
    assert state["other_ranks"] != [None]  # nothing is lost
    assert json.loads((run_dir / "status.json").read_text())["state"] == "finished"


def test_the_dashboard_shows_a_rank_that_is_killed_and_leaves_nobody_behind(tmp_path):
    run_dir = tmp_path / "run"
    command = [*PROGRAM, *LONG, "--processes", "2", "--run-dir", str(run_dir)]
    with Terminal(command, cwd=ROOT) as terminal:
        terminal.wait_until(lambda: (run_dir / "metrics.jsonl").exists(), 60, "the first iteration")
        everyone = children_of(terminal.process.pid)
        status = json.loads((run_dir / "status.json").read_text())
        (rank_1,) = (pid for pid, _ in children_of(status["pid"]) if is_rank(pid))
        os.kill(rank_1, signal.SIGKILL)
        terminal.wait_for("was killed by SIGKILL", 10)
        terminal.send("q")
        assert terminal.wait_for_end() == 1
        wait_until_gone(everyone)
        assert terminal.is_restored()
    assert f"rank 1 (process {rank_1}) was killed by SIGKILL" in (run_dir / "log.txt").read_text()
    assert newest_state(run_dir)["completed_iterations"] >= 1


def test_when_rank_0_is_killed_the_others_end_too(tmp_path):
    run_dir = tmp_path / "run"
    process = start([*PROGRAM, *LONG, "--headless", "--processes", "2", "--run-dir", str(run_dir)])
    read_until(process, "^it +1/")
    ranks = children_of(process.pid)
    assert any(is_rank(pid) for pid, _ in ranks)
    process.kill()
    process.communicate(timeout=10)
    wait_until_gone(ranks)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--processes", "0"], "--processes 0: must be 1 to 64"),
        (["--processes", "2", "--device", "cuda:1"], "--device cuda:1: several processes"),
    ],
)
def test_what_cannot_be_is_refused(options, said, tmp_path):
    process = start([*PROGRAM, *options, "--run-dir", str(tmp_path / "run")])
    assert said in process.communicate(timeout=20)[0]
    assert process.returncode == 2
    assert not (tmp_path / "run").exists()


def test_worlds_for_which_there_is_no_memory_end_with_code_3(tmp_path):
    run_dir = tmp_path / "run"
    process = start(
        [*PROGRAM, "--device", "cpu", "--num-envs", "1000000", "--run-dir", str(run_dir)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 * 10**9,) * 2),
    )
    text = process.communicate(timeout=30)[0]
    assert process.returncode == 3, text
    assert re.fullmatch(
        r"cartpole: out of memory: 1,000,000 worlds need .* GB at least .*, .* GB are free on cpu; "
        r"try --num-envs \d+\n",
        text,
    )
    assert not run_dir.exists()
