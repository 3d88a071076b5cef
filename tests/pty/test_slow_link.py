"""What a steady picture sends, and terminals that take their time."""

import fcntl
import os
import termios
import time

from tests.pty.conftest import iterations

ALLOWED = 5_000
"""Bytes a second at 80x24: the budget is 4,800."""


def test_a_steady_picture_takes_few_bytes(toy):
    terminal = toy.train(columns=80, rows=24)
    terminal.wait_until(lambda: iterations(terminal) >= 10, 120, "iterations")
    before, started = len(terminal.raw), time.monotonic()
    terminal.read(4)
    rate = (len(terminal.raw) - before) / (time.monotonic() - started)
    assert 100 < rate < ALLOWED
    terminal.send("\x03\x03")
    assert terminal.wait_for_end() == 0


def test_a_reader_at_2_kilobytes_a_second_sees_the_present_and_holds_nothing_up(toy):
    terminal = toy.train(columns=80, rows=24)
    terminal.wait_until(lambda: iterations(terminal) >= 3, 120, "iterations")
    fd = terminal.process.fileno()

    def read_slowly(seconds):
        """Read 2 kB/s, as a modem would."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.05)
            ready = int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4), "little")
            if ready:
                data = os.read(fd, 100)
                terminal.raw += data
                terminal._stream.feed(data)

    before, started = toy.rows, time.monotonic()
    read_slowly(5)
    pace = (toy.rows - before) / (time.monotonic() - started)
    assert pace > 1  # a toy that waits 40 ms an iteration
    memory = resident(toy.pid)
    read_slowly(4)
    assert resident(toy.pid) - memory < 3e6
    assert toy.rows - iterations(terminal) < 12 * max(pace, 1)
    terminal.send("3")  # a key changes all of the picture, and arrives whole in the end
    deadline = time.monotonic() + 20
    while "[3 Update]" not in terminal.text and time.monotonic() < deadline:
        read_slowly(0.5)
    assert "[3 Update]" in terminal.text
    terminal.send("\x03\x03")
    assert terminal.wait_for_end(30) == 0


def resident(pid):
    """Bytes of memory in use."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
