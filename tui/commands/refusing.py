"""Bad input, or too much of it: a clear sentence and exit code 2 or 3, never a traceback."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import NoReturn

import typer

from tui.exit_codes import BAD_INPUT, OUT_OF_MEMORY


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


def refuse(messages: list[str], code: int = BAD_INPUT) -> NoReturn:
    """Say what is wrong and leave, with code 2 unless told otherwise."""
    for message in messages:
        print(message, file=sys.stderr)
    raise typer.Exit(code)
