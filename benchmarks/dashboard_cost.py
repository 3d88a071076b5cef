"""What the dashboard costs: training with it, in a real terminal, beside headless training.

    python benchmarks/dashboard_cost.py [--preset go2_flat] [--pairs 5] [--iterations 40]

Runs come in pairs, one after the other, in alternating order; the table has each pair's ratio of
env steps per second of wall time, between the run's first and last event, and their median.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path


def command(preset: str, iterations: int, folder: Path) -> list[str]:
    run = [sys.executable, "-m", "tui", "run", preset, "--device", "cpu", "--seed", "1"]
    return [*run, "--iterations", str(iterations), "--run-dir", str(folder)]


def headless(preset: str, iterations: int, folder: Path) -> float:
    subprocess.run(
        [*command(preset, iterations, folder), "--headless"], check=True, stdout=subprocess.DEVNULL
    )
    return rate(folder)


def dashboard(preset: str, iterations: int, folder: Path, rows: int, columns: int) -> float:
    """Train in a pseudo-terminal whose reader takes all it is given, and press q at the end."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(
        command(preset, iterations, folder),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        start_new_session=True,
    )
    os.close(slave)
    asked = False
    while process.poll() is None:
        if select.select([master], [], [], 0.1)[0]:
            try:
                os.read(master, 65536)
            except OSError:
                break
        if not asked and (events := folder / "events.jsonl").exists():
            asked = '"end"' in events.read_text()
            if asked:
                os.write(master, b"q")
    process.wait()
    os.close(master)
    return rate(folder)


def rate(folder: Path) -> float:
    """Env steps a second of wall time, from the first event to the last."""
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    last = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    return last["env_steps"] / (events[-1]["time"] - events[0]["time"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="go2_flat")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--size", default="200x50", help="columns x rows")
    args = parser.parse_args()
    columns, rows = map(int, args.size.split("x"))
    ratios = []
    for pair in range(args.pairs):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            rates: dict[str, float] = {}
            for kind in ("headless", "dashboard") if pair % 2 else ("dashboard", "headless"):
                if kind == "headless":
                    rates[kind] = headless(args.preset, args.iterations, folder / kind)
                else:
                    rates[kind] = dashboard(
                        args.preset, args.iterations, folder / kind, rows, columns
                    )
        ratios.append(rates["dashboard"] / rates["headless"])
        print(
            f"pair {pair + 1}: headless {rates['headless']:7.0f}  "
            f"dashboard {rates['dashboard']:7.0f} env steps/s  ratio {ratios[-1]:.3f}",
            flush=True,
        )
    print(f"{args.preset} at {args.size}: median ratio {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
