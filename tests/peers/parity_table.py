"""The table of docs/rsl_rl.md: what is compared with rsl-rl-lib, and how far apart the two are.

`python -m tests.peers.parity_table` runs all comparisons and writes it. Numbers are rounded up to a
power of ten, those that are single precision's rounding to one and the same, so that the page is
the same wherever it is written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from tests.peers.parity import FEATURES, Parity, compare

PAGE = Path(__file__).parents[2] / "docs" / "rsl_rl.md"
BEGIN, END = "<!-- parity: begin -->\n", "<!-- parity: end -->\n"
ROUNDING = 1e-6
"""Differences up to this are the rounding of single precision: all are shown as this."""

_ROW = re.compile(r"\| (?P<feature>[^|]+?) \| <= (?P<bound>1e-\d+) \|")


class Row(NamedTuple):
    """A line of the table, as it stands in the page."""

    feature: str
    bound: float
    """Largest difference."""


def bound(difference: float) -> float:
    """The power of ten that is not below a difference."""
    return 10.0 ** math.ceil(math.log10(max(difference, ROUNDING)) - 1e-9)


def table(results: Iterable[Parity]) -> str:
    """Write the results in Markdown, with the notes below."""
    notes: list[str] = []
    lines = [
        f"| feature | largest difference from rsl-rl-lib {version('rsl-rl-lib')} | note |",
        "| --- | --- | --- |",
    ]
    for parity in results:
        mark = ""
        if note := parity.feature.note:
            if note not in notes:
                notes.append(note)
            mark = str(notes.index(note) + 1)
        lines.append(f"| {parity.feature.name} | <= {bound(parity.largest):.0e} | {mark} |")
    lines += ["", *(f"{number}. {note}." for number, note in enumerate(notes, start=1))]
    return "\n".join(lines) + "\n"


def documented(page: str) -> list[Row]:
    """Read the table back from the page's text."""
    _, _, rest = page.partition(BEGIN)
    shown, _, _ = rest.partition(END)
    return [Row(m["feature"], float(m["bound"])) for m in _ROW.finditer(shown)]


def written(page: str, results: Iterable[Parity]) -> str:
    """The page's text with the table replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE} has no place for the table")
    return before + begin + table(results) + end + after


if __name__ == "__main__":
    found = [compare(feature) for feature in FEATURES]
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
