"""Random sizes and random keys, while a training goes on unharmed.

PPO_TUI_LONG_TESTS=1 makes it 200 sizes and 300 keys, while go2_flat trains.
"""

import os
import random
import sys

from tests.pty.conftest import iterations

LONG = bool(os.environ.get("PPO_TUI_LONG_TESTS"))
SIZES, KEYS = (200, 300) if LONG else (60, 100)
KEYBOARD = [
    *"1234567tzc?+-/yg[],;nmkwehrTAvV", *(" ", ".", "p", ">"), "\t", "\x1b", "\r", "\x1b[A",
    "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[Z", "\x1b[5~", "\x1b[6~", "\x1b[H", "\x1b[F", "é", "\x1b[M",
]  # fmt: skip


def test_any_keys_at_any_sizes_are_survived(toy):
    if LONG:
        go2 = ["-m", "tui", "run", "go2_flat", "--num-envs", "64", "--run-dir", str(toy.folder)]
        terminal = toy.open([sys.executable, *go2])
    else:
        terminal = toy.train()
    terminal.wait_until(lambda: iterations(terminal) >= 2, 120, "iterations")
    draw = random.Random(5)
    for _ in range(max(SIZES, KEYS)):
        if draw.random() < SIZES / max(SIZES, KEYS):
            terminal.resize(draw.randint(1, 300), draw.randint(1, 100))
        if draw.random() < KEYS / max(SIZES, KEYS):
            terminal.send(draw.choice(KEYBOARD))
        terminal.read(0.03)
    assert terminal.process.isalive()
    terminal.resize(1, 1)
    terminal.read(0.2)
    terminal.resize(120, 40)
    for _ in range(20):  # until it has worked off what it was given, and left all dialogs
        for key in ("\x1b", "1"):  # not read as one: that would be alt and 1
            terminal.send(key)
            terminal.read(1)
        if "[1 Overview]" in terminal.text and "LOOKING BACK" not in terminal.text:
            break
    assert "[1 Overview]" in terminal.text
    if "PAUSED" in terminal.text:
        terminal.send(" ")
    toy.wait_for_rows(3, timeout=60)
    terminal.send("q")
    terminal.wait_for("End this run?", 30)
    terminal.send("f")
    assert terminal.wait_for_end(30) == 0
    assert terminal.is_restored()
    assert not toy.events("error")
    assert (toy.folder / "log.txt").read_text() == ""
