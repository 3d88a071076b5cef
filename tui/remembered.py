"""How a person left the screen, kept from one run of the program to the next.

Nothing here is worth an error: a file that is missing, broken or out of reach is the default, and
one that cannot be written is not written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from trainer.whole import folder_made, written_whole

LARGEST = 1 << 16
"""Bytes that are read; a longer file is none of ours."""


@dataclass(frozen=True)
class Remembered:
    """What the screen opens with; a value that means nothing to the screen is passed over there."""

    view: str = "overview"
    """The dashboard's view."""
    reach: int = 0
    """Iterations that the charts reach back; 0 is the whole run."""
    smoothing: float = 0.0
    """Weight of the past in the curves."""
    log_axis: tuple[str, ...] = ()
    """Ids of the charts with a logarithmic axis."""
    quantity: str = "reward"
    """What the rollout's map shows."""
    theme: str = ""
    """Theme that was chosen by key; empty: none was, so that the terminal decides."""
    charset: str = ""
    """Characters that were chosen by key; empty: none were."""


def place(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file, or None where there is no home for it; no other folder is meant."""
    state = environment.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # the standard has a relative one ignored
        home = os.path.expanduser("~")
        if not os.path.isabs(home):
            return None
        state = os.path.join(home, ".local", "state")
    # A person may keep the file elsewhere and link to it; the link stays.
    return Path(os.path.realpath(os.path.join(state, "ppo-tui", "screen.json")))


def read() -> Remembered:
    """Return what was written last, as far as it is of the right kind."""
    path = place()
    try:
        if path is None or not path.is_file():  # a pipe would be waited for
            return Remembered()
        with path.open("rb") as file:
            found = json.loads(file.read(LARGEST))
    except (OSError, ValueError, RecursionError):
        return Remembered()
    return _understood(found) if isinstance(found, dict) else Remembered()


def write(remembered: Remembered) -> None:
    """Write it in one piece, or leave all as it was."""
    path = place()
    if path is None:
        return
    try:
        if path.exists() and not path.is_file():
            return
        with folder_made(path.parent), written_whole(path) as beside:
            beside.write_text(json.dumps(asdict(remembered), indent=2) + "\n", encoding="utf-8")
    except OSError:
        return


def _understood(found: Mapping[str, object]) -> Remembered:
    """Take the values of the right type; JSON has no tuples, and writes 0.0 as it likes."""
    taken: dict[str, object] = {}
    for field in fields(Remembered):
        value = found.get(field.name)
        match field.default:
            case str() if isinstance(value, str):
                taken[field.name] = value
            case float() | int() if isinstance(value, int | float):
                taken[field.name] = value
            case tuple() if isinstance(value, list):
                taken[field.name] = tuple(one for one in value if isinstance(one, str))
    return Remembered(**taken)  # type: ignore[arg-type]
