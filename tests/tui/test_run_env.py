"""`ppo-tui run --env`: worlds of other programs from the command line."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tui import cli

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "name a preset, or worlds with --env"),
        (("--resume", "latest"), "--resume latest: runs holds no run"),
        (("--resume", "nope"), '--resume nope: no run "nope"'),
        (("--env", "gymnasium"), "gymnasium: must be gymnasium:ID, mjlab:TASK, "),
        (("--env", "gymnasium:CartPole-v9"), "did you mean CartPole-v1?"),
        (("--env", "gymnasium:CartPole-v1", "--num-envs", "0"), "--num-envs 0: must be at least 1"),
        (("cartpole", "--env", "gymnasium:CartPole-v1"), "bring their own"),
    ],
)
def test_worlds_that_cannot_be_are_refused(args, said):
    result = CliRunner().invoke(cli.app, ["run", "--headless", "--device", "cpu", *args])
    assert result.exit_code == 2
    assert said in result.stderr
    assert not Path("runs").exists()


def test_worlds_of_gymnasium_are_trained_in_without_a_preset():
    command = [sys.executable, "-m", "tui", "run", "--env", "gymnasium:Pendulum-v1", "--headless"]
    small = ["--num-envs", "4", "--iterations", "2", "--set", "trainer.num_steps_per_env=16"]
    done = subprocess.run(
        [*command, *small, "--device", "cpu"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "4 worlds x 16 steps = 64 samples an iteration, 2 iterations" in done.stdout
    (run,) = Path("runs/Pendulum-v1").iterdir()
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 2
    assert len(list(run.glob("events.out.tfevents.*"))) == 1
