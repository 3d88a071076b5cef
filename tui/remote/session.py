"""A session that trains in another process: its picture here is as new as this screen asks for.

One thread holds the connection. It asks when the screen has looked at what came last, so a slow
terminal asks seldom and nothing piles up on either side.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainer import address
from trainer.control import Request
from trainer.pose import RobotRequest
from trainer.recording import standing
from trainer.rundir import RunDir
from trainer.telemetry import Command, EventLog, Failure, History, RunInfo, RunState, Snapshot
from trainer.trace import TraceRequest
from trainer.wire import PROTOCOL, WireError, pack, unpack

ANSWER_PATIENCE = 30.0
"""Seconds after which a session that does not answer is taken for gone."""

END_PATIENCE = 5.0
"""Seconds in which a process whose connection has ended may end, or be reached again."""


class Refused(Exception):  # noqa: N818 - says why, to a person
    """The session does not talk to this program; the message says why."""


class RemoteSession:
    """A `SessionView` of a session elsewhere.

    Args:
        folder: the run's.
        connection: leads to its session, not greeted yet.
        only_reads: give no commands.

    Raises:
        Refused: the session does not talk to this program.
        OSError: it has gone.
    """

    def __init__(
        self, folder: Path, connection: socket.socket, *, only_reads: bool = False
    ) -> None:
        self.history = History()
        self.events = EventLog()
        self.run_dir = RunDir(folder)
        self.only_reads = only_reads
        self._num_events = 0  # that the session has had
        self._snapshot = Snapshot()
        self._calls: deque[bytes] = deque(maxlen=1000)
        self._wanted = threading.Event()
        self._closing = False
        self._greet(connection)
        self._thread = threading.Thread(target=self._follow, name="watching", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def join(self, timeout: float | None = None) -> bool:
        """Return at once: nothing here has to end before the program does."""
        return True

    def close(self) -> None:
        """Leave; the session goes on."""
        self._closing = True
        self._wanted.set()
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot that has come, and have a newer one fetched."""
        self._wanted.set()
        return self._snapshot

    def command(self, command: Command) -> None:
        """Send a command along with the next question."""
        if not self.only_reads:
            self._call("command", command)

    def control(self, request: Request) -> None:
        """Send a request along with the next question."""
        if not self.only_reads:
            self._call("control", request)

    def look(self, request: TraceRequest | None) -> None:
        """Say what a person looks at."""
        self._call("look", request)

    def watch_robot(self, request: RobotRequest | None) -> None:
        """Say which robot a person looks at."""
        self._call("watch_robot", request)

    def note(self, kind: str, text: str) -> None:
        """Keep nothing: the run is another process's."""

    def _call(self, name: str, *arguments: object) -> None:
        self._calls.append(pack({"call": name, "with": arguments}))
        self._wanted.set()

    # The connection.

    def _greet(self, connection: socket.socket) -> None:
        """Say who this is and what is known here already."""
        connection.settimeout(ANSWER_PATIENCE)
        hello = {
            "protocol": PROTOCOL,
            "only_reads": self.only_reads,
            "events": self._num_events,
            "stride": self.history.stride,
            "iterations": len(self.history),
        }
        connection.sendall(pack(hello))
        self._connection = connection
        self._messages = _messages(connection)
        try:
            answer = next(self._messages)
        except WireError as error:
            raise Refused(str(error)) from None
        if not isinstance(answer, Mapping) or "refused" in answer:
            raise Refused(str(answer["refused"]))

    def _follow(self) -> None:
        """Ask until the session is over or this is closed."""
        while not self._snapshot.state.is_over and not self._closing:
            try:
                self._wanted.wait()
                self._wanted.clear()
                calls = [self._calls.popleft() for _ in range(len(self._calls))]
                with contextlib.suppress(ConnectionError):  # gone, but its last word is here
                    self._connection.sendall(b"".join(calls) + pack({"get": "news"}))
                self._take(next(self._messages))
            except (OSError, WireError) as error:
                if not self._closing and not self._is_reached_again():
                    self._show_end(error)

    def _take(self, news: Any) -> None:  # noqa: ANN401 - whatever came
        try:
            if news["history"] is not None:
                self.history.absorb(news["history"])
            for event in news["events"]:
                self.events.put(event)
            self._num_events = news["num_events"]
            self._snapshot = replace(self._snapshot, **self._as_reached(news["changes"]))
        except (TypeError, KeyError) as error:
            raise WireError(f"no news: {error}") from None

    def _as_reached(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Name the run's folder as it is reached from here: the run was started elsewhere."""
        folder = str(self.run_dir.path)
        return {
            name: replace(value, run_dir=folder) if isinstance(value, RunInfo | Failure) else value
            for name, value in changes.items()
        }

    def _is_reached_again(self) -> bool:
        """Connect anew if the process lives on."""
        self._connection.close()
        deadline = time.monotonic() + END_PATIENCE
        while time.monotonic() < deadline and not standing(self.run_dir.path).is_over:
            time.sleep(0.1)
            connection = address.connect(self.run_dir.path)
            if connection is not None:
                with contextlib.suppress(OSError, Refused):
                    self._greet(connection)
                    return True
        return False

    def _show_end(self, error: Exception) -> None:
        """Say how the run ended, as far as its folder knows."""
        state, failure = standing(self.run_dir.path), self._snapshot.failure
        if state is RunState.KILLED:
            address.remove(self.run_dir.path)
            self.events.add("end", "the run's process is gone without a farewell")
        elif not state.is_over:
            state = RunState.FAILED
            failure = Failure(f"the run answers no more ({error}); it may go on", "", None, 0)
        self._snapshot = replace(
            self._snapshot,
            seq=self._snapshot.seq + 1,
            state=state,
            failure=failure,
            pending="",
            progress="",
        )


def _messages(connection: socket.socket) -> Iterator[Any]:
    """Messages as they come.

    Raises:
        OSError: the other end is gone, or silent for too long.
        WireError: it speaks another language.
    """
    received = bytearray()
    while True:
        yield from unpack(received)
        data = connection.recv(1 << 20)
        if not data:
            raise ConnectionResetError("the connection has ended")
        received += data
