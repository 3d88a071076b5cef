"""What the menu opens: a new run, one of the past to go on with, to watch, or to play."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tui.app import DashboardApp, run_app
from tui.launcher import Launcher

if TYPE_CHECKING:
    from presets.schema import Preset
    from trainer.summary import RunSummary
    from tui.screens.preset_text import Sizes

NEWEST = 30
"""Runs that the menu lists."""


def run_menu(*, device: str = "auto", fps: float = 4.0, launcher: Launcher | None = None) -> int:
    """Let a person choose what to do, then do it; returns the exit code.

    Args:
        device: one of `presets.build.DEVICES`.
        fps: looks at a session in a second.
        launcher: the process that can give the terminal back to a shell, if there is one.
    """
    opening = Opening(device, fps, launcher)
    code = run_app(opening.app)
    return code if opening.next is None else opening.next()


class Opening:
    """The menu with all that its keys lead to.

    Args:
        device: one of `presets.build.DEVICES`.
        fps: looks at a session in a second.
        launcher: the process that can give the terminal back to a shell, if there is one.
    """

    def __init__(self, device: str, fps: float, launcher: Launcher | None) -> None:
        from presets import build, files
        from tui.screens.menu import MenuScreen, PastRuns

        self._device = build.resolve_device(device)
        self._launcher = launcher
        self.next: Callable[[], int] | None = None
        """What is to follow when the menu has gone."""
        note = self._device.note
        name = f"{self._device.name}: {note}" if note else self._device.name
        found = files.files()
        self.app = DashboardApp(
            menu=lambda: MenuScreen(
                [file.name for file in found],
                self._load,
                self._start,
                name,
                PastRuns(newest_runs, self._resume, self._watch, self._play),
                [file.name for file in found if not file.is_ours],
            ),
            fps=fps,
            launcher=launcher,
        )

    def _load(self, name: str, settings: Sequence[str]) -> tuple[Preset, Sizes]:
        from presets import loader, shapes
        from tui.screens.preset_text import Sizes

        preset = loader.load(name, settings, self._device.kind).preset
        widths = shapes.observation_widths(preset.env)
        return preset, Sizes(shapes.num_actions(preset.env), widths)

    def _start(self, name: str, settings: Sequence[str]) -> None:
        from presets import build, loader

        resolved = loader.load(name, settings, self._device.kind)
        self.app.open_session(build.new_session(resolved, self._device))

    def _resume(self, run: RunSummary) -> Callable[[], None]:
        from presets.resume import resumed_session  # imports torch
        from tui.screens.run_text import more_iterations

        session = resumed_session(
            str(run.folder / "config.toml"),
            str(run.folder),
            self._device,
            flags={"--iterations": more_iterations(run)},
        )
        return lambda: self.app.open_session(session)

    def _watch(self, run: RunSummary) -> None:
        def watch() -> int:
            from trainer.recording import Recording
            from tui.commands.watch import attached
            from tui.remote.app import run_watch

            session = attached(run.folder, read_only=False)
            return run_watch(session or Recording(run.folder), self._launcher)

        self._leave_for(watch)

    def _play(self, run: RunSummary) -> None:
        def play() -> int:
            from tui.commands.play import play as command

            command(str(run.folder))
            return 0

        self._leave_for(play)

    def _leave_for(self, following: Callable[[], int]) -> None:
        self.next = following
        self.app.exit(0)


def newest_runs() -> list[RunSummary]:
    """Read the newest runs under `runs/`."""
    from presets.runs import runs
    from trainer.summary import summarize_run

    return [summarize_run(folder) for folder in runs()[:NEWEST]]
