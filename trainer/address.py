"""Where a running session can be reached: a socket in its run's folder, open to its owner alone.

A socket's path may have 107 bytes, a run's folder more. The folder is therefore opened, and the
socket named through the open folder. Where its file system knows no sockets, the socket lies in a
private folder of this machine, and a text file in the run's folder says where.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

NAME = "watch.sock"
"""The socket, or the text file that says where it is."""


def listen(folder: Path) -> socket.socket:
    """Return a listening socket for the session that trains in `folder`; one left over is replaced.

    Raises:
        OSError: neither the folder nor this machine's folder for such things takes a socket.
    """
    here = folder / NAME
    with contextlib.suppress(FileNotFoundError):
        here.unlink()
    try:
        with _through_folder(folder) as path:
            return _listening(path)
    except OSError:
        private = Path(tempfile.mkdtemp(prefix="ppo-tui-", dir=os.environ.get("XDG_RUNTIME_DIR")))
        listening = _listening(str(private / NAME))
        here.write_text(f"{private / NAME}\n", encoding="utf-8")
        return listening


def connect(folder: Path) -> socket.socket | None:
    """Return a socket that leads to the session that trains in `folder`; None if none answers."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if stat.S_ISSOCK((folder / NAME).stat().st_mode):
            with _through_folder(folder) as path:
                connection.connect(path)
        else:
            connection.connect((folder / NAME).read_text(encoding="utf-8").strip())
    except (OSError, ValueError):
        connection.close()
        return None
    return connection


def remove(folder: Path) -> None:
    """Remove what `listen` has left in the folder, or elsewhere for it."""
    here = folder / NAME
    with contextlib.suppress(OSError, ValueError):
        if not stat.S_ISSOCK(here.stat().st_mode):
            elsewhere = Path(here.read_text(encoding="utf-8").strip())
            if elsewhere.name == NAME and stat.S_ISSOCK(elsewhere.stat().st_mode):
                elsewhere.unlink()
                elsewhere.parent.rmdir()
    with contextlib.suppress(OSError):
        here.unlink()


def is_ours(connection: socket.socket) -> bool:
    """Whether the process at the other end belongs to this one's user, or to root."""
    credentials = connection.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
    )
    _, user, _ = struct.unpack("3i", credentials)
    return user in (0, os.getuid())


def _listening(path: str) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(listening.fileno(), 0o600)  # before it has a name: it is never open to others
        listening.bind(path)
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening


@contextlib.contextmanager
def _through_folder(folder: Path) -> Iterator[str]:
    """A short path to the socket, for as long as the folder is open."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{opened}/{NAME}"
    finally:
        os.close(opened)
