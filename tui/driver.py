"""The terminal: a private way to the screen that no library writes to, and that is given back.

Libraries print past Python, straight to file descriptors 1 and 2, and terminals vanish in the
middle of a run. The driver therefore draws on a copy of the terminal's descriptor while 1 and 2
lead to a log, takes a lost terminal for the end of output rather than for an error, and leaves a
guard outside the process that repairs the terminal even when the process is killed.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from textual.app import App

RESTORE = (
    "\x1b[?2004l"  # bracketed paste off
    "\x1b[?7h"  # line wrap on
    "\x1b[?2048l"  # no reports of size
    "\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"  # mouse off
    "\x1b[<u"  # plain keys
    "\x1b[?1049l"  # leave the alternate screen
    "\x1b[?25h"  # show the cursor
    "\x1b[?1004l"  # no reports of focus
    "\x1b[0m"
)
"""What undoes all that the full-screen mode does to a terminal; harmless when it did nothing."""

WRITE_PATIENCE = 2.0
"""Seconds that a frame waits for a terminal that does not read, before it is dropped."""

GUARD = 'read -r farewell || { printf %b "$1"; stty "$2" <&1; }'
"""Shell of the guard: end of file without a farewell means that the process died untidily."""


class OutputRedirect:
    """File descriptors 1 and 2, led away from the terminal for a while.

    They lead to an unnamed file until `to` names a log, which then receives what was written so
    far and all that follows.
    """

    def __init__(self) -> None:
        flush_standard_streams()
        self._saved = {fd: os.dup(fd) for fd in (1, 2)}
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `restore`
        self._named = False
        self._lead_to(self._spool.fileno())

    def to(self, log: Path) -> None:
        """Append to `log` from now on, starting with what was caught so far."""
        if self._named:
            return
        flush_standard_streams()
        with log.open("ab") as file:
            file.write(self._caught())
            file.flush()
            self._lead_to(file.fileno())
        self._named = True

    def restore(self) -> bytes:
        """Lead 1 and 2 back, and return what was caught while no log was named."""
        if not self._saved:
            return b""
        flush_standard_streams()
        for fd, saved in self._saved.items():
            os.dup2(saved, fd)
            os.close(saved)
        self._saved = {}
        caught = b"" if self._named else self._caught()
        self._spool.close()
        return caught

    def _lead_to(self, target: int) -> None:
        for fd in (1, 2):
            os.dup2(target, fd)

    def _caught(self) -> bytes:
        self._spool.seek(0)
        return self._spool.read()


class TerminalFile:
    """The text file that the driver writes to; a terminal that is gone swallows what it gets."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        """Return the descriptor of the terminal."""
        return self._fd

    def write(self, text: str) -> None:
        """Write all of `text`, or nothing more once the terminal is gone."""
        data = memoryview(text.encode("utf-8", "replace"))
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:
            return

    def flush(self) -> None:
        """Do nothing: writes are not buffered here."""


class TerminalDriver(LinuxDriver):
    """Textual's driver on a private descriptor of the terminal."""

    def __init__(
        self,
        app: App[Any],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._screen_fd = os.dup(terminal_descriptor())
        self._file = TerminalFile(self._screen_fd)  # type: ignore[assignment]
        self.redirect = OutputRedirect()
        self.unclaimed_output = b""
        """What was printed while no log was named; complete once the driver is closed."""
        self._guard = start_guard(self._screen_fd, self.fileno)
        self._hung_up = select.poll()
        self._hung_up.register(self._screen_fd, select.POLLHUP)
        # The stock handler would stop the whole process and the training with it.
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        signal.signal(signal.SIGCONT, signal.SIG_DFL)

    @property
    def is_gone(self) -> bool:
        """Whether the terminal has hung up, with or without a signal."""
        return any(
            event & (select.POLLHUP | select.POLLERR | select.POLLNVAL)
            for _, event in self._hung_up.poll(0)
        )

    @property
    def is_behind(self) -> bool:
        """Whether the terminal has not yet read the frames it was given."""
        return self._writer_thread is not None and self._writer_thread._queue.qsize() > 4

    def write(self, data: str) -> None:
        """Queue `data` for the terminal; dropped when it has not read for `WRITE_PATIENCE`."""
        assert self._writer_thread is not None
        try:
            self._writer_thread._queue.put(data, timeout=WRITE_PATIENCE)
        except queue.Full:
            return

    def start_application_mode(self) -> None:
        """Enter the full-screen mode; what Python prints from now on goes to the log as well."""
        super().start_application_mode()
        self._app.call_later(use_plain_streams)

    def reenter(self) -> None:
        """Enter the full-screen mode anew, after the shell had the terminal for a while."""
        self.stop_application_mode()
        self._finish_writing()
        self.start_application_mode()

    def end_input(self) -> None:
        """Stop reading keys: the terminal is gone and would only return end of file for ever."""
        self.exit_event.set()

    def close(self) -> None:
        """Give the terminal back, and the descriptors 1 and 2 to it."""
        self._finish_writing()
        self.unclaimed_output += self.redirect.restore()
        self._dismiss_guard()

    def _finish_writing(self) -> None:
        """Let the last frames out, within reason."""
        if self._writer_thread is None:
            return
        try:
            self._writer_thread._queue.put(None, timeout=WRITE_PATIENCE)
        except queue.Full:
            return
        self._writer_thread.join(WRITE_PATIENCE)

    def _dismiss_guard(self) -> None:
        if self._guard is None:
            return
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self._guard.communicate(b"farewell\n", timeout=WRITE_PATIENCE)
        self._guard = None

    def _get_terminal_size(self) -> tuple[int, int]:
        # The stock version asks descriptor 1, which now leads to a log.
        try:
            size = os.get_terminal_size(self._screen_fd)
        except OSError:
            size = shutil.get_terminal_size()
        return size.columns or 80, size.lines or 24


def terminal_descriptor() -> int:
    """Return the standard descriptor that leads to the terminal, output first."""
    for fd in (1, 2, 0):
        if os.isatty(fd):
            return fd
    raise OSError("neither standard output nor standard error is a terminal")


def flush_standard_streams() -> None:
    """Write out what Python still holds for 1 and 2, so that it lands where it was meant to."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            try:
                stream.flush()
            except (OSError, ValueError):
                continue


def use_plain_streams() -> None:
    """Undo Textual's capture of `print`: 1 and 2 lead to the log, which is where prints belong."""
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__


def start_guard(screen_fd: int, keyboard_fd: int) -> subprocess.Popen[bytes] | None:
    """Start a small shell that repairs the terminal if this process dies without a farewell.

    It waits at the end of a pipe, in a session of its own so that no signal of the terminal
    reaches it. An abort, a segmentation fault or SIGKILL leaves no other chance.
    """
    try:
        modes = subprocess.run(
            ["stty", "-g"], stdin=keyboard_fd, capture_output=True, text=True, check=True
        ).stdout.strip()
        return subprocess.Popen(
            ["sh", "-c", GUARD, "sh", escaped(RESTORE), modes],
            stdin=subprocess.PIPE,
            stdout=screen_fd,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None


def escaped(text: str) -> str:
    """Write escape characters the way `printf %b` reads them."""
    return text.replace("\x1b", "\\033")
