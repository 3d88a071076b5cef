"""An app whose terminal a shell may have for a while, and that may lose it."""

from __future__ import annotations

from textual import events

from tui.driver import TerminalDriver
from tui.launcher import Launcher
from tui.looks import LooksApp


class LendingApp(LooksApp[int]):
    """Lends its terminal with ctrl+z and takes it back; says when it is lost.

    Args:
        launcher: the process that a shell can stop in place of this one, if there is one.
    """

    frame_interval = 0.2

    def __init__(self, launcher: Launcher | None) -> None:
        super().__init__()
        self.launcher = launcher
        self.terminal_is_lent = False
        """Whether a shell has it; nothing is drawn then."""
        self._was_behind_others = False

    @property
    def has_lost_terminal(self) -> bool:
        """Whether there is no terminal any more, or nobody who could wait in it."""
        launcher_gone = self.launcher is not None and self.launcher.is_gone
        return launcher_gone or (self._terminal is not None and self._terminal.is_gone)

    def lose_terminal(self) -> None:
        """Do without the terminal from now on."""
        raise NotImplementedError

    def on_resize(self, event: events.Resize) -> None:
        """Paint all of the terminal: it may have moved what it showed."""
        if self._picture is not None:
            self._picture.forget()

    def action_lend_terminal(self) -> None:
        """Give the terminal to the shell until `fg`; the training goes on meanwhile."""
        driver = self._terminal
        if driver is None or self.launcher is None:
            self.notify("ctrl+z is off: it would stop the training too. Use tmux to look away.")
        elif not self.terminal_is_lent:
            self.terminal_is_lent = True
            driver.suspend()
            self.launcher.give_back()

    def take_terminal(self) -> None:
        """Show the screen again, if the shell has lent the terminal back."""
        driver = self._terminal
        if driver is None or driver.is_behind_others:
            return
        if not self.terminal_is_lent:  # all of the process was stopped
            driver.suspend()
        self.terminal_is_lent = False
        driver.reenter()
        self.paint_all()

    def look_at_terminal(self) -> None:
        """Notice whether it is lost, or another job's, or this one's again. Call it often."""
        driver = self._terminal
        if driver is None:
            return
        if self.has_lost_terminal:
            self.lose_terminal()
        elif self.terminal_is_lent:
            self._look_for_the_foreground(driver)
        elif driver.is_behind_others:  # the launcher was stopped, and a shell took the terminal
            self.terminal_is_lent = True
            self._was_behind_others = True
            driver.suspend()

    def _look_for_the_foreground(self, driver: TerminalDriver) -> None:
        """Come back when a job that went on in the background is brought to the front."""
        if driver.is_behind_others:
            self._was_behind_others = True
        elif self._was_behind_others:
            self._was_behind_others = False
            self.take_terminal()

    @property
    def terminal_is_ready(self) -> bool:
        """Whether the terminal has shown what it was given."""
        return self._terminal is None or self._terminal.is_ready
