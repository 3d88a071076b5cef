"""How soon the dashboard answers a key while it trains, what it costs and what it sends.

    python benchmarks/responsiveness.py [--preset go2_flat] [--size 120x40] [--keys 300]

A real run in a pseudo-terminal whose screen is kept as a terminal would keep it. First it is left
alone: the share of a core that the screen's thread takes, and the bytes that it sends. Then keys
are pressed at random moments, each of which opens another view, and the time is taken until that
view's tab stands there as the open one. Needs pyte (in the `dev` extra).
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import random
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import pyte

TICKS = os.sysconf("SC_CLK_TCK")
VIEWS = {"1": "Overview", "2": "Rollout", "3": "Update", "4": "Rewards", "6": "Timing", "7": "Log"}


class Terminal:
    """A run with the dashboard, and what its terminal shows."""

    def __init__(self, command: list[str], columns: int, rows: int) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.received = 0

    def read(self, seconds: float) -> None:
        """Take in what comes within so long, at most one piece."""
        if select.select([self.master], [], [], max(seconds, 0.0))[0]:
            data = os.read(self.master, 65536)
            self.received += len(data)
            self.stream.feed(data)

    def read_for(self, seconds: float) -> None:
        """Take in what comes within so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def shows(self, text: str) -> bool:
        """Whether a line of the screen holds a text."""
        return any(text in line for line in self.screen.display)

    def wait_for(self, text: str, seconds: float) -> float:
        """Seconds until a text is on the screen."""
        begin = time.monotonic()
        while not self.shows(text):
            if time.monotonic() - begin > seconds:
                raise SystemExit(f"{text!r} never came:\n" + "\n".join(self.screen.display))
            self.read(0.1)
        return time.monotonic() - begin


def thread_seconds(pid: int, tid: int) -> float:
    """Processor time of one thread."""
    words = Path(f"/proc/{pid}/task/{tid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", default="go2_flat")
    parser.add_argument("--size", default="120x40", help="columns x rows")
    parser.add_argument("--keys", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=60.0, help="of being left alone")
    arguments = parser.parse_args()
    columns, rows = map(int, arguments.size.split("x"))
    dice = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        run = [sys.executable, "-m", "tui", "run", arguments.preset, "--seed", "1"]
        command = [*run, "--run-dir", f"{folder}/run", "--iterations", "1000000"]
        terminal = Terminal(command, columns, rows)
        try:
            terminal.wait_for("RUNNING", 300)
            terminal.read_for(10)
            pid = int(json.loads((Path(folder) / "run" / "status.json").read_text())["pid"])
            before, sent, begin = thread_seconds(pid, pid), terminal.received, time.monotonic()
            terminal.read_for(arguments.seconds)
            seconds = time.monotonic() - begin
            share = (thread_seconds(pid, pid) - before) / seconds
            traffic = (terminal.received - sent) / seconds / 1000
            times, shown = [], "1"
            for _ in range(arguments.keys):
                key = dice.choice([other for other in VIEWS if other != shown])
                terminal.read_for(dice.uniform(0.1, 0.5))
                os.write(terminal.master, key.encode())
                times.append(1000 * terminal.wait_for(f"[{key} {VIEWS[key]}]", 10))
                shown = key
        finally:
            terminal.process.send_signal(signal.SIGTERM)
            terminal.process.wait(60)
    hundredths = statistics.quantiles(times, n=100)
    print(
        "| preset | size | screen's thread | sent | key to screen: median | 99 % within | longest |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    print(
        f"| `{arguments.preset}` | {arguments.size} | {share:.1%} of a core | {traffic:.1f} kB/s "
        f"| {statistics.median(times):.0f} ms | {hundredths[98]:.0f} ms | {max(times):.0f} ms |"
    )


if __name__ == "__main__":
    main()
