"""What a screen shows, as text that can be stored, compared and read: characters, then styles.

A rendition has a line for each line of the screen, and below a line `~` another for each line's
styles: letters of a legend with the number of cells that follow each other in it.
"""

from __future__ import annotations

import difflib
import itertools
import os
import string
from pathlib import Path

from rich.cells import cell_len
from textual.strip import Strip

FOLDER = Path(__file__).parent / "pictures"
REWRITE = "REWRITE_PICTURES"
"""Environment variable that makes the tests write what they see."""
HOW = f"{REWRITE}=1 python -m pytest tests/tui/test_pictures.py"
SHOWN = 60
"""Lines of a difference that a message holds at most."""

_LETTERS = string.ascii_letters + "".join(map(chr, range(0xC0, 0x180)))


def rendition(strips: list[Strip]) -> str:
    """Write down what strips show."""
    legend: dict[str, str] = {}
    styles = []
    for strip in strips:
        cells: list[str] = []
        for segment in strip:
            ink = str(segment.style or "none")
            letter = legend.setdefault(ink, _LETTERS[len(legend)])
            cells += [letter] * cell_len(segment.text)
        runs = ((letter, len(list(group))) for letter, group in itertools.groupby(cells))
        styles.append("".join(f"{letter}{length}" for letter, length in runs))
    lines = [strip.text.rstrip() for strip in strips]
    names = [f"{letter} {ink}" for ink, letter in legend.items()]
    return "\n".join([*lines, "~", *styles, "~", *names]) + "\n"


def check(name: str, seen: str) -> None:
    """Compare with the stored picture, or store it.

    Raises:
        AssertionError: they differ; the message says in which lines.
    """
    path = FOLDER / f"{name}.txt"
    if os.environ.get(REWRITE):
        if not path.exists() or path.read_text(encoding="utf-8") != seen:
            path.write_text(seen, encoding="utf-8")
        return
    stored = path.read_text(encoding="utf-8") if path.exists() else ""
    if stored == seen:
        return
    what = "shows something else" if stored else "was never stored"
    old, new = stored.partition("\n~\n"), seen.partition("\n~\n")
    part = "characters"
    if old[0] == new[0]:
        old, new, part = old[2:], new[2:], "styles"
    lines = list(
        difflib.unified_diff(
            old[0].splitlines(), new[0].splitlines(), "stored", "seen", lineterm="", n=1
        )
    )
    more = f"\n... and {len(lines) - SHOWN} lines more" if len(lines) > SHOWN else ""
    raise AssertionError(
        f"{name} {what} ({part}):\n"
        + "\n".join(lines[:SHOWN])
        + more
        + f"\nIf that is meant: {HOW}, and look at what it changes."
    )
