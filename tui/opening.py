"""What the menu opens: a new run, one of the past to go on with, to watch, or to play."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tui.app import DashboardApp, run_app
from tui.launcher import Launcher

if TYPE_CHECKING:
    from presets.schema import Preset
    from trainer.summary import RunSummary
    from tui.screens.preset_text import Sizes

NEWEST = 30
"""Runs that the menu lists."""

BY_SIGNAL = 128
"""Exit codes from here on: a signal has ended it, or the terminal is lost."""


class Seen(NamedTuple):
    """How something that the menu was left for has ended."""

    code: int
    problem: str = ""
    """Why it could not be shown."""


def run_menu(*, device: str = "auto", fps: float = 4.0, launcher: Launcher | None = None) -> int:
    """Let a person choose what to do, and do it; returns the exit code.

    Watching and playing come back to the menu, a training ends it.

    Args:
        device: one of `presets.build.DEVICES`.
        fps: looks at a session in a second.
        launcher: the process that can give the terminal back to a shell, if there is one.
    """
    opening = Opening(device, fps, launcher)
    while True:
        code = run_app(opening.app)
        if opening.next is None:
            return code
        seen = opening.next()
        if seen.code >= BY_SIGNAL:
            return seen.code
        opening.reopen(seen.problem)


class Opening:
    """The menu with all that its keys lead to.

    Args:
        device: one of `presets.build.DEVICES`.
        fps: looks at a session in a second.
        launcher: the process that can give the terminal back to a shell, if there is one.
    """

    def __init__(self, device: str, fps: float, launcher: Launcher | None) -> None:
        from presets import build

        self._choice = device
        self._device = build.resolve_device(device)
        self._fps = fps
        self._launcher = launcher
        self._left_at: Path | None = None
        self.next: Callable[[], Seen] | None = None
        """What is to follow when the menu has gone."""
        self.app = self._make_app("")

    def reopen(self, problem: str) -> None:
        """Make the menu anew, at the run that it was left for, with what went wrong there."""
        self.next = None
        self.app = self._make_app(problem)

    def _make_app(self, problem: str) -> DashboardApp:
        from presets import files
        from tui.screens.menu import MenuScreen
        from tui.screens.past_runs import PastRuns

        found, device = files.files(), self._device
        return DashboardApp(
            menu=lambda: MenuScreen(
                [file.name for file in found],
                self._load,
                self._start,
                f"{device.name}: {device.note}" if device.note else device.name,
                PastRuns(
                    newest_runs,
                    self._resume,
                    self._watch,
                    self._play,
                    machine=device.name,
                    at=self._left_at,
                    problem=problem,
                ),
                [file.name for file in found if not file.is_ours],
            ),
            fps=self._fps,
            launcher=self._launcher,
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
        from presets.build import resolve_device
        from presets.ranks import wanted_ranks
        from presets.resume import resumed_session  # imports torch
        from tui.screens.run_text import more_iterations, own_device

        info = run.info
        several = info is not None and info.world_size > 1
        ranks = wanted_ranks(info.world_size if info is not None and several else None)
        device = resolve_device(own_device(run, self._device.name) or self._choice, ranks)
        session = resumed_session(
            str(run.folder / "config.toml"),
            str(run.folder),
            device,
            flags={"--iterations": more_iterations(run)},
            own_terms=terms_of(run),
            ranks=ranks,
        )
        return lambda: self.app.open_session(session)

    def _watch(self, run: RunSummary) -> Callable[[], None]:
        from trainer.recording import Recording
        from tui.remote.app import run_watch
        from tui.remote.attaching import attached

        session = attached(run.folder) or Recording(run.folder)
        return lambda: self._leave_for(run, lambda: Seen(run_watch(session, self._launcher)))

    def _play(self, run: RunSummary) -> Callable[[], None]:
        from presets.build import Device
        from presets.trained import find_trained  # imports torch
        from tui.play.app import run_play
        from tui.play.staging import names_of, performance_of

        trained = find_trained(str(run.folder), terms_of(run))
        performance = performance_of(trained, Device("cpu"))

        def play() -> Seen:
            code = run_play(performance, names_of(trained))
            return Seen(code, performance.frame.failure)

        return lambda: self._leave_for(run, play)

    def _leave_for(self, run: RunSummary, following: Callable[[], Seen]) -> None:
        self.next = following
        self._left_at = run.folder
        self.app.exit(0)


def terms_of(run: RunSummary) -> tuple[Path, ...]:
    """A person's own files that a run was started with."""
    return () if run.info is None else tuple(map(Path, run.info.own_terms))


def newest_runs() -> list[RunSummary]:
    """Read the newest runs under `runs/`."""
    from presets.runs import runs
    from trainer.summary import summarize_run

    return [summarize_run(folder) for folder in runs()[:NEWEST]]
