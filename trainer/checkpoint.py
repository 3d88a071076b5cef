"""Checkpoints: written whole or not at all, read without executing code."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import torch

SCHEMA_VERSION = 1
"""Grows when the contents of a checkpoint change their meaning."""

_NAME = re.compile(r"model_(\d+)\.pt")


class CheckpointError(Exception):
    """A checkpoint that cannot be read; the message says which and why."""


def path_for(folder: Path, completed_iterations: int) -> Path:
    """Where the checkpoint after so many completed iterations lies."""
    return folder / f"model_{completed_iterations}.pt"


def save(path: Path, state: dict[str, Any]) -> None:
    """Write `state` beside `path`, flush it to the disk, then rename it into place.

    Args:
        path: the checkpoint's final name.
        state: tensors, numbers, strings, lists and dicts only.

    Raises:
        OSError: it could not be written; whatever was at `path` is still there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            try:
                torch.save({"schema_version": SCHEMA_VERSION, **state}, file)
            except RuntimeError as error:  # torch reports a full disk as a RuntimeError
                raise OSError(f"{path}: {error}") from error
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint onto the CPU.

    Raises:
        CheckpointError: it is missing, cut short, not a checkpoint, or of another schema.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such checkpoint") from None
    except Exception as error:  # torch raises many kinds for a damaged file
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path}: not readable as a checkpoint: {reason}") from error
    version = state.get("schema_version") if isinstance(state, dict) else None
    if version != SCHEMA_VERSION:
        raise CheckpointError(
            f"{path}: made by checkpoint schema {version}, this program reads {SCHEMA_VERSION}"
        )
    return dict(state)


def saved(folder: Path) -> list[Path]:
    """The checkpoints in a folder, oldest first."""
    found = [(int(m[1]), p) for p in folder.glob("model_*.pt") if (m := _NAME.fullmatch(p.name))]
    return [path for _, path in sorted(found)]


def _flush_folder(folder: Path) -> None:
    """Make the rename itself durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
