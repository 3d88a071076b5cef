"""Gymnasium's spaces as plain vectors. Free of torch.

PPO's policy here is a Gaussian over A numbers. A `Box` of actions takes them scaled, so that -1 and
1 are its ends; where it has no ends they are taken as they are. Of a `Discrete` choice each number
speaks for one option, and the largest wins: the noise of the Gaussian then explores the options.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Floats = NDArray[np.float32]
ToActions = Callable[[Floats], Any]
"""From the policy's numbers [N, A] to a batch of actions."""


def complaint(observation: spaces.Space[Any], action: spaces.Space[Any]) -> str:
    """Say why PPO cannot learn between these spaces of one world; empty if it can."""
    if not observation.is_np_flattenable:
        return f"observations of the kind {type(observation).__name__} have no fixed width"
    if isinstance(action, spaces.Box):
        return "" if action.shape != (0,) else "there are no actions"
    if not isinstance(action, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        return (
            f"actions of the kind {type(action).__name__} cannot be chosen by a Gaussian; "
            "Box, Discrete, MultiDiscrete and MultiBinary can"
        )
    return ""


def action_width(action: spaces.Space[Any]) -> int:
    """Return A: how many numbers of the policy make one action."""
    return len(action_names(action))


def action_names(action: spaces.Space[Any]) -> tuple[str, ...]:
    """What each number of the policy drives."""
    match action:
        case spaces.Box():
            return tuple(f"action_{i}" for i in range(int(np.prod(action.shape))))
        case spaces.Discrete():
            return tuple(f"option_{int(action.start) + i}" for i in range(int(action.n)))
        case spaces.MultiDiscrete():
            sizes = enumerate(action.nvec.flatten())
            return tuple(f"choice_{c}_option_{i}" for c, size in sizes for i in range(size))
        case spaces.MultiBinary():
            return tuple(f"switch_{i}" for i in range(int(np.prod(action.shape))))
    raise TypeError(f"no action of a Gaussian: {action}")


def to_actions(action: spaces.Space[Any]) -> ToActions:
    """Return the function that turns the policy's numbers [N, A] into a batch of actions."""
    match action:
        case spaces.Box():
            return _scaled(action)
        case spaces.Discrete():
            start = int(action.start)
            return lambda numbers: start + np.argmax(numbers, axis=1)
        case spaces.MultiDiscrete():
            return _choices(action)
        case spaces.MultiBinary():
            shape = action.shape
            return lambda numbers: (numbers > 0).astype(np.int8).reshape(-1, *shape)
    raise TypeError(f"no action of a Gaussian: {action}")


def _scaled(box: spaces.Box) -> ToActions:
    low, high = (np.asarray(end, np.float64).ravel() for end in (box.low, box.high))
    bounded = np.isfinite(low) & np.isfinite(high)
    middle = np.where(bounded, (np.where(bounded, low, 0) + np.where(bounded, high, 0)) / 2, 0)
    reach = np.where(bounded, (np.where(bounded, high, 0) - np.where(bounded, low, 0)) / 2, 1)

    def scale(numbers: Floats) -> Any:  # noqa: ANN401 - an array of the box's type
        wanted = middle + reach * numbers
        return np.clip(wanted, low, high).astype(box.dtype).reshape(-1, *box.shape)

    return scale


def _choices(action: spaces.MultiDiscrete) -> ToActions:
    sizes = action.nvec.flatten()
    ends = np.cumsum(sizes)
    starts = action.start.flatten()

    def choose(numbers: Floats) -> Any:  # noqa: ANN401 - an array of whole numbers
        columns = [
            start + np.argmax(numbers[:, end - size : end], axis=1)
            for start, size, end in zip(starts, sizes, ends, strict=True)
        ]
        return np.stack(columns, axis=1).reshape(-1, *action.shape)

    return choose
