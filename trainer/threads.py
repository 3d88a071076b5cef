"""How torch's own threads wait, and how many there are."""

from __future__ import annotations

import os


def let_torch_threads_sleep() -> None:
    """Make torch's threads sleep between two operations. Call before torch is first imported.

    Spinning, they would starve physics, screen and other programs of a busy machine; asleep they
    cost little.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def use_one_torch_thread() -> None:
    """Let torch compute in the thread that calls it: a few worlds are done before others wake."""
    import torch

    torch.set_num_threads(1)
