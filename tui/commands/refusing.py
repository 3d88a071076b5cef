"""Bad input: a clear sentence and exit code 2, never a traceback."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import NoReturn

import typer

BAD_INPUT = 2
"""Exit code for what a person can put right on the command line or in a file."""


@contextlib.contextmanager
def refusing_bad_input() -> Iterator[None]:
    """Turn what a person can put right into sentences and exit code 2."""
    from presets.problems import PresetError

    try:
        yield
    except PresetError as error:
        refuse(error.messages)


def refuse(messages: list[str]) -> NoReturn:
    """Say what is wrong and leave with code 2."""
    for message in messages:
        print(message, file=sys.stderr)
    raise typer.Exit(BAD_INPUT)
