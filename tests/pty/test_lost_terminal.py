"""Terminals that go away, or are given away, while a training goes on."""

import os
import signal
import sys
from pathlib import Path

from tests.pty.conftest import iterations, wait_until

CLOCK = os.sysconf("SC_CLK_TCK")


def ui_cpu_seconds(pid):
    """Processor time of all threads but the session's and torch's, which train."""
    seconds = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            fields = (task / "stat").read_text().rpartition(")")
        except OSError:
            continue
        name = fields[0].partition("(")[2]
        if int(task.name) == pid or name.startswith(("textual", "serving", "asyncio")):
            user, system = fields[2].split()[11:13]
            seconds += (int(user) + int(system)) / CLOCK
    return seconds


def assert_it_trains_on_quietly(toy):
    """It goes on headless: says so, holds no terminal, draws nothing, and can be ended."""
    wait_until(lambda: toy.events("terminal"), 20, "an event that tells of it")
    assert "training goes on; ppo-tui watch" in toy.events("terminal")[0]
    assert "training goes on" in (toy.folder / "log.txt").read_text()
    toy.wait_for_rows(3)
    pid = toy.pid
    links = [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()]
    assert not [link for link in links if link.startswith(("/dev/pts", "/dev/tty"))]
    before = ui_cpu_seconds(pid)
    toy.wait_for_rows(10)
    assert ui_cpu_seconds(pid) - before < 0.1
    return pid


def test_a_terminal_that_closes_leaves_the_training_alone(toy):
    terminal = toy.train()
    terminal.wait_until(lambda: iterations(terminal) >= 3, 120, "iterations")
    terminal.hang_up()
    pid = assert_it_trains_on_quietly(toy)
    os.kill(pid, signal.SIGTERM)
    assert terminal.wait_for_end(30) == 128 + signal.SIGTERM  # the launcher has waited for it
    assert toy.status["state"] == "finished"
    assert list(toy.folder.glob("checkpoints/model_*.pt"))
    assert not (toy.folder / "watch.sock").exists()


def test_a_hang_up_signal_alone_gives_the_screen_back_and_the_exit_code_is_the_runs(toy):
    terminal = toy.train(iterations=40)
    terminal.wait_until(lambda: iterations(terminal) >= 3, 120, "iterations")
    terminal.kill(signal.SIGHUP)
    terminal.kill(signal.SIGHUP)  # shells send it as well as the kernel
    terminal.wait_until(terminal.is_restored, 20, "a restored screen")
    wait_until(lambda: toy.events("terminal"), 20, "an event that tells of it")
    assert "terminal lost" in (toy.folder / "log.txt").read_text()
    terminal.wait_for("training goes on as process")
    assert terminal.wait_for_end(90) == 0
    assert toy.status["state"] == "finished"
    assert toy.status["completed_iterations"] == 40


def test_a_shell_gets_its_terminal_back_with_ctrl_z_and_with_d(toy):
    program = Path(__file__).parent / "toy_program.py"
    shell = toy.open(["bash", "--norc", "--noprofile", "-i"], env={"PS1": "PROMPT> "})
    shell.wait_for("PROMPT>")
    shell.send(f"{sys.executable} {program} {toy.folder}\r")
    shell.wait_until(lambda: iterations(shell) >= 2, 120, "iterations")
    shell.send("\x1a")
    shell.wait_for("Stopped")
    toy.wait_for_rows(3)  # the training is not stopped
    shell.send("clear; echo shell-$((6 * 7))\r")
    shell.wait_for("shell-42")
    shell.wait_for("PROMPT>")  # what is typed before it may be lost
    shell.send("fg\r")
    shell.wait_for("RUNNING")
    shell.send("\x1a")
    shell.wait_for("Stopped")
    shell.send("clear; bg\r")
    shell.read(0.5)
    assert "RUNNING" not in shell.text
    toy.wait_for_rows(3)
    shell.wait_for("PROMPT>")
    shell.send("fg\r")
    shell.wait_for("RUNNING")
    shell.send("d")
    shell.wait_for("training goes on as process")
    shell.send("echo code $?\r")
    shell.wait_for("code 0")
    shell.send("exit\r")
    shell.wait_for_end()
    pid = assert_it_trains_on_quietly(toy)
    os.kill(pid, signal.SIGINT)
    wait_until(lambda: toy.status["state"] == "finished", 20, "the end")


def test_a_launcher_that_is_killed_is_a_lost_terminal(toy):
    terminal = toy.train(iterations=30)
    terminal.wait_until(lambda: iterations(terminal) >= 2, 120, "iterations")
    terminal.kill(signal.SIGKILL)
    wait_until(lambda: toy.events("terminal"), 20, "an event that tells of it")
    wait_until(lambda: toy.status["state"] == "finished", 60, "the end")
    assert toy.status["completed_iterations"] == 30
