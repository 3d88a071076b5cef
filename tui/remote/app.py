"""The dashboard over a run of another process, or over a recorded one: leaving ends nothing."""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from trainer.control import Request
from trainer.recording import Recording
from trainer.telemetry import Command
from tui.app import DashboardApp, RunnableSession
from tui.detached import watch_command
from tui.farewell import farewell
from tui.launcher import Launcher
from tui.remote.session import RemoteSession

if TYPE_CHECKING:
    from tui.screens.dashboard import DashboardScreen


class WatchApp(DashboardApp):
    """Shows a session that it does not own.

    Args:
        session: of another process, or recorded.
        launcher: the process that can lend the terminal to a shell, if there is one.
    """

    session: RemoteSession | Recording | None

    def __init__(
        self, session: RemoteSession | Recording, *, launcher: Launcher | None = None
    ) -> None:
        super().__init__(session, launcher=launcher)

    @property
    def exit_code(self) -> int:
        """0, or the signal that ended it: how the run ends is not this program's to say."""
        return self._signal_code

    def make_dashboard(self, session: RunnableSession) -> DashboardScreen:
        """Return the screen that shows a session; a recorded one has a time slider."""
        from tui.screens.replay import ReplayScreen

        if isinstance(session, Recording):
            return ReplayScreen(session)
        return super().make_dashboard(session)

    def serve(self, session: RunnableSession) -> AbstractContextManager[None]:
        """Open nothing: the run's own process does."""
        return nullcontext()

    def command(self, command: Command) -> None:
        """Pass a command on, or say that this window gives none."""
        if not self._refuses():
            super().command(command)

    def control(self, request: Request) -> None:
        """Pass a request on, or say that this window makes none."""
        if not self._refuses():
            super().control(request)

    def _refuses(self) -> bool:
        """Whether nothing may be changed from here; says so."""
        refuses = isinstance(self.session, RemoteSession) and self.session.only_reads
        if refuses:
            self.notify("This window only looks: it was opened with --read-only.")
        return refuses

    def action_request_quit(self) -> None:
        """Ask what is to become of the run, where that is this person's to decide."""
        if isinstance(self.session, RemoteSession) and not self.session.only_reads:
            super().action_request_quit()
        else:
            self.exit(self.exit_code)

    def action_detach(self) -> None:
        """Leave; the run goes on."""
        self.exit(self.exit_code)

    def _give_up(self) -> None:
        self.exit(self.exit_code)

    def _on_signal(self, number: signal.Signals) -> None:
        """Leave with exit code 128 + number; the run goes on."""
        self._signal_code = self._signal_code or 128 + number
        self.exit(self.exit_code)

    def lose_terminal(self) -> None:
        """Leave: there is nobody to show anything to."""
        if self._terminal is not None:
            self._terminal.end_input()
        self._on_signal(signal.SIGHUP)


def run_watch(session: RemoteSession | Recording, launcher: Launcher | None = None) -> int:
    """Show a session until a person leaves; returns the exit code."""
    app = WatchApp(session, launcher=launcher)
    result = app.run(mouse=False)
    terminal = app._terminal
    if terminal is not None and not terminal.is_gone:
        snapshot = session.snapshot()
        if snapshot.state.is_over:
            print(farewell(snapshot, session.events, ended=True))
        else:
            print(f"the run goes on\n  to watch it    {watch_command(session.run_dir.path)}")
    if isinstance(session, RemoteSession):
        session.close()
    return app.exit_code if result is not None else app.return_code or 0
