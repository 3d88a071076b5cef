"""How soon the dashboard answers a key while it trains, what it costs and what it sends.

    python benchmarks/responsiveness.py [--preset go2_flat] [--size 120x40] [--keys 300]

A real run in a pseudo-terminal whose screen is kept as a terminal would keep it. First it is left
alone: the share of a core that the screen's thread takes, and the frames and bytes that it sends.
Then keys are pressed at random moments, each of which opens another view, and the time is taken
until that view's tab stands there as the open one. Needs pyte (in the `dev` extra).
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
QUESTION = b"\x1b[5n"
"""What the dashboard asks of a terminal behind each frame, to hear when it is shown."""
VIEWS = {"1": "Overview", "2": "Rollout", "3": "Update", "4": "Rewards", "6": "Timing", "7": "Log"}


class Terminal:
    """A run with the dashboard, and all that its terminal was sent.

    What came is looked at only when the run is over: a terminal's own work is done elsewhere, and
    would take from this machine what the run needs.
    """

    def __init__(self, command: list[str], columns: int, rows: int) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        environment["XDG_STATE_HOME"] = os.devnull  # no view that a person left open is measured
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)
        self.size = columns, rows
        self.pieces: list[tuple[float, bytes]] = []
        """What came, and when."""

    @property
    def received(self) -> int:
        """Bytes that came."""
        return sum(len(piece) for _, piece in self.pieces)

    def read_for(self, seconds: float) -> None:
        """Take in what comes within so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                piece = os.read(self.master, 65536)
                self.pieces.append((time.monotonic(), piece))

    def press(self, key: str) -> float:
        """Press a key; returns when."""
        os.write(self.master, key.encode())
        return time.monotonic()

    def answered(self, pressed: list[tuple[float, str]]) -> list[tuple[str, float]]:
        """Return each key with the milliseconds until the screen showed its view as the open one.

        A key that had no answer before the next one counts as if that had been its answer.
        """
        screen = pyte.Screen(*self.size)
        stream, pieces = pyte.ByteStream(screen), iter(self.pieces)
        times: list[tuple[str, float]] = []
        now = 0.0
        for (when, key), (until, _) in zip(
            pressed, [*pressed[1:], (float("inf"), "")], strict=True
        ):
            shown = -1.0
            while shown < 0 and now < until:
                now, piece = next(pieces, (until, b""))
                stream.feed(piece)
                if now > when and shows(screen, f"[{key} {VIEWS[key]}]"):
                    shown = now
            times.append((key, 1000 * ((shown if shown > 0 else until) - when)))
        return times


def shows(screen: pyte.Screen, text: str) -> bool:
    """Whether a line of the screen holds a text."""
    return any(text in line for line in screen.display)


def wait_for_training(folder: Path, terminal: Terminal) -> int:
    """Wait until three iterations are done; returns the run's process."""
    for _ in range(300):
        terminal.read_for(1.0)
        metrics = folder / "metrics.jsonl"
        if metrics.exists() and metrics.read_bytes().count(b"\n") >= 3:
            return int(json.loads((folder / "status.json").read_text())["pid"])
    raise SystemExit("the run does not train")


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
            pid = wait_for_training(Path(folder) / "run", terminal)
            terminal.read_for(5)
            pieces = len(terminal.pieces)
            before, sent, begin = thread_seconds(pid, pid), terminal.received, time.monotonic()
            terminal.read_for(arguments.seconds)
            seconds = time.monotonic() - begin
            share = (thread_seconds(pid, pid) - before) / seconds
            traffic = (terminal.received - sent) / seconds / 1000
            alone = b"".join(piece for _, piece in terminal.pieces[pieces:])
            frames = alone.count(QUESTION) / seconds
            pressed, shown = [], "1"
            for _ in range(arguments.keys):
                shown = dice.choice([other for other in VIEWS if other != shown])
                pressed.append((terminal.press(shown), shown))
                terminal.read_for(dice.uniform(0.5, 0.8))
        finally:
            terminal.process.send_signal(signal.SIGTERM)
            terminal.process.wait(60)
    answers = terminal.answered(pressed)
    times = [milliseconds for _, milliseconds in answers]
    for key in VIEWS:
        mine = [milliseconds for other, milliseconds in answers if other == key]
        if mine:
            print(f"{VIEWS[key]}: median {statistics.median(mine):.0f} ms, longest {max(mine):.0f}")
    hundredths = statistics.quantiles(times, n=100)
    print(
        "| preset | size | screen's thread | frames | sent | key to screen: median | 99 % within "
        "| longest |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    print(
        f"| `{arguments.preset}` | {arguments.size} | {share:.1%} of a core "
        f"| {frames:.1f}/s | {traffic:.1f} kB/s "
        f"| {statistics.median(times):.0f} ms | {hundredths[98]:.0f} ms | {max(times):.0f} ms |"
    )


if __name__ == "__main__":
    main()
