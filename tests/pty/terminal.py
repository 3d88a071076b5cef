"""A real pseudo-terminal with a program in it, and what its screen would show."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence

import pexpect
import pyte


class Terminal:
    """Runs a program in a pseudo-terminal and draws what it writes.

    Use it as a context manager: the program is killed at the end if it still runs.
    """

    def __init__(
        self,
        command: Sequence[str],
        columns: int = 120,
        rows: int = 40,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        """Everything the program wrote."""
        self._hung_up = False
        environment = {**os.environ, "TERM": "xterm-256color", **(env or {})}
        for name in ("NO_COLOR", "SSH_CONNECTION", "SSH_TTY", "COLUMNS", "LINES"):
            if name not in (env or {}):
                environment.pop(name, None)
        self.process = pexpect.spawn(
            command[0],
            list(command[1:]),
            dimensions=(rows, columns),
            env=environment,
            cwd=os.fspath(cwd) if cwd is not None else None,
            timeout=None,
        )
        self.process.delaybeforesend = None

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.isalive():
            with contextlib.suppress(OSError):
                os.kill(self.process.pid, signal.SIGKILL)
        self.process.close(force=True)

    @property
    def program(self) -> int:
        """Number of the process behind the launcher, or of the program where it has none."""
        pid = self.process.pid
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = file.read().split()
        return int(children[0]) if children else pid

    @property
    def text(self) -> str:
        """The screen, a line a row."""
        return "\n".join(self.screen.display)

    def read(self, seconds: float = 0.0) -> None:
        """Draw what has arrived, waiting for the given time."""
        deadline = time.monotonic() + seconds
        while not self._hung_up:
            try:
                data = self.process.read_nonblocking(
                    65536, timeout=max(0.0, min(0.05, deadline - time.monotonic()))
                )
            except pexpect.TIMEOUT:
                data = b""
            except pexpect.EOF:
                return
            self.raw += data
            self._stream.feed(data)
            if not data and time.monotonic() >= deadline:
                return

    def wait_until(self, condition: Callable[[], object], timeout: float, what: str) -> float:
        """Read until a condition on the screen holds; returns the seconds it took."""
        started = time.monotonic()
        while not condition():
            if time.monotonic() - started > timeout:
                raise AssertionError(f"not within {timeout} s: {what}\n{self.text}")
            self.read(0.01)
        return time.monotonic() - started

    def wait_for(self, text: str, timeout: float = 15.0) -> float:
        """Read until the screen holds `text`."""
        return self.wait_until(lambda: text in self.text, timeout, repr(text))

    def wait_for_end(self, timeout: float = 20.0) -> int:
        """Read until the program ends; returns its exit code, negative for a signal."""
        started = time.monotonic()
        while self.process.isalive():
            if time.monotonic() - started > timeout:
                raise AssertionError(f"still running after {timeout} s\n{self.text}")
            self.read(0.02)
            time.sleep(0.01)
        self.read(0.1)
        status = self.process.exitstatus
        return status if status is not None else -self.process.signalstatus

    def send(self, keys: str) -> None:
        """Press keys."""
        self.process.send(keys)

    def kill(self, number: int) -> None:
        """Send a signal to the program alone."""
        os.kill(self.process.pid, number)

    def hang_up(self) -> None:
        """Close the terminal, as a lost connection does."""
        self._hung_up = True
        self.process.ptyproc.fileobj.close()

    def resize(self, columns: int, rows: int) -> None:
        """Change the terminal's size, as a window manager would."""
        self.screen.resize(rows, columns)
        self.process.setwinsize(rows, columns)

    def is_restored(self) -> bool:
        """Whether mouse and alternate screen are off at the end, and the cursor is on."""
        on_off = {
            mode: (self.raw.rfind(b"\x1b[?" + mode + b"h"), self.raw.rfind(b"\x1b[?" + mode + b"l"))
            for mode in (b"25", b"1049", b"1000", b"1003", b"1006", b"2004")
        }
        shown, hidden = on_off.pop(b"25")
        return shown > hidden and all(off >= on for on, off in on_off.values())
