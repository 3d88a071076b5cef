"""Keys that older versions of this program wrote, put into the words of today."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from presets.toml import format_value

HIGHEST_STD = 1e6
"""What bounds the standard deviation from above where a preset says nothing."""


def translated(table: Mapping[str, Any], label: str) -> tuple[dict[str, Any], list[str]]:
    """Put the keys of a preset's file that have another name now into those of today.

    A key of which today's twin is there too stays as it is, and is refused with the unknown ones.

    Args:
        table: the file as it stands; it is left alone.
        label: what messages call it.

    Returns:
        The table, and a sentence for each key that was translated.
    """
    today = copy.deepcopy(dict(table))
    notes = []
    for prefix, part in (("", today), ("cpu.", today.get("cpu"))):
        actor = _table(_table(part, "trainer"), "actor")
        low = actor.get("min_std")
        if "std_range" in actor or isinstance(low, bool) or not isinstance(low, int | float):
            continue
        del actor["min_std"]
        actor["std_range"] = [float(low), HIGHEST_STD]
        key, value = f"{prefix}trainer.actor", format_value(actor["std_range"])
        notes.append(
            f"{label}: {key}.min_std = {format_value(low)} is from an older version, "
            f"read as std_range = {value}"
        )
    return today, notes


def _table(parent: object, name: str) -> dict[str, Any]:
    found = parent.get(name) if isinstance(parent, dict) else None
    return found if isinstance(found, dict) else {}
