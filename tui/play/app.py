"""The full-screen program that plays a trained policy."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.commands.refusing import BAD_INPUT
from tui.draw.spans import printable
from tui.driver import TerminalDriver
from tui.looks import LooksApp
from tui.play.performance import Frame, Performance
from tui.play.screen import PlayScreen

FRAMES_PER_SECOND = 15.0
"""Looks at the performance; how many of them are sent depends on the terminal."""

NEAR_BYTES_PER_CELL = 15.0
"""Bytes a second for each cell where the terminal is near: motion is what there is to see."""

PATIENCE = 5.0
"""Seconds to wait for the thread's end."""


class PlayApp(LooksApp[int]):
    """Shows a performance until a person has seen enough; its result is the exit code.

    Args:
        performance: what plays; started once the screen is there.
        names: preset, run and checkpoint.
    """

    TITLE = "ppo-tui"
    CSS = "PlayApp.-ascii HelpScreen #page { border: ascii $primary !important; }"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q,ctrl+c", "quit", "Quit", show=False, priority=True),
        Binding("ctrl+z", "explain_suspend", show=False, priority=True),
    ]

    def __init__(self, performance: Performance, names: Sequence[str]) -> None:
        super().__init__()
        if "SSH_CONNECTION" not in os.environ and "SSH_TTY" not in os.environ:
            self.bytes_per_cell = NEAR_BYTES_PER_CELL
        self._performance = performance
        self._screen = PlayScreen(performance, names)
        self._shown = -1

    def on_mount(self) -> None:
        """Show the screen and begin to look."""
        if isinstance(self._driver, TerminalDriver):
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                loop.add_signal_handler(number, self.exit, 128 + number)
        self.push_screen(self._screen)
        self.set_interval(1 / FRAMES_PER_SECOND, self._look)
        self.call_after_refresh(self._performance.start)

    def _look(self) -> None:
        """Show the newest frame if there is a newer one, and leave when it is time."""
        driver = self._driver
        if isinstance(driver, TerminalDriver) and driver.is_gone:
            self.exit(128 + signal.SIGHUP)
            return
        frame = self._performance.frame
        if frame.failure:
            self.exit(exit_code(frame))
        elif frame.seq != self._shown and self._screen.is_mounted:
            self._shown = frame.seq
            self._screen.show(frame)

    async def action_quit(self) -> None:
        """Leave."""
        self.exit(0)

    def action_explain_suspend(self) -> None:
        """Say why ctrl+z does nothing."""
        self.notify("ctrl+z is off here: q leaves, and playing again starts at once.")


def exit_code(frame: Frame) -> int:
    """What the process should end with: 1 for a failure, 2 where a person can put it right."""
    if not frame.failure:
        return 0
    return 1 if frame.traceback else BAD_INPUT


def run_play(performance: Performance, names: Sequence[str]) -> int:
    """Play on the screen; returns the exit code."""
    app = PlayApp(performance, names)
    result = app.run(mouse=False)  # the terminal's own selection of text goes on working
    performance.stop(PATIENCE)
    frame, driver = performance.frame, app._driver
    if isinstance(driver, TerminalDriver) and not driver.is_gone:
        sys.stderr.write(driver.unclaimed_output.decode(errors="replace"))
        if frame.failure:
            print(printable(frame.traceback or frame.failure), file=sys.stderr)
        elif frame.episodes:
            print(f"{frame.episodes} episodes, {frame.falls} falls, {frame.seconds:.0f} s played")
    return result if result is not None else app.return_code or 0
