"""Finding joints and bodies by patterns of their names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence


def match_names(patterns: str | Sequence[str], names: Sequence[str], what: str) -> list[int]:
    """Positions of the names that any pattern matches in full, in the order of `names`.

    Args:
        patterns: Regular expressions (`.*_foot`).
        names: What to look in.
        what: What a name stands for, for the message (`joint`).

    Raises:
        ValueError: A pattern matches nothing, or is no regular expression; names the nearest.
    """
    chosen: set[int] = set()
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        try:
            expression = re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{what} pattern {pattern!r} cannot be read: {error}") from None
        found = {i for i, name in enumerate(names) if expression.fullmatch(name)}
        if not found:
            near = difflib.get_close_matches(pattern, names, n=3, cutoff=0.3) or names
            raise ValueError(f"no {what} matches {pattern!r}; near are {', '.join(near)}")
        chosen |= found
    return sorted(chosen)
