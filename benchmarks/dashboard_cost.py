"""What the dashboard costs: training with it, in a real terminal, beside headless training.

    python benchmarks/dashboard_cost.py [--preset go2_flat] [--pairs 20] [--size 200x50]

Both runs are open at once and take turns: while one trains, the other is stopped by a signal, so
that a machine which is slower for a while is slower for both. Of each turn only whole iterations
count. The last line has the median of the ratios of all pairs of turns, and their middle half.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
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


class Run:
    """A training run that trains only while it has its turn."""

    def __init__(self, preset: str, folder: Path, terminal: tuple[int, int] | None) -> None:
        """Start it, in a pseudo-terminal of so many columns and rows or headless."""
        self.folder = folder
        run = [sys.executable, "-m", "tui", "run", preset, "--device", "cpu", "--seed", "1"]
        command = [*run, "--iterations", "1000000", "--run-dir", str(folder)]
        self.master = -1
        if terminal is None:
            command.append("--headless")
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        else:
            self.master, slave = pty.openpty()
            columns, rows = terminal
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            self.process = subprocess.Popen(
                command,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                # no view that a person left open is measured
                env={**os.environ, "TERM": "xterm-256color", "XDG_STATE_HOME": os.devnull},
                start_new_session=True,
            )
            os.close(slave)

    @property
    def pid(self) -> int:
        """The process that trains."""
        return int(json.loads((self.folder / "status.json").read_text())["pid"])

    @property
    def completed(self) -> tuple[int, float]:
        """Iterations that were logged, and when the last of them was."""
        metrics = self.folder / "metrics.jsonl"
        if not metrics.exists():
            return 0, 0.0
        return metrics.read_bytes().count(b"\n"), metrics.stat().st_mtime

    def read(self, seconds: float) -> None:
        """Let time go by, and take all that the terminal is given meanwhile."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.master < 0:
                time.sleep(left)
            elif select.select([self.master], [], [], left)[0]:
                os.read(self.master, 65536)

    def wait_for_iteration(self, patience: float = 300.0) -> tuple[int, float]:
        """Return the number of the next iteration to end, and when it does."""
        before, end = self.completed[0], time.monotonic() + patience
        while (now := self.completed)[0] == before:
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit(f"the run in {self.folder} does not train")
            self.read(0.02)
        return now

    def take_turn(self, seconds: float) -> float:
        """Train for so long; returns iterations a second, of the whole ones."""
        os.kill(self.pid, signal.SIGCONT)
        self.wait_for_iteration()  # it was begun in an earlier turn
        self.wait_for_iteration()  # with it, a terminal that was left has been drawn anew
        first, begin = self.wait_for_iteration()
        self.read(seconds)
        last, end = self.wait_for_iteration()
        os.kill(self.pid, signal.SIGSTOP)
        return (last - first) / (end - begin)

    def end(self) -> None:
        """Kill it."""
        os.kill(self.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="go2_flat")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=5.0, help="of a turn, about")
    parser.add_argument("--size", default="200x50", help="columns x rows")
    args = parser.parse_args()
    columns, rows = map(int, args.size.split("x"))
    with tempfile.TemporaryDirectory() as name:
        runs: dict[str, Run] = {}
        for kind, terminal in (("headless", None), ("dashboard", (columns, rows))):
            runs[kind] = Run(args.preset, Path(name) / kind, terminal)
            for _ in range(5):
                runs[kind].wait_for_iteration()
            os.kill(runs[kind].pid, signal.SIGSTOP)
        rates: dict[str, list[float]] = {kind: [] for kind in runs}
        try:
            for pair in range(args.pairs):
                for kind in sorted(runs, reverse=bool(pair % 2)):
                    rates[kind].append(runs[kind].take_turn(args.seconds))
        finally:
            for run in runs.values():
                run.end()
    pairs = zip(rates["dashboard"], rates["headless"], strict=True)
    ratios = [dashboard / headless for dashboard, headless in pairs]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(
        f"{args.preset} at {args.size}: headless {statistics.median(rates['headless']):.3f}, "
        f"dashboard {statistics.median(rates['dashboard']):.3f} iterations/s; "
        f"ratio {middle:.3f}, middle half {low:.3f} to {high:.3f} of {len(ratios)} pairs"
    )


if __name__ == "__main__":
    main()
