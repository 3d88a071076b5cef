"""How torch's own threads wait."""

from __future__ import annotations

import os


def let_torch_threads_sleep() -> None:
    """Make torch's threads sleep between two operations. Call before torch is first imported.

    Spinning, they would starve physics, screen and other programs of a busy machine; asleep they
    cost little.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
