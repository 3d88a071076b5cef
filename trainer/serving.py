"""A running session, open to those who watch it from other terminals of the same user.

A thread of its own answers each viewer's questions, one at a time: a viewer asks when it is ready
to draw, and gets what has changed since its last question. So a slow or stopped viewer costs the
memory of one answer and never holds anything up; where nobody watches, the thread sleeps.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import selectors
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer import address
from trainer.telemetry import SessionView, Snapshot
from trainer.wire import PROTOCOL, WireError, pack, unpack

MOST_VIEWERS = 16
LONGEST_QUESTION = 1024 * 1024
"""Bytes that a viewer may send before they make sense."""
FAREWELL_PATIENCE = 1.0
"""Seconds in which viewers can take the last answer."""

CALLS = frozenset(
    name for name, member in vars(SessionView).items() if callable(member) and name[0] != "_"
) - {"snapshot"}
"""What a viewer may call: all that a screen may."""
HARMLESS_CALLS = frozenset(("look", "watch_robot"))
"""What one that only reads may call."""


class Server:
    """Answers viewers until it is closed.

    Args:
        session: what they see and steer.
        folder: the run's, in which the socket lies.
    """

    def __init__(self, session: SessionView, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self._listening = address.listen(folder)
        self._listening.setblocking(False)
        self._wake, self._woken = socket.socketpair()
        self._viewers: dict[socket.socket, _Viewer] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="serving", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Tell all viewers how things stand, and be gone."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._wake.send(b"!")
        self._thread.join(FAREWELL_PATIENCE + 1)
        address.remove(self._folder)

    def _serve(self) -> None:
        try:
            while not self._closing:
                for key, mask in self._selector.select():
                    self._attend(key, mask)
            self._say_farewell()
        finally:
            for connection in (*self._viewers, self._listening, self._wake, self._woken):
                connection.close()
            self._selector.close()

    def _attend(self, key: selectors.SelectorKey, mask: int) -> None:
        if key.fileobj is self._listening:
            self._welcome()
        elif isinstance(key.fileobj, socket.socket) and key.fileobj in self._viewers:
            viewer = self._viewers[key.fileobj]
            try:
                if mask & selectors.EVENT_READ:
                    viewer.read()
                while viewer.send() and viewer.answer():
                    pass
            except Exception:  # whatever one viewer sends, no other suffers from it
                self._dismiss(viewer)
                return
            self._listen_to(viewer)

    def _welcome(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:
            return
        if len(self._viewers) >= MOST_VIEWERS or not address.is_ours(connection):
            connection.close()
            return
        connection.setblocking(False)
        self._viewers[connection] = _Viewer(connection, self._session)
        self._selector.register(connection, selectors.EVENT_READ)

    def _listen_to(self, viewer: _Viewer) -> None:
        """Wait for room where an answer is on its way, else for the next question."""
        events = selectors.EVENT_WRITE if viewer.is_owed else selectors.EVENT_READ
        self._selector.modify(viewer.connection, events)

    def _dismiss(self, viewer: _Viewer) -> None:
        self._selector.unregister(viewer.connection)
        del self._viewers[viewer.connection]
        viewer.connection.close()
        for name in viewer.looks:
            getattr(self._session, name)(None)

    def _say_farewell(self) -> None:
        deadline = time.monotonic() + FAREWELL_PATIENCE
        for viewer in self._viewers.values():
            with contextlib.suppress(OSError, TypeError):
                viewer.connection.settimeout(max(0.01, deadline - time.monotonic()))
                viewer.say_last_word()


class _Viewer:
    """One viewer, and what it has been told so far."""

    def __init__(self, connection: socket.socket, session: SessionView) -> None:
        self.connection = connection
        self.looks: set[str] = set()
        """What it has asked to see, by the calls; nothing of it must be made for nobody."""
        self._session = session
        self._received = bytearray()
        self._questions: list[Any] = []
        self._owed = memoryview(b"")
        self._knows_us = False
        self._only_reads = False
        self._snapshot = Snapshot()
        self._events = 0
        self._stride, self._iterations = session.history.stride, 0

    @property
    def is_owed(self) -> bool:
        """Whether part of an answer has not been taken yet."""
        return bool(self._owed)

    def read(self) -> None:
        """Read what has come.

        Raises:
            OSError: the viewer is gone.
            WireError: it speaks another language.
        """
        data = self.connection.recv(65536)
        if not data:
            raise OSError("gone")
        self._received += data
        if len(self._received) > LONGEST_QUESTION:
            raise WireError("too long a question")
        self._questions += unpack(self._received)

    def send(self) -> bool:
        """Send what the viewer takes now; returns whether that was all."""
        while self._owed:
            try:
                self._owed = self._owed[self.connection.send(self._owed) :]
            except BlockingIOError:
                return False
        return True

    def answer(self) -> bool:
        """Follow what has been asked for, up to a question with an answer; False: nothing was."""
        if not self._questions:
            return False
        while self._questions and not self._owed:
            question = self._questions.pop(0)
            if not isinstance(question, Mapping):
                raise WireError("no question")
            if not self._knows_us:
                self._owed = memoryview(pack(self._greeting(question)))
            elif "call" in question:
                self._call(question["call"], question.get("with", ()))
            else:
                self._owed = memoryview(pack(self._news()))
        return True

    def say_last_word(self) -> None:
        """Send the rest, and the news."""
        if self._knows_us:
            self.connection.sendall(self._owed)
            self.connection.sendall(pack(self._news()))

    def _greeting(self, hello: Mapping[str, Any]) -> dict[str, object]:
        if hello.get("protocol") != PROTOCOL:
            return {"refused": f"the run speaks version {PROTOCOL}; start it anew to watch it"}
        self._knows_us = True
        self._only_reads = bool(hello.get("only_reads"))
        self._events = int(hello.get("events", 0))
        self._stride = int(hello.get("stride", self._stride))
        self._iterations = int(hello.get("iterations", 0))
        return {"protocol": PROTOCOL, "pid": os.getpid()}

    def _call(self, name: str, arguments: tuple[object, ...]) -> None:
        if name not in CALLS or (self._only_reads and name not in HARMLESS_CALLS):
            return
        if name in HARMLESS_CALLS:
            self.looks.add(name)
        getattr(self._session, name)(*arguments)

    def _news(self) -> dict[str, object]:
        """Say what has changed since the last answer."""
        before, now = self._snapshot, self._session.snapshot()
        changes = {
            field.name: value
            for field in dataclasses.fields(Snapshot)
            if _differs(value := getattr(now, field.name), getattr(before, field.name))
        }
        self._snapshot = now
        self._events, events = self._session.events.since(self._events)
        part = self._session.history.part(self._stride, self._iterations)
        if part is not None:
            self._stride, self._iterations = part.stride, part.iterations
        return {"changes": changes, "num_events": self._events, "events": events, "history": part}


def _differs(value: object, before: object) -> bool:
    """Whether a field of a snapshot is another one; parts of snapshots are never written to."""
    if value is before:
        return False
    is_simple = isinstance(value, int | float | str) and type(value) is type(before)
    return not (is_simple and value == before)
