"""Whether there is a terminal that a full-screen program can use."""

from __future__ import annotations

import os
import sys

PLAIN_TERMINALS = ("", "dumb", "unknown")
"""Values of TERM that promise no full-screen mode."""


def has_screen() -> bool:
    """Whether a full-screen program can run here: a terminal on both ends that knows how."""
    ends = (sys.stdin, sys.stdout)
    terminal = all(end is not None and not end.closed and end.isatty() for end in ends)
    return terminal and os.environ.get("TERM", "") not in PLAIN_TERMINALS
