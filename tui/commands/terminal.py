"""Whether there is a terminal that a full-screen program can use."""

from __future__ import annotations

import os
import sys

PLAIN_TERMINALS = ("", "dumb", "unknown")
"""Values of TERM that promise no full-screen mode."""

COLOURFUL = ("alacritty", "foot", "wezterm", "contour", "xterm-ghostty", "xterm-direct")
"""Values of TERM that promise 16 million colours; SSH passes TERM on, but not COLORTERM."""

CHARSET_VARIABLE = "PPO_TUI_CHARSET"
"""Environment variable that names the characters to draw with, whatever the locale says."""


def has_screen() -> bool:
    """Whether a full-screen program can run here: a terminal on both ends that knows how.

    A job started in the background has no screen: reading keys would stop it.
    """
    ends = (sys.stdin, sys.stdout)
    terminal = all(end is not None and not end.closed and end.isatty() for end in ends)
    plain = os.environ.get("TERM", "") in PLAIN_TERMINALS
    return terminal and not plain and _is_in_front(sys.stdin.fileno())


def _is_in_front(terminal: int) -> bool:
    """Whether this process's job is the terminal's present one."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:  # a terminal that controls no job
        return True
