"""Which function stands behind a term's name; the decorators here fill it.

`sim.catalog` finds the same terms by reading the source, so a term must be decorated with the
decorator's plain name: `@reward`, or `@command("name")` for a class.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, overload

Term = Callable[..., Any]
F = TypeVar("F", bound=Term)

_terms: dict[tuple[str, str], Term] = {}


def _register(kind: str, name: str, term: F) -> F:
    _terms[kind, name] = term
    return term


@overload
def observation(term: str) -> Callable[[F], F]: ...


@overload
def observation(term: F) -> F: ...


def observation(term: str | F) -> F | Callable[[F], F]:
    """Register `function(env, **params) -> [N, width]` as an observation term.

    With a name, `@observation("name")` registers a class that is made once by `cls(env, **params)`
    and then called with the env, for a term that has something to keep.
    """
    if isinstance(term, str):
        return lambda cls: _register("observations", term, cls)
    return _register("observations", term.__name__, term)


def reward(function: F) -> F:
    """Register `function(env, **params) -> [N]` as a reward term."""
    return _register("rewards", function.__name__, function)


def termination(function: F) -> F:
    """Register `function(env, **params) -> [N] bool` as a termination term."""
    return _register("terminations", function.__name__, function)


def event(function: F) -> F:
    """Register `function(env, ids, **params)` as an event term; ids are the worlds to change."""
    return _register("events", function.__name__, function)


def curriculum(function: F) -> F:
    """Register `function(env, ids, **params) -> state to log` as a curriculum term."""
    return _register("curriculum", function.__name__, function)


def action(name: str) -> Callable[[F], F]:
    """Register a class made by `cls(env, **params)` as the action term `name`."""
    return lambda term: _register("actions", name, term)


def command(name: str) -> Callable[[F], F]:
    """Register a class made by `cls(env, **params)` as the command term `name`."""
    return lambda term: _register("commands", name, term)


def find(kind: str, name: str) -> Term:
    """Return the term that is registered under `name`.

    Raises:
        KeyError: No term of this kind has that name, or its file was not imported.
    """
    return _terms[kind, name]


def load_terms(path: Path) -> None:
    """Run a Python file whose decorated functions become terms beside ours.

    Raises:
        ValueError: It cannot be run; says why.
    """
    spec = importlib.util.spec_from_file_location(f"own_terms_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"own terms {path}: {type(error).__name__}: {error}") from error
