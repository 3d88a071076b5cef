"""A toy world under the real dashboard in a real terminal: signals, faults, stray output."""

import re
import signal
import sys
from pathlib import Path

import pytest

from tests.pty.terminal import Terminal

ROOT = Path(__file__).parents[2]


def reach(terminal, iteration, timeout):
    """Wait until so many iterations are done."""

    def reached():
        found = re.search(r"it +(\d+)/", terminal.text)
        return found is not None and int(found[1]) >= iteration

    terminal.wait_until(reached, timeout, f"iteration {iteration}")


@pytest.fixture
def start(tmp_path):
    terminals = []

    def start(fault="none", iterations=100_000, **options):
        command = [sys.executable, str(ROOT / "tests/pty/toy_program.py"), str(tmp_path / "run")]
        terminal = Terminal(
            [*command, fault, str(iterations)], env={"PYTHONPATH": str(ROOT)}, **options
        )
        terminals.append(terminal)
        return terminal

    yield start
    for terminal in terminals:
        terminal.__exit__()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_restores_the_terminal_and_ends_with_128_and_its_number(
    start, number, tmp_path
):
    terminal = start()
    reach(terminal, 3, timeout=120)
    terminal.kill(number)
    assert terminal.wait_for_end(30) == 128 + number
    assert terminal.is_restored()
    assert list((tmp_path / "run/checkpoints").glob("model_*.pt"))


def test_an_abort_in_the_training_leaves_a_usable_terminal(start):
    terminal = start("abort")
    assert terminal.wait_for_end(120) == -signal.SIGABRT
    terminal.read(0.5)
    assert terminal.is_restored()


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGUSR1])
def test_a_signal_that_ends_both_processes_leaves_a_usable_terminal(start, number):
    terminal = start()
    reach(terminal, 2, timeout=120)
    program = terminal.program
    terminal.kill(number)
    assert terminal.wait_for_end(20) == -number
    terminal.read(0.5)
    assert terminal.is_restored()
    assert not Path(f"/proc/{program}").exists()


def test_what_libraries_print_goes_to_the_log_and_not_to_the_screen(start, tmp_path):
    terminal = start("print")
    reach(terminal, 5, timeout=120)
    terminal.send("7")
    terminal.wait_for("smear-by-libc")  # the log's end is a panel of this view
    smears = ("libc", "write", "write-2", "print", "logging", "warning")
    log = (tmp_path / "run/log.txt").read_text()
    assert all(f"smear-by-{name}" in log for name in smears)
    terminal.send("1")
    terminal.wait_until(lambda: "smear-by" not in terminal.text, 5, "a clean overview")
    terminal.send("qs")
    assert terminal.wait_for_end() == 0


def test_a_library_that_asks_a_question_fails_instead_of_waiting_and_takes_no_keys(start, tmp_path):
    terminal = start("ask")
    terminal.wait_for("EOFError", timeout=120)
    assert "overwrite?" in (tmp_path / "run/log.txt").read_text()
    terminal.send("q")
    assert terminal.wait_for_end() == 1
    assert terminal.is_restored()


def test_a_failure_is_told_in_full_and_the_exit_code_is_1(start, tmp_path):
    terminal = start("boom")
    terminal.wait_for("FAILED", timeout=120)
    terminal.wait_for("The run failed", timeout=1)
    assert "ValueError: boom" in terminal.text
    assert "act_step" in terminal.text
    assert "model_2.pt saved" in terminal.text
    assert 'raise ValueError("boom")' in (tmp_path / "run/log.txt").read_text()
    terminal.send("q")
    assert terminal.wait_for_end() == 1
    assert terminal.is_restored()


def test_a_failure_while_building_is_told_too(start):
    terminal = start("no-build")
    terminal.wait_for("RuntimeError: no such robot", timeout=120)
    terminal.send("q")
    assert terminal.wait_for_end() == 1


def test_quitting_in_a_long_stage_says_so_and_ends_with_it(start):
    terminal = start("slow")
    reach(terminal, 2, timeout=120)
    terminal.send("q")
    terminal.wait_for("End this run?", timeout=20)
    terminal.send("s")
    assert terminal.wait_for("Stopping", timeout=2) < 1
    assert terminal.wait_for_end(8) == 0
    assert terminal.is_restored()


def test_a_stage_that_never_ends_is_left_by_a_second_quit(start):
    terminal = start("hang")
    reach(terminal, 2, timeout=120)
    terminal.send("q")
    terminal.wait_for("End this run?", timeout=20)
    terminal.send("f")
    terminal.wait_for("Stopping", timeout=20)
    terminal.send("q")
    assert terminal.wait_for_end(5) == 1
    assert terminal.is_restored()
    assert b"still busy" in terminal.raw


def test_a_screen_that_fails_saves_the_run_and_tells_why(start, tmp_path):
    terminal = start("screen")
    assert terminal.wait_for_end(120) == 1
    assert terminal.is_restored()
    assert b"ZeroDivisionError" in terminal.raw
    assert list((tmp_path / "run/checkpoints").glob("model_*.pt"))


def test_a_finished_run_waits_for_q(start):
    terminal = start(iterations=3)
    terminal.wait_for("finished after 3 iterations", timeout=120)
    terminal.send("q")
    assert terminal.wait_for_end() == 0


def test_ctrl_z_and_a_stop_signal_without_a_shell_do_not_freeze_the_training(start):
    terminal = start()
    reach(terminal, 2, timeout=120)
    terminal.send("\x1a")
    terminal.kill(signal.SIGTSTP)
    reach(terminal, 8, timeout=60)
    terminal.kill(signal.SIGSTOP)  # this one cannot be refused, and stops the launcher alone
    terminal.read(0.3)
    terminal.kill(signal.SIGCONT)
    reach(terminal, 15, timeout=60)
    terminal.send("qs")
    assert terminal.wait_for_end() == 0
    assert terminal.is_restored()
