"""Checkpoints: written whole or not at all, read without executing code.

Torch is imported with the first checkpoint that is written or read, not before.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from trainer.contents import lacking, wrong_kinds
from trainer.whole import written_whole

SCHEMA_VERSION = 1
"""Grows when the contents of a checkpoint change their meaning."""

OWN_STATE = ("generator", "env", "obs", "actor_hidden", "critic_hidden", "episodes", "intrinsic")
"""Parts of a state that are another one on every rank: its worlds and its noise."""

WORLDS_BEFORE = "worlds_before"
"""Rank 0's worlds, for a rank whose own part is missing: how hard they were."""

_RSL_RL = {"model_state_dict", "actor_state_dict"}
"""Parts by which a checkpoint of RSL-RL's is known."""

_NAME = re.compile(r"model_(\d+)\.pt")


class CheckpointError(Exception):
    """A checkpoint that cannot be read; the message says which and why."""


class SchemaError(CheckpointError):
    """A whole checkpoint, but of another version of this program."""


class Newest(NamedTuple):
    """The newest checkpoint of a folder that can be read."""

    path: Path | None
    """None where none can be read."""
    state: dict[str, Any]
    unreadable: tuple[str, ...]
    """What is wrong with each newer one, a sentence each."""


def path_for(folder: Path, completed_iterations: int) -> Path:
    """Where the checkpoint after so many completed iterations lies."""
    return folder / f"model_{completed_iterations}.pt"


def save(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint, whole or not at all.

    Args:
        path: the checkpoint's final name.
        state: tensors, numbers, strings, lists and dicts only.

    Raises:
        OSError: it could not be written; whatever was at `path` is still there.
    """
    write_whole(path, {"schema_version": SCHEMA_VERSION, **state})


def write_whole(path: Path, contents: Mapping[str, Any]) -> None:
    """Write `contents` beside `path` in torch's format, flush it to the disk, then rename it.

    Raises:
        OSError: what the disk said; whatever was at `path` is still there.
    """
    import torch

    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as beside, beside.open("wb") as file:
        try:
            torch.save(dict(contents), file)
        except RuntimeError as error:  # torch hides behind it what the disk said
            hidden = error.__context__
            raise hidden if isinstance(hidden, OSError) else OSError(str(error)) from None
        file.flush()
        os.fsync(file.fileno())
    _flush_folder(path.parent)


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint onto the CPU.

    Raises:
        CheckpointError: it is missing, cut short or not a checkpoint, or a part of it is of
            another kind than it must be.
        SchemaError: it is of another schema.
    """
    import torch

    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such checkpoint") from None
    except Exception as error:  # torch raises many kinds for a damaged file
        reason = _why(path, error)
        raise CheckpointError(f"{path}: not readable as a checkpoint: {reason}") from error
    version = state.get("schema_version") if isinstance(state, dict) else None
    if not isinstance(version, int):
        reason = "it names no schema"
        if isinstance(state, dict) and _RSL_RL.intersection(state):
            reason = "it is one of RSL-RL's, which has to be imported"
        raise CheckpointError(f"{path}: not readable as a checkpoint: {reason}")
    if version != SCHEMA_VERSION:
        age = "a newer" if version > SCHEMA_VERSION else "an older"
        raise SchemaError(
            f"{path}: made by {age} version of this program, with checkpoint schema {version}; "
            f"this one reads schema {SCHEMA_VERSION}"
        )
    if problems := wrong_kinds(state):
        raise CheckpointError(f"{path}: not readable as a checkpoint: {'; '.join(problems)}")
    return dict(state)


def require(path: Path, state: Mapping[str, Any], needed: Collection[str]) -> None:
    """Refuse a checkpoint that lacks a part.

    Raises:
        CheckpointError: it does; says which.
    """
    if missing := lacking(state, needed):
        raise CheckpointError(f"{path}: lacks {', '.join(missing)}")


def world_size(state: Mapping[str, Any]) -> int:
    """How many processes trained together when a checkpoint was made."""
    return int(state.get("world_size", 1))


def for_rank(state: Mapping[str, Any], rank: int, world_size_now: int) -> dict[str, Any]:
    """The state with which a rank goes on.

    Without a part of its own, which is missing where the number of ranks has changed and where that
    rank was lost before it could be saved, a rank goes on with the learner in new worlds, which are
    as hard as rank 0's were.
    """
    if world_size(state) == world_size_now:
        if rank == 0:
            return {key: value for key, value in state.items() if key != "other_ranks"}
        others = state.get("other_ranks", [])
        if rank <= len(others) and (own := others[rank - 1]):
            return _shared(state) | dict(own)
    return with_new_worlds(state)


def with_new_worlds(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state from which only the learner goes on, in new worlds, as hard as rank 0's were."""
    return _shared(state) | {WORLDS_BEFORE: state.get("env", {})}


def _shared(state: Mapping[str, Any]) -> dict[str, Any]:
    """The parts that all ranks have in common."""
    return {key: value for key, value in state.items() if key not in (*OWN_STATE, "other_ranks")}


def saved(folder: Path) -> list[Path]:
    """The checkpoints in a folder, oldest first."""
    return [path_for(folder, number) for number in saved_iterations(folder)]


def saved_iterations(folder: Path) -> list[int]:
    """After how many completed iterations the checkpoints in a folder were made, in order."""
    found = (_NAME.fullmatch(path.name) for path in folder.glob("model_*.pt"))
    return sorted(int(match[1]) for match in found if match)


def newest_readable(folder: Path, needed: Collection[str] = ()) -> Newest:
    """Read the newest checkpoint of a folder that is whole.

    Args:
        folder: of checkpoints.
        needed: parts that it must hold.

    Raises:
        CheckpointError: the folder cannot be read.
        SchemaError: the newest whole one is of another schema. An older one is not taken instead:
            what came after it would be lost without need.
    """
    unreadable: list[str] = []
    try:
        os.listdir(folder)  # or a folder that may not be read would count as empty
    except FileNotFoundError:
        pass
    except OSError as error:
        raise CheckpointError(f"{folder}: cannot be read: {error.strerror}") from None
    for path in reversed(saved(folder)):
        try:
            state = load(path)
            require(path, state, needed)
            return Newest(path, state, tuple(unreadable))
        except SchemaError:
            raise
        except CheckpointError as error:
            unreadable.append(str(error))
    return Newest(None, {}, tuple(unreadable))


def _why(path: Path, error: Exception) -> str:
    # A checkpoint is a zip archive, whose directory stands at its end.
    if not isinstance(error, PermissionError) and not zipfile.is_zipfile(path):
        return "it is cut short, or something else"
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _flush_folder(folder: Path) -> None:
    """Make the rename itself durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
