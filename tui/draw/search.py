"""Which rows a person wants to see."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=32)
def _pattern(wanted: str) -> re.Pattern[str]:
    try:
        return re.compile(wanted, re.IGNORECASE)
    except re.error:  # half of an expression, while it is typed
        return re.compile(re.escape(wanted), re.IGNORECASE)


def matches(wanted: str, text: str) -> bool:
    """Whether a text holds what is wanted: a regular expression, or else those characters.

    Case does not count; several words, parted by spaces, must all be found, in any order.
    """
    return all(_pattern(word).search(text) for word in wanted.split())
