"""The claim of one process to a run's folder, so that no two train into it.

`status.json` tells others who trains; but it is written when the training begins, and two that
begin together would both find nobody there. The claim is a lock of the system's, which ends with
the process, however that ends. Between containers and machines it holds where their file system's
locks do.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

NAME = ".lock"
"""Holds the number of the process that claimed the folder last."""

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
"""What a file system without locks answers: then there is no claim to be made."""

_held: dict[Path, int] = {}
"""Descriptors by folder. The system's lock goes with the first one that is closed, so there is one
for each folder."""


class ClaimedError(Exception):
    """Another process has the folder; the message says which."""


def claim(folder: Path) -> None:
    """Keep other processes from training into a folder until `release`, or the end of this one.

    Raises:
        ClaimedError: another process has claimed it.
        OSError: the folder cannot be written.
    """
    folder = folder.resolve()
    if folder in _held:
        return
    descriptor = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            who = os.read(descriptor, 20).decode(errors="replace")
            os.close(descriptor)
            by = f"process {who}" if who.isdecimal() else "another process"
            raise ClaimedError(f"is being trained right now by {by}; stop that one first") from None
        if error.errno not in (*_NO_LOCKS, errno.ENOSPC):
            os.close(descriptor)
            raise
    _held[folder] = descriptor


def release(folder: Path) -> None:
    """Let others have a folder, if this process has claimed it."""
    descriptor = _held.pop(folder.resolve(), None)
    if descriptor is not None:
        with contextlib.suppress(OSError):
            os.close(descriptor)
