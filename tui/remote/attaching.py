"""Reaching the session that trains in a folder."""

from __future__ import annotations

import time
from pathlib import Path

from trainer import address
from trainer.recording import standing
from tui.remote.session import Refused, RemoteSession

START_PATIENCE = 30.0
"""Seconds in which a run that has just begun may open its socket."""


def attached(folder: Path, *, read_only: bool = False) -> RemoteSession | None:
    """Reach the session that trains in a folder; None where no process does.

    Args:
        folder: the run's.
        read_only: give no commands.

    Raises:
        Refused: it trains, but does not talk to this program; says why.
    """
    deadline = time.monotonic() + START_PATIENCE
    while True:
        connection = address.connect(folder)
        if connection is not None:
            try:
                return RemoteSession(folder, connection, only_reads=read_only)
            except Refused as error:
                raise Refused(f"{folder}: {error}") from None
            except OSError:
                connection.close()
        if standing(folder).is_over:
            address.remove(folder)  # left over from a process that was killed
            return None
        if time.monotonic() > deadline:
            raise Refused(f"{folder}: trains, but cannot be reached; --replay shows its record")
        time.sleep(0.2)
