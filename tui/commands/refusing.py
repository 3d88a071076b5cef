"""Bad input, or too much of it: a clear sentence and exit code 2 or 3, never a traceback."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import NoReturn

import typer

from tui.exit_codes import BAD_INPUT, OUT_OF_MEMORY

LONGEST_PATH = 200
"""Characters of a path that are shown: some are refused for being too long."""


@contextlib.contextmanager
def refusing_bad_input() -> Iterator[None]:
    """Turn what a person can put right into sentences and exit code 2."""
    from presets.memory import OutOfMemoryError
    from presets.problems import PresetError

    try:
        yield
    except OutOfMemoryError as error:
        refuse(error.messages, OUT_OF_MEMORY)
    except PresetError as error:
        refuse(error.messages)
    except OSError as error:
        if error.filename is None:  # not of a path, such as an output that is lost
            raise
        refuse([f"{_shortened(os.fsdecode(error.filename))}: {error.strerror}"])


def refuse(messages: list[str], code: int = BAD_INPUT) -> NoReturn:
    """Say what is wrong and leave, with code 2 unless told otherwise."""
    for message in messages:
        print(_harmless(message), file=sys.stderr)
    raise typer.Exit(code)


def _shortened(path: str) -> str:
    return path if len(path) <= LONGEST_PATH else f"{path[:LONGEST_PATH]}..."


def _harmless(text: str) -> str:
    """Write out what a terminal would obey: what is typed, or read from a file, may hold it."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )
