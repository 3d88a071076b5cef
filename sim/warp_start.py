"""Warp, started without a word on the terminal.

Import `wp` from here, before anything else that uses Warp: its first import elsewhere greets on
standard output, and complains on descriptor 2 (from C) where there is no NVIDIA driver.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

import warp as wp


@contextlib.contextmanager
def _hushed() -> Iterator[None]:
    """Lead descriptor 2 to nowhere for a moment."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


wp.config.log_level = max(wp.config.log_level, wp.LOG_WARNING)
with _hushed():
    wp.init()

__all__ = ["wp"]
