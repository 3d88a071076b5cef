"""A toy training in a real terminal, for the tests in here."""

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from tests import leftovers
from tests.pty.terminal import Terminal

ROOT = Path(__file__).parents[2]


class Toy:
    """Programs in terminals that train or watch the run in one folder."""

    def __init__(self, folder):
        self.folder = folder / "run"
        self.terminals = []

    def train(self, fault="none", iterations=100_000, **options):
        """Start the toy training under its dashboard."""
        program = str(ROOT / "tests/pty/toy_program.py")
        return self.open(
            [sys.executable, program, str(self.folder), fault, str(iterations)], **options
        )

    def watch(self, *arguments, **options):
        """Start `ppo-tui watch` on it."""
        return self.open(
            [sys.executable, "-m", "tui", "watch", str(self.folder), *arguments], **options
        )

    def open(self, command, **options):
        """Start a program in a terminal of its own."""
        env = {"PYTHONPATH": str(ROOT), **options.pop("env", {})}
        options.setdefault("cwd", self.folder.parent)
        self.terminals.append(Terminal(command, env=env, **options))
        return self.terminals[-1]

    @property
    def status(self):
        """What `status.json` says."""
        return json.loads((self.folder / "status.json").read_text())

    @property
    def pid(self):
        """Number of the process that trains."""
        return self.status["pid"]

    @property
    def rows(self):
        """Iterations on disk."""
        try:
            return (self.folder / "metrics.jsonl").read_bytes().count(b"\n")
        except OSError:
            return 0

    def wait_for_rows(self, number, timeout=60):
        """Wait until so many more iterations are on disk."""
        wanted = self.rows + number
        wait_until(lambda: self.rows >= wanted, timeout, f"{wanted} iterations")

    def events(self, kind):
        """Texts of all events of a kind."""
        lines = (self.folder / "events.jsonl").read_text().splitlines()
        return [event["text"] for event in map(json.loads, lines) if event["kind"] == kind]


def wait_until(condition, timeout, what):
    """Wait, without reading any terminal."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        time.sleep(0.05)


@pytest.fixture(autouse=True)
def _nobody_stays_for_the_next_test(monkeypatch):
    """Kill whatever a test leaves behind before the next one measures time."""
    mark = leftovers.new_mark("PPO_TUI_TEST")
    monkeypatch.setenv(*mark.split("="))
    yield
    leftovers.kill_all(mark)


@pytest.fixture
def toy(tmp_path):
    toy = Toy(tmp_path)
    yield toy
    for terminal in toy.terminals:
        terminal.__exit__()
    if (toy.folder / "status.json").exists() and toy.status["state"] not in ("finished", "failed"):
        end(toy.pid)


def end(pid):
    """Kill a process if it is still there and a toy."""
    try:
        if b"toy_program" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def iterations(terminal):
    """Iterations that a screen says are done."""
    found = re.search(r"it +(\d+)/", terminal.text)
    return int(found[1]) if found else -1
