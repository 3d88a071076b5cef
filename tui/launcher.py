"""A small process in front of the program, so that a training can leave its terminal.

A shell waits for the process it started; no process can hand a terminal back and go on. So the
full-screen commands run in a child, forked before anything heavy is imported, and the process that
the shell knows only waits for it. That one parent makes three things simple:

- *Detaching*: the child leaves the session of the terminal, and the parent ends. The training
  thread notices nothing, as it stays in the process where it began.
- *Ctrl-Z*: the child gives the screen back and the parent alone is stopped. The shell sees its job
  stopped and `fg` brings it back, while the training goes on.
- *Exit codes*: the parent ends as the child does, by the same code or the same signal.

The two speak in signals: there is nothing between them that could fill up, or be left over.
The alternative, training in a separate process from the start with the dashboard as its first
watcher, would send every picture through a socket, even where nobody ever detaches.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import time
from typing import NoReturn

DETACHED = signal.SIGUSR1
"""From the child: it trains on without the terminal; the parent ends with 0."""
GIVEN_BACK = signal.SIGUSR2
"""From the child: the screen is given back; the parent stops."""
KILLED = """\
ppo-tui was killed: by the system, where memory ran out, or by hand. A run keeps its last
checkpoint:
  ppo-tui watch latest          how far it came
  ppo-tui run --resume latest   goes on"""
"""What is said where the child could not."""
REPAIR_TIME = 0.3
"""Seconds in which its guard puts the terminal in order; see `tui.driver`."""
FROM_KERNEL = 0x80
"""`si_code` of a signal that the terminal made; it reached the child as well."""

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)
AWAITED = (*PASSED_ON, DETACHED, GIVEN_BACK, signal.SIGCHLD)


class Launcher:
    """The child's view of its parent.

    Args:
        pid: the parent's number.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid

    @property
    def is_gone(self) -> bool:
        """Whether the parent has died; only SIGKILL does that while the child lives."""
        return os.getppid() != self._pid

    def detach(self) -> None:
        """Leave the terminal's session and let the parent end: the shell goes on."""
        os.setsid()
        self._signal(DETACHED)

    def leave_session(self) -> None:
        """Leave the terminal's session, whose end would send signals; the parent waits on."""
        os.setsid()

    def give_back(self) -> None:
        """Have the parent stopped, so that the shell takes the terminal; SIGCONT follows."""
        self._signal(GIVEN_BACK)

    def _signal(self, number: signal.Signals) -> None:
        if not self.is_gone:
            os.kill(self._pid, number)


def launch() -> Launcher:
    """Go on in a child; the parent waits for it and ends as it does. Call it before any thread."""
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    parent = os.getpid()
    child = os.fork()
    if child:
        _wait_for(child)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)
    return Launcher(parent)


def _wait_for(child: int) -> NoReturn:
    while True:
        received = signal.sigwaitinfo(AWAITED)
        match received.si_signo:
            case signal.SIGCHLD:
                pid, status = os.waitpid(child, os.WNOHANG)
                if pid:
                    _end_like(status)
            case number if number == DETACHED and received.si_pid == child:
                os._exit(0)
            case number if number == GIVEN_BACK and received.si_pid == child:
                if _may_stop():
                    os.kill(os.getpid(), signal.SIGSTOP)  # `fg` and `bg` go on here
                os.kill(child, signal.SIGCONT)
            case number if received.si_code != FROM_KERNEL:
                os.kill(child, number)


def _may_stop() -> bool:
    """Whether a shell with job control is there to start this process again."""
    parent = os.getppid()
    try:
        return os.getsid(parent) == os.getsid(0) and os.getpgid(parent) != os.getpgrp()
    except OSError:
        return False


def _end_like(status: int) -> NoReturn:
    """End with the child's exit code, or by the signal that ended it."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGKILL:
            time.sleep(REPAIR_TIME)
            with contextlib.suppress(OSError, ValueError):
                print(KILLED, file=sys.stderr, flush=True)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child has dumped its own
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
