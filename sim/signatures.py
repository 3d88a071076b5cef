"""The signatures of terms, read from their source without running it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Final

KINDS = (
    "actions",
    "commands",
    "observations",
    "rewards",
    "terminations",
    "events",
    "curriculum",
)
"""Kinds of terms, named as the tables of `EnvConfig`."""

DECORATORS = {
    "action": "actions",
    "command": "commands",
    "observation": "observations",
    "reward": "rewards",
    "termination": "terminations",
    "event": "events",
    "curriculum": "curriculum",
}
"""Decorators of `sim.terms.registry`, and the kind of term that each makes."""

_GIVEN = ("self", "env", "ids")
"""Parameters that the managers fill in."""


class Required(Enum):
    """The default of a parameter that has none."""

    REQUIRED = "required"


REQUIRED: Final = Required.REQUIRED


@dataclass(frozen=True)
class Param:
    """A parameter of a term."""

    annotation: str
    """Its type as written in the source; see `sim.terms.parameters`."""
    default: object
    """Its default (its source text where it is no literal), or REQUIRED."""


@dataclass(frozen=True)
class TermSignature:
    """What a term is called, does and takes."""

    name: str
    """The name that a preset uses."""
    doc: str
    """Its docstring."""
    params: Mapping[str, Param]
    """Its parameters in order, without those that the managers fill in."""


Terms = Mapping[str, Mapping[str, TermSignature]]
"""Kind to name to signature."""


@functools.cache
def read_terms(path: Path) -> Terms:
    """Find the terms that a Python file defines.

    Raises:
        OSError: The file cannot be read.
        UnicodeDecodeError: It is not UTF-8.
        SyntaxError: It is not Python.
    """
    found: dict[str, dict[str, TermSignature]] = {kind: {} for kind in KINDS}
    tree = ast.parse(path.read_text(encoding="utf-8-sig"), filename=str(path))
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        for decorator in node.decorator_list:
            kind, name = _registered_as(decorator, node.name)
            if kind:
                found[kind][name] = _read_signature(name, node)
    return found


def _registered_as(decorator: ast.expr, own_name: str) -> tuple[str | None, str]:
    """Kind and name under which `@reward` or `@command("name")` registers a definition."""
    match decorator:
        case ast.Name(id=kind):
            return DECORATORS.get(kind), own_name
        case ast.Call(func=ast.Name(id=kind), args=[ast.Constant(value=str(name))]):
            return DECORATORS.get(kind), name
    return None, own_name


def _read_signature(name: str, node: ast.FunctionDef | ast.ClassDef) -> TermSignature:
    function: ast.AST | None = node
    if isinstance(node, ast.ClassDef):
        function = next(
            (n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None
        )
    params: dict[str, Param] = {}
    if isinstance(function, ast.FunctionDef):
        spec = function.args
        positional = spec.posonlyargs + spec.args
        missing = len(positional) - len(spec.defaults)
        defaults = [None] * missing + list(spec.defaults)
        for arg, default in zip(
            positional + spec.kwonlyargs, defaults + list(spec.kw_defaults), strict=True
        ):
            if arg.arg not in _GIVEN:
                annotation = ast.unparse(arg.annotation) if arg.annotation else "Any"
                params[arg.arg] = Param(annotation.strip("'"), _default(default))
    return TermSignature(name, ast.get_docstring(node) or "", MappingProxyType(params))


def _default(node: ast.expr | None) -> object:
    if node is None:
        return REQUIRED
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)
