import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainer.toy_env import ToyEnv
from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.progress import IterationRow
from trainer.rundir import RunDir
from trainer.session import Session
from tui.headless import iteration_line, run_headless
from tui.stopping import SIGNALS, listening

ROOT = Path(__file__).parents[2]
CONFIG = TrainerConfig(
    seed=7,
    num_iterations=30,
    num_steps_per_env=2,
    num_mini_batches=1,
    num_learning_epochs=1,
    save_interval=10,
    actor=ActorConfig(hidden_dims=(4,)),
    critic=CriticConfig(hidden_dims=(4,)),
)


def session(path, build_env=ToyEnv, config=CONFIG, notes=()):
    return Session("toy", build_env, config, RunDir.create(path, ""), notes=notes)


def test_every_iteration_is_printed_once_however_fast_they_are(tmp_path):
    out = io.StringIO()
    assert run_headless(session(tmp_path / "run", notes=("mind this",)), out) == 0
    text = out.getvalue()
    numbers = [int(n) for n in re.findall(r"^it +(\d+)/30  ", text, re.MULTILINE)]
    assert numbers == list(range(1, 31))
    assert text.index("note: mind this") < text.index("it  1/30")
    assert text.count("checkpoint: model_") == 3
    assert "toy ended after 30 of 30 iterations" in text
    assert str(tmp_path / "run") in text


def test_worlds_that_cannot_be_built_make_a_failed_run(tmp_path, capsys):
    def build_env():
        raise ValueError("no such robot")

    out = io.StringIO()
    assert run_headless(session(tmp_path / "run", build_env), out) == 1
    assert capsys.readouterr().err == (
        f"ValueError: no such robot; see {tmp_path / 'run' / 'log.txt'}\n"
    )
    assert "Traceback" in (tmp_path / "run" / "log.txt").read_text()


def test_no_escape_sequence_of_a_message_is_printed(tmp_path, capsys):
    def build_env():
        raise ValueError("\x1b[31mred\x1b[0m\nand a \x07bell")

    out = io.StringIO()
    assert run_headless(session(tmp_path / "run", build_env, notes=("\x1b[2J",)), out) == 1
    for text in (out.getvalue(), capsys.readouterr().err):
        assert "[31mred [0m\nand a  bell" in text
        assert text.replace("\n", "").isprintable()


def test_an_output_that_fails_is_told_to_the_log_once(tmp_path):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    assert run_headless(session(tmp_path / "run"), Full()) == 0
    log = (tmp_path / "run" / "log.txt").read_text()
    assert log.count("No space left on device") == 1


def test_an_iterations_line_keeps_its_columns(tmp_path):
    info = _info(tmp_path)
    metrics = {
        "Perf/total_fps": 5321.4,
        "Train/mean_reward": 20.125,
        "Train/mean_episode_length": 987.0,
        "Loss/kl_mean": 0.01234,
        "Loss/learning_rate": 0.00044,
        "Loss/clip_fraction": 0.12,
    }
    first = iteration_line(IterationRow(3, {}, 18432, 4.0, 90_061.0), info)
    second = iteration_line(IterationRow(12, metrics, 73728, 75.0, 3_725.0), info)
    assert second == (
        "it 12/30  steps      73728  steps/s    5321  reward   20.12  length   987.0  "
        "kl  0.0123  lr  4.4e-4  clip  0.1200  00:01:15  eta 01:02:05"
    )
    assert first.endswith("00:00:04  eta 1d 01:01:01")
    assert first.index("reward       -") == second.index("reward   20.12")


def _info(tmp_path):
    run = session(tmp_path / "info", config=CONFIG)
    run_headless(run, io.StringIO())
    return run.snapshot().info


def test_handlers_are_put_back_and_ignored_signals_stay_ignored(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    kept = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with listening():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not before
        assert signal.getsignal(signal.SIGTERM) is before
    finally:
        signal.signal(signal.SIGHUP, kept)


STUCK = """
import sys, time
from pathlib import Path
from tests.tui.test_headless import session
from tui.headless import run_headless

def build_env():
    print("stuck", flush=True)
    time.sleep(1000)

run_headless(session(Path(sys.argv[1]), build_env))
"""


HUNG_UP = """
import sys
from pathlib import Path
from tests.tui.test_headless import session
from tui.headless import run_headless

run_headless(session(Path(sys.argv[1])))
"""


def test_a_second_signal_ends_even_a_run_that_is_stuck(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK, str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    while process.stdout.readline() != "stuck\n":
        assert process.poll() is None
    process.terminate()
    assert process.stdout.readline() == "SIGTERM: saves and stops\n"
    process.terminate()
    assert process.wait(timeout=10) == 143


def test_a_hang_up_is_noted_and_ends_nothing(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HUNG_UP, str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    assert process.stdout.readline() == "starting ...\n"
    process.send_signal(signal.SIGHUP)
    assert "toy ended after 30 of 30 iterations" in process.communicate(timeout=60)[0]
    assert process.returncode == 0
    assert "ppo-tui watch" in (tmp_path / "run" / "log.txt").read_text()
    assert '"terminal"' in (tmp_path / "run" / "events.jsonl").read_text()


@pytest.fixture(autouse=True)
def _no_signal_of_ours_survives():
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    assert [signal.getsignal(number) for number in SIGNALS] == before
