"""How runs differ in their settings, read from their folders as they stand there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from presets.toml import format_key, format_value, leaves
from trainer.summary import settings

UNSET = "unset"


def differing_settings(folders: Sequence[Path]) -> dict[str, list[str]]:
    """Return the keys whose values differ, each with the value of every run as TOML writes it.

    Runs of older versions and with terms of a person's own are compared too: nothing is checked.

    Args:
        folders: the runs.
    """
    tables = [
        {
            format_key(path): format_value(value)
            for path, value in leaves(settings(folder))
            if path not in (("name",), ("description",))
        }
        for folder in folders
    ]
    keys = dict.fromkeys(key for table in tables for key in table)
    values = {key: [table.get(key, UNSET) for table in tables] for key in keys}
    return {key: row for key, row in values.items() if len(set(row)) > 1}
