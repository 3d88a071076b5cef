"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a name beside `path` to write to; the file takes its place when the block has ended.

    If the block raises, what was written is removed, and whatever was at `path` is still there.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def folder_made(folder: Path) -> Iterator[None]:
    """Make a folder, and those around it, for the block.

    If the block raises, those that were made here go again, unless something lies in them.

    Raises:
        OSError: it cannot be made.
    """
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:  # an interrupted block leaves nothing either
        for part in missing:
            with suppress(OSError):
                part.rmdir()
        raise
