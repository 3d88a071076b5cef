"""Paths as people write them."""

from __future__ import annotations

import os
from pathlib import Path


def typed(path: str | Path) -> Path:
    """Return a path with `~` written out, which shells leave alone in `--run-dir=~/runs`.

    Where there is no such user it stays as it is.
    """
    return Path(os.path.expanduser(path))
