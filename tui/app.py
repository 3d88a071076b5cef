"""The full-screen program: one app that shows the menu, then a run, and leaves the terminal clean.

The session trains in its own thread and never hears of this module. A timer reads its newest
snapshot a few times a second, and more often just after a key so that the answer is seen at once.

The terminal can go at any time: lost with its connection, given back with `d`, or lent to the shell
with ctrl+z. The training notices none of it, see `tui.detached` and `tui.launcher`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, ClassVar, Protocol

from textual.binding import Binding, BindingType
from textual.screen import Screen

from trainer.control import Request
from trainer.telemetry import Command, Snapshot
from tui import detached, exit_codes
from tui.driver import TerminalDriver
from tui.farewell import farewell
from tui.frames import Frame, Frames
from tui.launcher import Launcher
from tui.lending import LendingApp
from tui.remembered import Remembered

if TYPE_CHECKING:
    from tui.screens.dashboard import DashboardScreen

HURRY = (0.02, 0.5)
"""After a key: seconds between two looks at the session, and for how long."""

PATIENCE = 15.0
"""Seconds without a sign of life after which a stopping session is left behind."""

LARGE_FRAME = 120 * 40
"""Cells above which a remote terminal gets at most two frames a second."""

SAME_SIGNAL = 1.0
"""Seconds within which a signal that comes twice is one: sent to the process and to its group."""


class Departure(Enum):
    """Why the screen goes while the training stays."""

    LOST = "terminal lost"
    DETACHED = "detached"


class RunnableSession(detached.DetachableSession, Protocol):
    """A session that this process starts and waits for."""

    def start(self) -> None:
        """Begin in a thread of its own."""
        ...


class DashboardApp(LendingApp):
    """Shows a session, or first a menu to choose one; its result is the exit code.

    Args:
        session: what to show. It is started once the screen is there.
        menu: makes the screen to start with where there is no session yet.
        fps: looks at the session in a second.
        launcher: the process that can give the terminal back to a shell, if there is one.
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
        Binding("ctrl+z", "lend_terminal", "To the shell", show=False, priority=True),
    ]

    def __init__(
        self,
        session: RunnableSession | None = None,
        *,
        menu: Callable[[], Screen[None]] | None = None,
        fps: float = 4.0,
        launcher: Launcher | None = None,
    ) -> None:
        super().__init__(launcher)
        self.session: RunnableSession | None = None
        self.gave_up = False
        """Whether the session was left behind, still busy."""
        self.departure: Departure | None = None
        """Why there is no screen any more, though the session goes on."""
        self.serving = ExitStack()
        """Holds the session open to other terminals; outlives the screen."""
        self._first_session = session
        self._menu = menu
        self._fps = fps
        self._dashboard: DashboardScreen | None = None
        self._is_started = False
        self._last_seq = -1
        self._sign_of_life = 0.0
        self._leaving = False
        self._has_hung_up = False
        self._signal_code = 0
        self._signal_time = 0.0
        self._hurry_until = 0.0
        self._frames = Frames()

    @property
    def exit_code(self) -> int:
        """What the process should end with as things stand."""
        ended_with = 0 if self.session is None else exit_codes.exit_code(self.session.snapshot())
        return self._signal_code or ended_with

    # The session.

    def on_mount(self) -> None:
        """Show the first screen and begin to look at the session."""
        self._listen_to_signals()
        self.set_interval(1 / self._frame_rate(), self._look)
        self._hurry_timer = self.set_interval(HURRY[0], self._look_again, pause=True)
        if self._first_session is not None:
            self.open_session(self._first_session)
        elif self._menu is not None:
            self.push_screen(self._menu())

    def open_session(self, session: RunnableSession) -> None:
        """Show the dashboard, then start the session."""
        self.session = session
        self._dashboard = self.make_dashboard(session)
        self._sign_of_life = time.monotonic()
        self.push_screen(self._dashboard)
        self.call_after_refresh(self.start_session)

    def start_session(self) -> None:
        """Start the session, once."""
        if self.session is not None and not self._is_started:
            self._is_started = True
            self.serving.enter_context(self.serve(self.session))
            self.session.start()

    def make_dashboard(self, session: RunnableSession) -> DashboardScreen:
        """Return the screen that shows a session."""
        from tui.screens.dashboard import DashboardScreen  # imports numpy

        return DashboardScreen(session)

    def serve(self, session: RunnableSession) -> AbstractContextManager[None]:
        """Open the session to other terminals, if it is kept anywhere."""
        return detached.served(session) if hasattr(session, "run_dir") else nullcontext()

    def command(self, command: Command) -> None:
        """Ask the session for something and watch closely for the answer."""
        if self.session is not None:
            self.session.command(command)
            self.hurry()

    def control(self, request: Request) -> None:
        """Ask the session for something that takes an argument, in the same way."""
        if self.session is not None:
            self.session.control(request)
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
        self.look_at_terminal()
        if self.session is None or self._dashboard is None:
            return
        snapshot = self.session.snapshot()
        if snapshot.seq != self._last_seq:
            self._last_seq = snapshot.seq
            self._sign_of_life = time.monotonic()
        if self._leaving:
            self._leave_if_over(snapshot)
        if self.terminal_is_lent or not self._dashboard.is_mounted:
            return
        if not self.terminal_is_ready:
            return
        frame = self._frames.next(snapshot.seq, is_awaited=self._is_awaited(snapshot))
        if frame is not Frame.NONE:
            self._send_output_to_log(snapshot)
            self._dashboard.show(snapshot, only_moving=frame is Frame.MOVING)

    def _is_awaited(self, snapshot: Snapshot) -> bool:
        """Whether a person waits to see it; where there is no terminal, whoever asked does."""
        assert self._dashboard is not None
        return (
            self._terminal is None
            or time.monotonic() < self._hurry_until
            or snapshot.state is not self._dashboard.snapshot.state
        )

    def _frame_rate(self) -> float:
        remote = "SSH_CONNECTION" in os.environ or "SSH_TTY" in os.environ
        large = self.size.width * self.size.height > LARGE_FRAME
        return min(self._fps, 2.0) if remote and large else self._fps

    # Leaving.

    def gathered(self) -> Remembered:
        """Return how the screen looks now, to be remembered."""
        if self._dashboard is None or not self._dashboard.is_mounted:
            return self.remembered
        from tui.screens.recalling import gather

        return gather(self._dashboard, self.remembered)

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

    def action_detach(self) -> None:
        """Give the terminal back to the shell; the training goes on without it."""
        if self.session is None or self.session.snapshot().state.is_over:
            self.action_request_quit()
        elif self.launcher is None:
            self.notify("The training cannot leave this terminal. Use tmux to look away.")
        else:
            self._depart(Departure.DETACHED)

    def _depart(self, why: Departure) -> None:
        self.departure = why
        self.exit(0)

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
        if self._terminal is None:
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)
        # Not the loop's: it would put back the default, which kills, while the screen is left.
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self._on_hangup)
        loop.add_signal_handler(signal.SIGCONT, self.take_terminal)
        if self.launcher is not None:
            loop.add_signal_handler(signal.SIGTSTP, self.action_lend_terminal)

    def _on_signal(self, number: signal.Signals) -> None:
        """Save and leave with exit code 128 + number, as shells expect; the second time at once."""
        now = time.monotonic()
        if self._signal_code and now - self._signal_time < SAME_SIGNAL:
            return
        again, self._signal_time = self._signal_code != 0, now
        self._signal_code = self._signal_code or 128 + number
        if self.session is None:
            self.exit(self.exit_code)
        elif again and self._leaving:
            self._give_up()
        else:
            self.leave(Command.STOP_NOW)

    def _on_hangup(self, number: int, frame: FrameType | None) -> None:
        self._has_hung_up = True  # seen at the next look

    @property
    def has_lost_terminal(self) -> bool:
        """Whether the terminal has hung up, by a signal or without one."""
        return self._has_hung_up or super().has_lost_terminal

    def lose_terminal(self) -> None:
        """Go on without a terminal; without a session there is nothing to go on with."""
        if self._terminal is not None:
            self._terminal.end_input()
        if self.departure is not None:
            return
        if self.session is None:
            self._signal_code = self._signal_code or 128 + signal.SIGHUP
            self.exit(self.exit_code)
        elif self.session.snapshot().state.is_over:
            self.exit(self.exit_code)
        else:
            self._depart(Departure.LOST)

    def _send_output_to_log(self, snapshot: Snapshot) -> None:
        if self._terminal is not None and snapshot.info is not None:
            self._terminal.redirect.to(Path(snapshot.info.run_dir) / "log.txt")


