"""The real program in a real terminal, playing a policy."""

import re
import sys
from pathlib import Path

from tests.presets.untrained import untrained_run
from tests.pty.terminal import Terminal

COMMAND = [sys.executable, "-m", "tui", "play"]
ENVIRONMENT = {"PYTHONPATH": str(Path(__file__).parents[2])}


def told(terminal):
    """What the robot is told: forward, left and turn."""
    found = re.findall(r"(?:forward|left|turn) +([-+]?\d\.\d\d)", terminal.text)
    return [float(number) for number in found[:3]]


def test_a_person_steers_a_go2_pauses_it_and_leaves(tmp_path):
    run = untrained_run(tmp_path / "run", "go2_flat", "trainer.actor.hidden_dims=[8]")
    with Terminal([*COMMAND, str(run)], columns=100, rows=30, env=ENVIRONMENT) as terminal:
        terminal.wait_for("PLAYS", timeout=60)
        terminal.wait_for("world 1/4")
        assert any("\u2800" < character <= "\u28ff" for character in terminal.text)
        terminal.send("0")
        terminal.wait_until(lambda: told(terminal) == [0.0, 0.0, 0.0], 20, "told to stand")
        terminal.wait_for("told by you")
        for keys in ("\x1b[A", "\x1b[A", "\x1b[D", "a"):  # forward twice, turn left, go left
            terminal.send(keys)
        terminal.wait_until(lambda: told(terminal) == [0.2, 0.1, 0.1], 20, "told by four keys")
        terminal.send(" ")
        terminal.wait_for("PAUSED")
        terminal.send("n")
        terminal.wait_for("world 2/4")
        for size in ((40, 10), (200, 50), (80, 24)):
            terminal.resize(*size)
            terminal.read(0.3)
        terminal.wait_for("from above")
        terminal.send("q")
        assert terminal.wait_for_end() == 0
        assert terminal.is_restored()


def test_a_policy_that_does_not_fit_gives_the_terminal_back_and_says_why(tmp_path):
    run = untrained_run(tmp_path / "run", "cartpole")
    config = (run / "config.toml").read_text()
    (run / "config.toml").write_text(config.replace("[32, 32]", "[16, 16]"))
    with Terminal([*COMMAND, str(run)], env=ENVIRONMENT) as terminal:
        assert terminal.wait_for_end(60) == 2
        assert terminal.is_restored()
        assert b"does not fit the run's config.toml" in terminal.raw
        assert b"Traceback" not in terminal.raw


def test_a_signal_ends_it_with_its_code(tmp_path):
    run = untrained_run(tmp_path / "run", "cartpole")
    with Terminal([*COMMAND, str(run)], env=ENVIRONMENT) as terminal:
        terminal.wait_for("PLAYS", timeout=60)
        terminal.kill(15)
        assert terminal.wait_for_end() == 128 + 15
        assert terminal.is_restored()
