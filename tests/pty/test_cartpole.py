"""The real program in a real terminal, training the cartpole."""

import os
import random
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.pty.terminal import Terminal
from trainer.stages import Stage

PROGRAM = [sys.executable, "-m", "tui"]
SMALL = [
    *("--num-envs", "8", "--seed", "1", "--iterations", "100000"),
    *("--set", "trainer.num_steps_per_env=2", "--set", "trainer.num_mini_batches=2"),
    *("--set", "trainer.num_learning_epochs=1"),
]


@pytest.fixture
def start(tmp_path):
    terminals = []

    def start(*arguments, **options):
        options.setdefault("env", {"PYTHONPATH": str(Path(__file__).parents[2])})
        terminal = Terminal([*PROGRAM, *arguments], cwd=tmp_path, **options)
        terminals.append(terminal)
        return terminal

    yield start
    for terminal in terminals:
        terminal.__exit__()


def place(terminal):
    """Where the loop is paused, as the strip says it: no two boundaries in a row say the same."""
    return re.search(r"paused behind (\w+) · next \w+ .*?(?=\s{3,}|\n)", terminal.text)


def step(terminal, key):
    """Press a stepping key and wait until the loop is paused somewhere else; names the stage."""
    terminal.wait_until(lambda: place(terminal), 20, "a pause")
    before = place(terminal)[0]
    terminal.send(key)
    terminal.wait_until(
        lambda: (now := place(terminal)) and now[0] != before, 20, f"a pause after {before!r}"
    )
    return place(terminal)[1]


def test_a_crash_in_a_library_leaves_its_place_in_the_log_and_a_usable_terminal(start, tmp_path):
    terminal = start("run", "cartpole", *SMALL, "--run-dir", "run")
    terminal.wait_for("RUNNING", timeout=120)
    os.kill(terminal.program, signal.SIGSEGV)
    assert terminal.wait_for_end() == -signal.SIGSEGV
    terminal.read(0.5)
    assert terminal.is_restored()
    log = (tmp_path / "run/log.txt").read_text()
    assert "Segmentation fault" in log
    assert "trainer/" in log  # where the training was; it ran on while its frames were written


def test_a_person_pauses_steps_through_all_stages_resumes_and_quits(start, tmp_path):
    terminal = start("run", "cartpole", *SMALL, "--run-dir", "run")
    terminal.wait_for("RUNNING", timeout=120)
    terminal.send(" ")
    terminal.wait_for("PAUSED behind")
    assert step(terminal, ">") == "fresh"
    names = [stage.label for stage in Stage]
    collect = names[:3]
    # Two steps of the rollout, then the update: two mini-batches in one epoch.
    for name in [*collect, *collect, "targets", "sample", "optimize", "optimize", "fresh"]:
        assert step(terminal, ".") == name
    assert step(terminal, "p") == "store"  # the whole collection
    terminal.wait_for("PAUSED behind store", timeout=20)
    terminal.send("t")
    terminal.wait_for("behind store", timeout=20)
    terminal.wait_for("rollout.actions", timeout=20)
    assert "[T,N,O_policy]" in terminal.text
    assert "2×8×4" in terminal.text
    terminal.send("1 ")
    terminal.wait_until(lambda: "PAUSED" not in terminal.text, 5, "running again")
    terminal.send("q")
    terminal.wait_for("End this run?", timeout=20)
    terminal.send("f")
    assert terminal.wait_for_end() == 0
    assert terminal.is_restored()
    assert b"cartpole ended after" in terminal.raw
    assert list((tmp_path / "run/checkpoints").glob("model_*.pt"))


def test_sizes_may_change_wildly_while_it_trains(start):
    terminal = start("run", "cartpole", *SMALL, "--run-dir", "run")
    terminal.wait_for("RUNNING", timeout=120)
    draw = random.Random(3)
    sizes = [(draw.randint(1, 220), draw.randint(1, 60)) for _ in range(56)]
    for columns, rows in [*sizes, (120, 40), (80, 24), (40, 10), (1, 1)]:
        terminal.resize(columns, rows)
        terminal.read(0.03)
    terminal.resize(59, 24)
    terminal.wait_for("Terminal too small")
    terminal.resize(100, 30)
    terminal.wait_for("[1 Overview]")
    terminal.send("\x03\x03")
    assert terminal.wait_for_end() == 0
    assert terminal.is_restored()


def test_the_menu_is_there_at_once_and_starts_a_run(start, tmp_path):
    terminal = start(columns=100, rows=30)
    terminal.wait_for("cartpole", timeout=20)
    terminal.wait_for("B = N T", timeout=20)
    process = Path("/proc") / str(terminal.program)
    ticks = process.joinpath("stat").read_text().rpartition(")")[2].split()[11:13]
    libraries = process.joinpath("maps").read_text()
    assert not re.search(r"libtorch|libmujoco|warp\.so", libraries)
    seconds = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    assert seconds < 1.0  # half of that on an idle machine
    for key in "n16":  # the number there is selected, so typing replaces it
        terminal.send(key)
        terminal.read(0.2)
    terminal.wait_for("16 x 16 = 256", timeout=20)
    terminal.wait_for("ppo-tui run cartpole --num-envs 16", timeout=20)
    terminal.send("\r")
    terminal.wait_for("RUNNING", timeout=120)
    assert len(list((tmp_path / "runs/cartpole").iterdir())) == 1
    terminal.send("q")
    terminal.wait_for("End this run?")
    terminal.send("s")
    assert terminal.wait_for_end() == 0
    assert terminal.is_restored()
