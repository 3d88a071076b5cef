"""A person's own terms: Python files named on the command line, read here without running them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from presets.paths import typed
from presets.problems import NULL_BYTES, PresetError, not_utf8
from sim.signatures import DECORATORS, read_terms


def checked(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the files, in full, if each can be read and defines a term.

    Raises:
        PresetError: one cannot, or does not; says which and why.
    """
    full = tuple(typed(path).absolute() for path in paths)
    problems = [problem for path in full for problem in _problems(path)]
    if problems:
        raise PresetError(problems)
    return full


def note(paths: Iterable[Path]) -> str:
    """Say what it takes to run these terms again."""
    options = " ".join(f"--terms {path}" for path in paths)
    return f"trains with terms of your own; to run or resume it again: {options}"


def _problems(path: Path) -> Iterator[str]:
    where = f"--terms {path}"
    try:
        terms = read_terms(path)
    except OSError as error:
        yield f"{where}: cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        yield f"{where}: {not_utf8(error)}"
    except SyntaxError as error:
        nulls = "null bytes" in error.msg
        yield f"{where}: {NULL_BYTES if nulls else f'line {error.lineno}: not Python: {error.msg}'}"
    except ValueError as error:
        yield f"{where}: not Python: {error}"
    else:
        if not any(terms.values()):
            decorators = ", ".join(f"@{name}" for name in DECORATORS)
            yield f"{where}: defines no term; a term stands under one of {decorators}"
