"""Merging the layers of a preset into one document that knows where each value came from."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

from presets.problems import did_you_mean, locate
from presets.schema import is_term
from presets.toml import Path


class Layer(NamedTuple):
    """Values of one source."""

    origin: str
    """The file, `--set`, or the option."""
    table: Mapping[str, Any]


class Layers:
    """Layers laid over each other: tables merge, anything else is replaced.

    A term set to `false` is taken away. The order of terms is that of their first appearance.

    Args:
        title: the file that all of them together are known by.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.document: dict[str, Any] = {}
        self.problems: list[str] = []
        self._origins: dict[Path, str] = {}

    def lay(self, layer: Layer) -> None:
        """Put one more layer on top."""
        self._merge((), self.document, layer.table, layer.origin)

    def origin(self, path: Path) -> str | None:
        """Return who wrote a value, or any value inside a table; None if nobody did."""
        if path in self._origins:
            return self._origins[path]
        inside = [key for key in self._origins if key[: len(path)] == path]
        return self._origins[inside[-1]] if inside else None

    def nearest_origin(self, path: Path) -> str:
        """Return the origin of a key or, where nobody wrote it, of the table around it."""
        for length in range(len(path), 0, -1):
            if (origin := self.origin(path[:length])) is not None:
                return origin
        return self.title

    def _merge(
        self, path: Path, into: dict[str, Any], table: Mapping[str, Any], origin: str
    ) -> None:
        for key, value in table.items():
            here = (*path, key)
            if value is False and is_term(here):
                self._remove(here, into, origin)
            elif isinstance(value, Mapping):
                if not isinstance(into.get(key), dict):
                    self._forget(here)
                    into[key] = {}
                if not value:
                    self._origins.setdefault(here, origin)
                    self._refuse_emptying(here, into[key], origin)
                self._merge(here, into[key], value, origin)
            else:
                self._forget(here)
                into[key] = copy.deepcopy(value)
                self._origins[here] = origin

    def _refuse_emptying(self, path: Path, table: Mapping[str, Any], origin: str) -> None:
        """Refuse an empty table over one that is not: tables merge, so it would change nothing."""
        terms = [key for key in table if is_term((*path, key))]
        if table:
            remedy = (
                f"; a term is taken away by {'.'.join(path)}.{terms[0]} = false" if terms else ""
            )
            self.problems.append(
                f"{locate(path, {}, origin)}: changes nothing, tables are merged key by key{remedy}"
            )

    def _remove(self, path: Path, table: dict[str, Any], origin: str) -> None:
        if path[-1] in table:
            del table[path[-1]]
            self._forget(path)
        else:
            where = locate(path, False, origin)
            near = did_you_mean(path[-1], table)
            self.problems.append(f"{where}: there is no such term to take away{near}")

    def _forget(self, path: Path) -> None:
        for key in [key for key in self._origins if key[: len(path)] == path]:
            del self._origins[key]
