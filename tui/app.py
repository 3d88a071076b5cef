"""The full-screen program: one app that shows the menu, then a run, and leaves the terminal clean.

The session trains in its own thread and never hears of this module. A timer reads its newest
snapshot a few times a second, and more often just after a key so that the answer is seen at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from trainer.telemetry import Command, SessionView, Snapshot
from tui.draw.spans import Charset
from tui.driver import TerminalDriver
from tui.farewell import farewell
from tui.theme import DARK, LIGHT, default_charset, default_theme

if TYPE_CHECKING:
    from presets.schema import Preset
    from tui.screens.dashboard import DashboardScreen
    from tui.screens.preset_text import Sizes

HURRY = (0.02, 0.5)
"""After a key: seconds between two looks at the session, and for how long."""

PATIENCE = 15.0
"""Seconds without a sign of life after which a stopping session is left behind."""

LARGE_FRAME = 120 * 40
"""Cells above which a remote terminal gets at most two frames a second."""


class RunnableSession(SessionView, Protocol):
    """A session that this process starts and waits for."""

    def start(self) -> None:
        """Begin in a thread of its own."""
        ...

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; returns whether it has come."""
        ...


class DashboardApp(App[int]):
    """Shows a session, or first a menu to choose one; its result is the exit code.

    Args:
        session: what to show. It is started once the screen is there.
        menu: makes the screen to start with where there is no session yet.
        fps: looks at the session in a second.
    """

    TITLE = "ppo-tui"
    CSS = """
    DashboardApp.-ascii #left, DashboardApp.-ascii #right, DashboardApp.-ascii #dialog,
    DashboardApp.-ascii HelpScreen #page, DashboardApp.-ascii OutputTail {
        border: ascii $primary !important;
    }
    DashboardApp.-ascii DashboardScreen.-middle #overview-rollout,
    DashboardApp.-ascii DashboardScreen.-high #overview-rollout {
        border: ascii $foreground 25% !important;
    }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "request_quit", "Quit", show=False, priority=True),
        Binding("ctrl+c", "request_quit", "Quit", show=False, priority=True),
        Binding("ctrl+z", "explain_suspend", show=False, priority=True),
    ]

    def __init__(
        self,
        session: RunnableSession | None = None,
        *,
        menu: Callable[[], Screen[None]] | None = None,
        fps: float = 4.0,
    ) -> None:
        super().__init__(driver_class=TerminalDriver)
        self.session: RunnableSession | None = None
        self.gave_up = False
        """Whether the session was left behind, still busy."""
        self.charset = default_charset()
        """What every panel draws with."""
        self._first_session = session
        self._menu = menu
        self._fps = fps
        self._dashboard: DashboardScreen | None = None
        self._shown_seq = -1
        self._last_seq = -1
        self._sign_of_life = 0.0
        self._leaving = False
        self._signal_code = 0
        self._hurry_until = 0.0
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        wanted = default_theme()
        self.theme = "textual-dark"  # a theme named by TEXTUAL_THEME counts only when it changes
        self.theme = wanted if wanted in self.available_themes else DARK.name

    @property
    def exit_code(self) -> int:
        """What the process should end with as things stand."""
        failed = self.session is not None and self.session.snapshot().failure is not None
        return self._signal_code or int(failed)

    # The session.

    def on_mount(self) -> None:
        """Show the first screen and begin to look at the session."""
        self.set_class(self.charset is Charset.ASCII, "-ascii")
        self._listen_to_signals()
        self.set_interval(1 / self._frame_rate(), self._look)
        self._hurry_timer = self.set_interval(HURRY[0], self._look_again, pause=True)
        if self._first_session is not None:
            self.open_session(self._first_session)
        elif self._menu is not None:
            self.push_screen(self._menu())

    def open_session(self, session: RunnableSession) -> None:
        """Show the dashboard, then start the session."""
        from tui.screens.dashboard import DashboardScreen  # imports numpy

        self.session = session
        self._dashboard = DashboardScreen(session)
        self._sign_of_life = time.monotonic()
        self.push_screen(self._dashboard)
        self.call_after_refresh(session.start)

    def command(self, command: Command) -> None:
        """Ask the session for something and watch closely for the answer."""
        if self.session is not None:
            self.session.command(command)
            self.hurry()

    def hurry(self) -> None:
        """Look at the session often for a moment."""
        self._hurry_until = time.monotonic() + HURRY[1]
        self._hurry_timer.resume()

    def _look_again(self) -> None:
        if time.monotonic() > self._hurry_until:
            self._hurry_timer.pause()
        self._look()

    def _look(self) -> None:
        """Show the newest snapshot if there is a newer one, and leave when it is time."""
        self._notice_lost_terminal()
        if self.session is None or self._dashboard is None:
            return
        snapshot = self.session.snapshot()
        if snapshot.seq != self._last_seq:
            self._last_seq = snapshot.seq
            self._sign_of_life = time.monotonic()
        if self._leaving:
            self._leave_if_over(snapshot)
        if snapshot.seq != self._shown_seq and self._dashboard.is_mounted and not self._is_behind():
            self._shown_seq = snapshot.seq
            self._send_output_to_log(snapshot)
            self._dashboard.show(snapshot)

    def _frame_rate(self) -> float:
        remote = "SSH_CONNECTION" in os.environ or "SSH_TTY" in os.environ
        large = self.size.width * self.size.height > LARGE_FRAME
        return min(self._fps, 2.0) if remote and large else self._fps

    # Leaving.

    def action_request_quit(self) -> None:
        """Ask how to end a run that goes on; asked again, stop now; and again, leave at once."""
        from tui.screens.quit import QuitScreen

        if self.session is None:
            self.exit(0)
        elif self.session.snapshot().state.is_over:
            self.exit(self.exit_code)
        elif self._leaving:
            self._give_up()
        elif isinstance(self.screen, QuitScreen):
            self.screen.dismiss(Command.STOP_NOW)
        else:
            self.push_screen(QuitScreen(), self.leave)

    def action_explain_suspend(self) -> None:
        """Say why ctrl+z does nothing."""
        self.notify("ctrl+z is off: it would stop the training too. Use tmux to look away.")

    def leave(self, command: Command | None) -> None:
        """Give the session its last command and leave when it is over; None stays."""
        if command is None or self.session is None:
            return
        self._leaving = True
        self._sign_of_life = time.monotonic()
        self.command(command)
        if self._dashboard is not None:
            self._dashboard.leaving = True

    def _leave_if_over(self, snapshot: Snapshot) -> None:
        if snapshot.state.is_over:
            self.exit(self.exit_code)
        elif time.monotonic() - self._sign_of_life > PATIENCE:
            self._give_up()

    def _give_up(self) -> None:
        self.gave_up = True
        self.exit(self.exit_code)

    # Signals, and terminals that go away.

    def _listen_to_signals(self) -> None:
        if not isinstance(self._driver, TerminalDriver):
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)
        loop.add_signal_handler(signal.SIGCONT, self._on_continue)

    def _on_signal(self, number: signal.Signals) -> None:
        """Save and leave with exit code 128 + number, as shells expect; the second time at once."""
        again = self._signal_code != 0
        self._signal_code = self._signal_code or 128 + number
        if number is signal.SIGHUP and isinstance(self._driver, TerminalDriver):
            self._driver.end_input()
        if self.session is None:
            self.exit(self.exit_code)
        elif again and self._leaving:
            self._give_up()
        else:
            self.leave(Command.STOP_NOW)

    def _on_continue(self) -> None:
        if isinstance(self._driver, TerminalDriver):
            self._driver.reenter()
            self.refresh(layout=True)

    def _notice_lost_terminal(self) -> None:
        lost = isinstance(self._driver, TerminalDriver) and self._driver.is_gone
        if lost and not self._signal_code:
            self._on_signal(signal.SIGHUP)

    def _is_behind(self) -> bool:
        return isinstance(self._driver, TerminalDriver) and self._driver.is_behind

    def _send_output_to_log(self, snapshot: Snapshot) -> None:
        if isinstance(self._driver, TerminalDriver) and snapshot.info is not None:
            self._driver.redirect.to(Path(snapshot.info.run_dir) / "log.txt")


def run_dashboard(session: RunnableSession, *, fps: float = 4.0) -> int:
    """Train `session` under the dashboard; returns the exit code.

    0: finished or stopped by a person. 1: failed, or left behind while still busy.
    129, 130, 143: ended by SIGHUP, SIGINT or SIGTERM.
    """
    return _run(DashboardApp(session, fps=fps))


def run_menu(*, device: str = "auto", fps: float = 4.0) -> int:
    """Let a person choose a preset, then train it under the dashboard; returns the exit code.

    Args:
        device: one of `presets.build.DEVICES`.
        fps: looks at the session in a second.
    """
    from presets import build, files, loader, shapes
    from tui.screens.menu import MenuScreen
    from tui.screens.preset_text import Sizes

    chosen = build.resolve_device(device)
    device_name = f"{chosen.name}: {chosen.note}" if chosen.note else chosen.name

    def load(name: str, settings: Sequence[str]) -> tuple[Preset, Sizes]:
        preset = loader.load(name, settings, chosen.kind).preset
        widths = shapes.observation_widths(preset.env)
        return preset, Sizes(shapes.num_actions(preset.env), widths)

    def start(name: str, settings: Sequence[str]) -> None:
        resolved = loader.load(name, settings, chosen.kind)
        app.open_session(build.new_session(resolved, chosen))

    app = DashboardApp(menu=lambda: MenuScreen(files.names(), load, start, device_name), fps=fps)
    return _run(app)


def _run(app: DashboardApp) -> int:
    result = app.run(mouse=False)  # the terminal's own selection of text goes on working
    ended = _end_session(app)
    driver = app._driver
    if isinstance(driver, TerminalDriver) and not driver.is_gone:
        sys.stderr.write(driver.unclaimed_output.decode(errors="replace"))
        if app.session is not None:
            print(farewell(app.session.snapshot(), app.session.events, ended=ended))
    if ended:
        return app.exit_code if result is not None else app.return_code or 0
    # A thread that does not end would hold the process for ever.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(app.exit_code or 1)


def _end_session(app: DashboardApp) -> bool:
    """Wait for the session's thread; returns whether it has ended."""
    if app.session is None:
        return True
    if app.gave_up:
        return app.session.join(0.1)
    if not app.session.snapshot().state.is_over:  # the screen failed, not the training
        app.session.command(Command.STOP_NOW)
    return app.session.join(PATIENCE)
