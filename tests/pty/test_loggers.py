"""Every logger under every launcher: what they set up meets a training outside the main thread."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pty.terminal import Terminal

pytest.importorskip("wandb", reason="needs the extra ppo-tui[wandb]")

ROOT = Path(__file__).parents[2]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
ALONE = [sys.executable]
TRAIN = ["-m", "tui", "run", "cartpole", "--device", "cpu", "--num-envs", "16", "--seed", "3"]
# W&B's is the larger choice: TensorBoard's event files are written beside it
BOTH = ["--logger", "wandb", "--iterations", "2", "--run-dir", "run"]


@pytest.fixture
def environment(tmp_path):
    own = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "WANDB_MODE": "offline"}
    for name in ("WANDB_API_KEY", "NETRC", "OMP_NUM_THREADS"):
        own.pop(name, None)
    return own


def assert_all_was_logged(run, said):
    """Both loggers wrote, and nobody tried to take a signal where that cannot be done."""
    log = (run / "log.txt").read_text(encoding="utf-8")
    assert "main thread" not in said + log
    assert "Traceback" not in said + log
    (events,) = run.glob("events.out.tfevents.*")
    assert b"Loss/value" in events.read_bytes()
    (data,) = run.glob("wandb/offline-run-*/run-*.wandb")
    assert b"Loss/value" in data.read_bytes()


@pytest.mark.parametrize("launcher", [ALONE, TORCHRUN], ids=["alone", "torchrun"])
def test_without_a_screen(launcher, environment, tmp_path):
    done = subprocess.run(
        [*launcher, *TRAIN, *BOTH, "--headless"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert "W&B: kept offline" in done.stdout
    assert_all_was_logged(tmp_path / "run", done.stdout)


def test_under_the_dashboard_with_several_processes(environment, tmp_path):
    command = [*ALONE, *TRAIN, *BOTH, "--processes", "2"]
    with Terminal(command, cwd=tmp_path, env=environment) as terminal:
        terminal.wait_for("FINISHED", timeout=120)
        terminal.send("q")
        assert terminal.wait_for_end() == 0
        said = terminal.raw.decode(errors="replace")
    assert_all_was_logged(tmp_path / "run", said)
