"""What the process ends with, beside 128 + n for signal n."""

from __future__ import annotations

from trainer.telemetry import Snapshot

FAILED = 1
"""The run failed; its log says more."""
BAD_INPUT = 2
"""What a person can put right on the command line or in a file."""
OUT_OF_MEMORY = 3
"""Fewer worlds would fit."""


def exit_code(snapshot: Snapshot) -> int:
    """The code of a run that no signal has ended: 0, or how it failed."""
    if snapshot.failure is None:
        return 0
    return OUT_OF_MEMORY if snapshot.failure.out_of_memory else FAILED
