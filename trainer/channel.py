"""What several processes that train together tell each other, beside their tensors.

Rank 0 leads: it is connected with every other rank by a socket of its own. A process that dies
closes its sockets, whatever killed it, so the other end knows at once. Before every collective
operation rank 0 says "go", and until then the others wait here, asleep and without a time limit:
that is how a pause of rank 0 pauses all, however long it lasts.

Messages are JSON or tensors saved by torch, and are read without executing code.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

_HELLO_SIZE = 1024
"""Bytes that a caller who is not known yet may send at most."""

_HEADER = struct.Struct("!BQ")


class Kind(IntEnum):
    """What a message says."""

    HELLO = 1
    """First word over a network: who is calling, and the token that only ranks know."""
    JOB = 2
    """What to train."""
    READY = 3
    """The worlds are built."""
    GO = 4
    """The next collective operation may begin."""
    SEND_WORLDS = 5
    """Asks for the worlds as they were after some iteration."""
    STOP = 6
    """Leave."""
    REPORT = 7
    """What an iteration brought."""
    WORLDS = 8
    """Answers SEND_WORLDS."""
    FAILED = 9
    """Why this rank is about to leave."""
    SIGNAL = 10
    """This rank was sent a signal that asks it to end; it goes on until rank 0 has said so."""
    EDITS = 11
    """What to change when so many iterations are complete."""


class Message(NamedTuple):
    """One message."""

    kind: Kind
    payload: bytes = b""

    def json(self) -> Any:  # noqa: ANN401 - any JSON
        """Read the payload as JSON."""
        return json.loads(self.payload)


class Link:
    """Messages over a connected socket; any thread may send, one receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._lock = threading.Lock()
        connection.settimeout(None)
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # a machine that is gone without a word is noticed within half a minute
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)

    def send(self, kind: Kind, payload: bytes | Mapping[str, Any] = b"") -> bool:
        """Send a message, a mapping as JSON; returns whether the other end is still there."""
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        try:
            with self._lock:
                self._socket.sendall(_HEADER.pack(kind, len(body)))
                self._socket.sendall(body)
        except OSError:
            return False
        return True

    def receive(self) -> Message | None:
        """Wait for the next message; None when the other end is gone."""
        header = self._read(_HEADER.size)
        if header is None:
            return None
        kind, size = _HEADER.unpack(header)
        body = self._read(size)
        return None if body is None else Message(Kind(kind), body)

    def receive_hello(self, timeout: float) -> dict[str, Any]:
        """Wait for the first word of whoever called; empty if it is none."""
        self._socket.settimeout(timeout)
        header = self._read(_HEADER.size)
        hello: dict[str, Any] = {}
        if header is not None:
            kind, size = _HEADER.unpack(header)
            body = self._read(size) if (kind, size <= _HELLO_SIZE) == (Kind.HELLO, True) else None
            with contextlib.suppress(ValueError):
                hello = json.loads(body or b"{}")
        self._socket.settimeout(None)
        return hello

    def close(self) -> None:
        """Hang up, also on a thread that receives."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _read(self, size: int) -> bytes | None:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            try:
                got = self._socket.recv_into(view)
            except OSError:
                return None
            if got == 0:
                return None
            view = view[got:]
        return bytes(data)
