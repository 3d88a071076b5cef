"""Draws the README's pictures: screens of a real training, as the app itself exports them.

python docs/make_pictures.py [--preset go2_flat] [--set KEY=VALUE] [--iterations 150]
                             [--size 120x40] [--run-dir DIR | --resume RUN]

One run is trained for all of them, or goes on in its own folder: its overview, what its update
does, and one of its robots.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

os.environ["TEXTUAL_COLOR_SYSTEM"] = "truecolor"  # read when textual is imported

from textual.pilot import Pilot

from presets.build import new_session, resolve_device
from presets.loader import load
from presets.resume import resumed_session
from trainer.session import Session
from trainer.telemetry import Command, RunState
from tui.app import DashboardApp

HERE = Path(__file__).parent
FONT_FROM_THE_WEB = re.compile(r"\s*@font-face\s*\{[^}]*\}")
"""What a picture would fetch when it is looked at; the viewer's own monospace font serves."""


class Picture(NamedTuple):
    """One screen of the run."""

    name: str
    """Of the file, without its ending."""
    keys: tuple[str, ...]
    """Pressed before the screen is taken."""
    seconds: float
    """Given to the screen to fill after that."""


PICTURES = (
    Picture("dashboard", ("1",), 2.0),
    Picture("update", ("3",), 2.0),
    Picture("robot", ("r", "W"), 4.0),
)


def main() -> None:
    """Train for a while, draw, stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="go2_flat")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument(
        "--iterations", type=int, default=150, help="of this training, before it is drawn"
    )
    parser.add_argument("--size", default="120x40", help="columns x rows")
    parser.add_argument("--folder", type=Path, default=HERE, help="where the pictures go")
    parser.add_argument("--run-dir", type=Path, help="keep the run, in this new folder")
    parser.add_argument("--resume", help="a run to go on with")
    options = parser.parse_args()
    columns, rows = map(int, options.size.split("x"))
    device = resolve_device("auto")
    with tempfile.TemporaryDirectory() as folder:
        if options.resume is not None:
            session = resumed_session(options.preset, options.resume, device, options.settings)
        else:
            resolved = load(options.preset, ["trainer.seed=1", *options.settings], device.kind)
            session = new_session(resolved, device, options.run_dir or Path(folder) / "run")
        app = DashboardApp(session)

        async def draw(pilot: Pilot[Any]) -> None:
            await take(pilot, session, options.iterations, options.folder)

        app.run(headless=True, size=(columns, rows), auto_pilot=draw)
        session.join()
    print(f"drawn at iteration {session.snapshot().completed_iterations}")


async def take(pilot: Pilot[Any], session: Session, iterations: int, folder: Path) -> None:
    """Wait for some iterations, export every screen, end the run."""
    first: int | None = None
    while first is None or session.snapshot().completed_iterations < first + iterations:
        snapshot = session.snapshot()
        if snapshot.failure is not None:
            raise SystemExit(snapshot.failure.traceback)
        if first is None and snapshot.state is RunState.RUNNING:
            first = snapshot.completed_iterations
        await pilot.pause(0.5)
    for picture in PICTURES:
        for key in picture.keys:
            pilot.app.simulate_key(key)
            await pilot.pause(0.5)
        await pilot.pause(picture.seconds)
        exported = pilot.app.export_screenshot(title="ppo-tui")
        path = folder / f"{picture.name}.svg"
        path.write_text(FONT_FROM_THE_WEB.sub("", exported), encoding="utf-8")
        pilot.app.simulate_key("escape")
        await pilot.pause(0.2)
    session.command(Command.STOP_NOW)
    session.join()
    pilot.app.exit(0)


if __name__ == "__main__":
    main()