def run_dashboard(
    session: RunnableSession, *, fps: float = 4.0, launcher: Launcher | None = None
) -> int:
    """Train `session` under the dashboard; returns the exit code.

    0: finished or stopped by a person. 1: failed, or left behind while still busy. 3: out of
    memory.
    130, 143: ended by SIGINT or SIGTERM. A terminal that is lost ends no training.
    """
    return run_app(DashboardApp(session, fps=fps, launcher=launcher))


def run_app(app: DashboardApp) -> int:
    """Run an app, and what is left to do after it; returns the exit code."""
    with app.serving:
        return _run(app)


def _run(app: DashboardApp) -> int:
    result = app.run(mouse=False)  # the terminal's own selection of text goes on working
    if app.departure is not None and app.session is not None:
        app.start_session()  # if it was about to
        if (terminal := app._terminal) is not None:
            terminal.let_go()
            if said := terminal.unclaimed_output.decode(errors="replace"):
                app.session.run_dir.append_log(said)
        by_hand = app.departure is Departure.DETACHED
        return detached.carry_on(app.session, app.launcher, by_hand=by_hand)
    ended = _end_session(app)
    driver = app._driver
    if isinstance(driver, TerminalDriver) and not driver.is_gone:
        sys.stderr.write(driver.unclaimed_output.decode(errors="replace"))
        if app.session is not None:
            print(farewell(app.session.snapshot(), app.session.events, ended=ended))
    if ended:
        return app.exit_code if result is not None else app.return_code or 0
    # A thread that does not end would hold the process for ever.
    app.serving.close()
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
