"""The terminal: a private way to the screen that no library writes to, and that is given back.

Libraries print past Python, straight to file descriptors 1 and 2, some ask questions at 0, and
terminals vanish in the middle of a run. The driver therefore draws and reads keys on copies of the
terminal's descriptors while 1 and 2 lead to a log and 0 holds nothing to read. It takes a lost
terminal for the end of output rather than for an error, and leaves a guard outside the process
that repairs the terminal even when the process is killed.
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
import time
from codecs import getincrementaldecoder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual._xterm_parser import XTermParser
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

ANSWER_PATIENCE = 3.0
"""Seconds after which a terminal that has not said that it shows a frame gets the next one."""

INPUT_PATIENCE = 0.1
"""Seconds between two looks at whether reading keys should end."""

QUESTION, ANSWER = "\x1b[5n", "\x1b[0n"
"""What asks a terminal for its state, and what it says once all before the question is shown."""

GUARD = 'read -r farewell || { printf %b "$1"; stty "$2" <&1; }'
"""Shell of the guard: end of file without a farewell means that the process died untidily."""


class StreamRedirect:
    """File descriptors 0, 1 and 2, led away from the terminal for a while.

    Whoever reads finds the end of a file: a library that asks a question would take the keys and
    wait for ever. What is written goes to an unnamed file until `to` names a log, which then
    receives what was written so far and all that follows.
    """

    def __init__(self) -> None:
        flush_standard_streams()
        self._saved = {fd: os.dup(fd) for fd in (0, 1, 2)}
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `restore`
        self._named = False
        self._lead_to(self._spool.fileno())

    def to(self, log: Path) -> None:
        """Append to `log` from now on, starting with what was caught so far, if it can be."""
        if self._named:
            return
        flush_standard_streams()
        with contextlib.suppress(OSError), log.open("ab") as file:
            file.write(self._caught())
            file.flush()
            self._lead_to(file.fileno())
            self._named = True

    def restore(self) -> bytes:
        """Lead them back, and return what was caught while no log was named."""
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
        self.writes = 0
        """Texts that were written or swallowed."""
        self.is_gone = False
        """Whether a text was swallowed."""

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
            self.is_gone = True
        self.writes += 1

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
        self.fileno = os.dup(self.fileno)  # keys are read here
        self._terminal = self._file = TerminalFile(self._screen_fd)  # type: ignore[assignment]
        self._writes = 0
        self._input_ended = False
        self._answers = _Answers()
        self.redirect = StreamRedirect()
        self.unclaimed_output = b""
        """What was printed while no log was named; complete once the driver is closed."""
        self._guard = start_guard(self._screen_fd, self.fileno)
        self._hung_up = select.poll()
        self._hung_up.register(self._screen_fd, select.POLLHUP)
        # The stock handlers would stop the whole process and the training with it; so would
        # reading from a terminal, or changing it, while a shell has it.
        for number in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCONT, signal.SIG_DFL)

    @property
    def is_gone(self) -> bool:
        """Whether the terminal has hung up, with or without a signal."""
        hung_up = any(
            event & (select.POLLHUP | select.POLLERR | select.POLLNVAL)
            for _, event in self._hung_up.poll(0)
        )
        ended = self._input_ended and not self.is_behind_others
        return hung_up or self._terminal.is_gone or ended

    @property
    def is_behind_others(self) -> bool:
        """Whether another job has the terminal: a shell, after it was given back for a while."""
        try:
            return os.tcgetpgrp(self._screen_fd) != os.getpgrp()
        except OSError:
            return False

    @property
    def is_ready(self) -> bool:
        """Whether the terminal has taken all that it was given, and shows it, if it says so."""
        return self._writes == self._terminal.writes and not self._answers.is_awaited

    def write(self, data: str) -> None:
        """Queue `data` for the terminal; dropped when it has not read for `WRITE_PATIENCE`."""
        if self._writer_thread is None or not self._writer_thread.is_alive():
            return  # the terminal has been given back
        try:
            self._writer_thread._queue.put(data, timeout=WRITE_PATIENCE)
            self._writes += 1
        except queue.Full:
            return

    def write_frame(self, frame: str) -> None:
        """Queue a frame, and ask the terminal to say when it is shown.

        Only this measures a link from end to end: what lies between keeps seconds of output.
        """
        self.write(frame + QUESTION)
        self._answers.expect_one()

    def start_application_mode(self) -> None:
        """Enter the full-screen mode; what Python prints from now on goes to the log as well."""
        super().start_application_mode()
        for number in (signal.SIGTTIN, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        self._app.call_later(use_plain_streams)

    def reenter(self) -> None:
        """Enter the full-screen mode anew, after `suspend`."""
        self._input_ended = False
        self._answers = _Answers()
        self.start_application_mode()

    def end_input(self) -> None:
        """Stop reading keys: the terminal is gone and would only return end of file for ever."""
        self.exit_event.set()

    def run_input_thread(self) -> None:
        """Read keys until told to stop, or until the terminal has no more to give.

        The stock version takes the end of a terminal's input for silence and reads on for ever.
        """
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        keyboard = select.poll()
        keyboard.register(self.fileno, select.POLLIN)
        while not self.exit_event.is_set():
            if keyboard.poll(INPUT_PATIENCE * 1000):
                try:
                    data = os.read(self.fileno, 4096)
                except OSError:  # hung up, or read while another job has the terminal
                    data = b""
                if not data:
                    self._input_ended = True
                    return
                if text := self._answers.taken_from(decode(data)):
                    for message in parser.feed(text):
                        self.process_message(message)
            for message in parser.tick():
                self.process_message(message)

    def suspend(self) -> None:
        """Leave the full-screen mode for a while; no keys are read until `reenter`."""
        self.stop_application_mode()
        self._finish_writing()
        self.attrs_before = None

    def close(self) -> None:
        """Give the terminal back, and the standard descriptors to it."""
        self._finish_writing()
        self.unclaimed_output += self.redirect.restore()
        self._dismiss_guard()

    def let_go(self) -> None:
        """Close the private descriptors, after `close`: a terminal ends when nobody holds it."""
        os.close(self._screen_fd)
        os.close(self.fileno)

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


class _Answers:
    """What the terminal says when a frame is shown; the thread that reads keys takes it out."""

    def __init__(self) -> None:
        self._asked = 0.0
        self._is_open = False
        self._answering = False
        self._rest = ""

    @property
    def is_awaited(self) -> bool:
        """Whether a terminal that answers has not done so yet, but may be waited for."""
        patient = time.monotonic() - self._asked < ANSWER_PATIENCE
        return self._answering and self._is_open and patient

    def expect_one(self) -> None:
        """A question has been asked."""
        self._is_open = True
        self._asked = time.monotonic()

    def taken_from(self, text: str) -> str:
        """Return what the terminal sent without its answers."""
        text, self._rest = self._rest + text, ""
        if ANSWER in text:
            self._answering = True
            self._is_open = False
            text = text.replace(ANSWER, "")
        for length in (3, 2):  # an answer cut in two; a lone escape is a key
            if self._answering and text.endswith(ANSWER[:length]):
                text, self._rest = text[:-length], ANSWER[:length]
                break
        return text


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
