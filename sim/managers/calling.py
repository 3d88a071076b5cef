"""Calling terms, a person's own among them: what goes wrong in one is told with its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from sim.step import SteppedEnv

Path = Sequence[str]
"""Where a term stands in the config, such as ("rewards", "feet_air_time")."""


def call(path: Path, term: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401 - a term's own
    """Call a term; an error that it raises carries a note that names the term."""
    try:
        return term(*args)
    except Exception as error:
        note = f"in the term {dotted(path)}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise


def made(path: Path, term: Callable[..., Any], env: SteppedEnv, kind: type) -> Any:  # noqa: ANN401
    """Make the object of a term that is a class.

    Raises:
        TypeError: It is not one of the class that its manager can use.
    """
    thing = call(path, term, env)
    if not isinstance(thing, kind):
        raise TypeError(
            f"{dotted(path)}: {type(thing).__name__} must be a subclass of "
            f"{kind.__module__}.{kind.__name__}"
        )
    return thing


def per_world(path: Path, value: object, env: SteppedEnv) -> Tensor:
    """Let a value pass that has one number a world.

    Raises:
        TypeError: It is no tensor.
        ValueError: It has another shape than [N], or lives elsewhere than the worlds.
    """
    tensor = _tensor_of(path, value, env)
    if tensor.shape != (env.num_envs,):
        raise ValueError(
            f"{dotted(path)} returned a tensor {list(tensor.shape)}; it must return one number a "
            f"world, [{env.num_envs}]"
        )
    return tensor


def row_per_world(path: Path, value: object, env: SteppedEnv, width: int | None = None) -> Tensor:
    """Let a value pass that has one row a world.

    Args:
        path: Where the term stands.
        value: What it returned.
        env: The worlds.
        width: Entries of a row; None: any number.

    Raises:
        TypeError: It is no tensor.
        ValueError: It has another shape than [N, width], or lives elsewhere than the worlds.
    """
    tensor = _tensor_of(path, value, env)
    shape = (env.num_envs, tensor.shape[-1] if width is None and tensor.dim() else width)
    if tensor.shape != shape or tensor.dim() != 2:
        wanted = f"[{env.num_envs}, {'width' if width is None else width}]"
        raise ValueError(
            f"{dotted(path)} returned a tensor {list(tensor.shape)}; it must return one row a "
            f"world, {wanted}"
        )
    return tensor


def dotted(path: Path) -> str:
    """The full key of a term."""
    return ".".join(("env", *path))


def _tensor_of(path: Path, value: object, env: SteppedEnv) -> Tensor:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{dotted(path)} returned {type(value).__name__}; it must return a tensor")
    if value.device != env.device:
        raise ValueError(
            f"{dotted(path)} returned a tensor on {value.device}, the worlds are on {env.device}"
        )
    return value
