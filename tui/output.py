"""The standard streams: what becomes of output that nobody takes, or nobody can."""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TextIO

from tui.exit_codes import FAILED

READER_GONE = 128 + signal.SIGPIPE
"""What a shell says of a program whose reader left, as `head` does."""

_WHY = {errno.EBADF: "it is closed"}


class OutputError(OSError):
    """Standard output cannot be written; `cause` is what the system said.

    It has no `errno` of its own: typer would take a broken pipe for a failure of the command.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(_WHY.get(cause.errno or 0, cause.strerror or str(cause)))
        self.cause = cause


class _Output(io.FileIO):
    """Standard output. From its first failure on it leads nowhere, and the main thread is told.

    No other thread is: what a person's own terms print there must end no training.
    """

    _untold: OSError | None = None

    def write(self, data: bytes) -> int | None:
        """Write what the system takes."""
        try:
            written = super().write(data)
        except OSError as error:
            _lead_nowhere(self.fileno())
            self._untold, written = error, len(data)
        if self._untold is not None and threading.current_thread() is threading.main_thread():
            error, self._untold = self._untold, None
            raise OutputError(error)
        return written


class _Errors(io.FileIO):
    """Standard error. Where it cannot be written there is nobody who could be told."""

    def write(self, data: bytes) -> int | None:
        """Write what the system takes."""
        try:
            return super().write(data)
        except OSError:
            return len(data)


@contextlib.contextmanager
def standard_streams() -> Iterator[None]:
    """Run a command on streams that may be closed, full, or without a reader; then leave.

    A crash below Python, in a library's own code, is told on standard error with the place of every
    thread; under a dashboard that is the run's log.

    Output that was lost gives a command that did well exit code 1 and a sentence; or 141 and no
    word where its reader has left, as that is no fault. A command that failed keeps its code.
    """
    _occupy_descriptors()
    output = _opened(_Output(1, "w", closefd=False), sys.stdout)
    sys.stdout = sys.__stdout__ = output
    errors = _opened(_Errors(2, "w", closefd=False), sys.stderr)
    sys.stderr = sys.__stderr__ = errors
    faulthandler.enable(2)
    code, lost = None, None
    try:
        yield
    except SystemExit as leaving:
        code = leaving.code
    except OutputError as error:
        lost = error
    try:
        output.flush()
    except OutputError as error:
        lost = lost or error
    if lost is not None and not code:
        code = _tell(lost)
    sys.exit(code)


def is_reader_gone(error: OSError) -> bool:
    """Whether output was lost because nobody reads it any more."""
    cause = error.cause if isinstance(error, OutputError) else error
    return cause.errno == errno.EPIPE


def _tell(lost: OutputError) -> int:
    """Say why output was lost; returns the exit code."""
    if is_reader_gone(lost):
        return READER_GONE
    print(f"standard output cannot be written: {lost}", file=sys.stderr)
    return FAILED


def _occupy_descriptors() -> None:
    """Give closed ones of 0, 1 and 2 away, lest the next file opened, such as a log, be one."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # takes the lowest; to write there fails as before
    if sys.stdin is None:
        sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115


def _opened(raw: io.FileIO, like: TextIO | None) -> io.TextIOWrapper:
    """A stream of text like Python's own, in which no character is refused."""
    at_once = isinstance(like, io.TextIOWrapper) and (like.line_buffering or like.write_through)
    encoding = "utf-8" if like is None else like.encoding
    buffer = io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, encoding, "backslashreplace", line_buffering=at_once)


def _lead_nowhere(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
