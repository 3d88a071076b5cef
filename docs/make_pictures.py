"""Draws docs/dashboard.svg: the dashboard of a real training, as the app itself exports it.

python docs/make_pictures.py [--preset go2_flat] [--iterations 150] [--size 120x40] [--view 1]
                             [--run-dir DIR]
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from pathlib import Path
from typing import Any

os.environ["TEXTUAL_COLOR_SYSTEM"] = "truecolor"  # read when textual is imported

from textual.pilot import Pilot

from presets.build import new_session, resolve_device
from presets.loader import load
from trainer.session import Session
from trainer.telemetry import Command
from tui.app import DashboardApp

HERE = Path(__file__).parent
FONT_FROM_THE_WEB = re.compile(r"\s*@font-face\s*\{[^}]*\}")
"""What a picture would fetch when it is looked at; the viewer's own monospace font serves."""


def main() -> None:
    """Train for a while, draw, stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="go2_flat")
    parser.add_argument("--iterations", type=int, default=150, help="done before the picture")
    parser.add_argument("--size", default="120x40", help="columns x rows")
    parser.add_argument("--view", default="1", help="keys pressed before the picture")
    parser.add_argument("--output", type=Path, default=HERE / "dashboard.svg")
    parser.add_argument("--run-dir", type=Path, help="keep the run, in this new folder")
    options = parser.parse_args()
    columns, rows = map(int, options.size.split("x"))
    device = resolve_device("auto")
    resolved = load(options.preset, ["trainer.seed=1"], device.kind)
    with tempfile.TemporaryDirectory() as folder:
        run_dir = options.run_dir or Path(folder) / options.preset
        session = new_session(resolved, device, run_dir)
        app = DashboardApp(session)

        async def draw(pilot: Pilot[Any]) -> None:
            await picture(pilot, session, options.iterations, options.view, options.output)

        app.run(headless=True, size=(columns, rows), auto_pilot=draw)
        session.join()
    print(f"{options.output} drawn at iteration {session.snapshot().completed_iterations}")


async def picture(
    pilot: Pilot[Any], session: Session, iterations: int, keys: str, output: Path
) -> None:
    """Wait for the iteration, press the keys, export the screen, end the run."""
    while session.snapshot().completed_iterations < iterations:
        failure = session.snapshot().failure
        if failure is not None:
            raise SystemExit(failure.traceback)
        await pilot.pause(0.5)
    for key in keys:
        pilot.app.simulate_key(key)
        await pilot.pause(0.5)
    await pilot.pause(1.0)
    picture = pilot.app.export_screenshot(title="ppo-tui")
    output.write_text(FONT_FROM_THE_WEB.sub("", picture), encoding="utf-8")
    session.command(Command.STOP_NOW)
    session.join()
    pilot.app.exit(0)


if __name__ == "__main__":
    main()
