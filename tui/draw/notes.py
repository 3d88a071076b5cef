"""Sentences that fit into the room there is: whole ones, the weightiest first.

What stands behind a word and a semicolon explains a sentence, and may be left out.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from rich.cells import cell_len

from tui.draw.spans import crop

GAP = "  ·  "
_EXPLANATION = re.compile(r"(?<=[\w)]); ")


def fitting(sentences: Sequence[str], width: int, more: str = "") -> str:
    """Write the sentences that fit into a line, none of them cut.

    Where nothing says where they stand the first one is always there, cut if it must be.

    Args:
        sentences: the weightiest first.
        width: cells; 0: not known yet, there is room for all.
        more: says where all of them stand; written only if something is left out and it fits.
    """
    whole = GAP.join(sentences)
    if cell_len(whole) <= width or not width:
        return whole
    heads = [_EXPLANATION.split(sentence, maxsplit=1)[0] for sentence in sentences]
    kept = {} if more else {0: crop(heads[0], width)}
    for index, head in enumerate(heads):
        _put(kept, index, head, width)
    if more:
        _put(kept, len(sentences), more, width)
    for index in list(kept):
        if index < len(sentences):
            _put(kept, index, sentences[index], width)
    return GAP.join(kept.values())


def _put(kept: dict[int, str], index: int, text: str, width: int) -> None:
    """Let a text stand at its place, if all of them fit then."""
    with_it = {**kept, index: text}
    if cell_len(GAP.join(with_it.values())) <= width:
        kept[index] = text


def folded(notes: Sequence[str], width: int) -> list[str]:
    """Fold all notes to lines of `width` cells, each note behind a dot."""
    return [
        line
        for note in notes
        for line in textwrap.wrap(note, max(width, 12), initial_indent="· ", subsequent_indent="  ")
    ]
