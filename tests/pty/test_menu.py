"""The menu in a real terminal: what is watched or played comes back to it."""

import os
import subprocess
import sys

import pytest

from tests.presets.tiny import TINY, write
from tests.pty.conftest import ROOT
from tests.pty.terminal import Terminal

PLAIN = {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture
def menu(tmp_path):
    """The menu, with the record of its only run on show."""
    write(tmp_path, tiny=TINY)
    command = [sys.executable, "-m", "tui", "run", "tiny", "--headless", "--seed", "1"]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, **PLAIN}, check=True, timeout=300)
    with Terminal([sys.executable, "-m", "tui"], 100, 30, env=PLAIN, cwd=tmp_path) as menu:
        menu.wait_for("recent runs", 120)
        menu.send("\t")
        menu.wait_for("a run of tiny")
        menu.send("w")
        menu.wait_for("FINISHED", 60)
        yield menu


def test_watching_and_playing_a_run_come_back_to_it_in_the_menu(menu):
    menu.send("q")
    menu.wait_for("a run of tiny", 60)
    menu.send("p")
    menu.wait_for("model_4.pt", 120)
    menu.wait_for("return", 60)
    menu.send("q")
    menu.wait_for("a run of tiny", 60)
    menu.send("q")
    assert menu.wait_for_end() == 0
    assert menu.is_restored()


def test_a_terminal_that_is_lost_while_watching_brings_no_menu_back(menu):
    menu.hang_up()
    assert menu.wait_for_end() != 0
