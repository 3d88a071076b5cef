"""The worlds' numbers in the library that computes a little with them the fastest."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Array: TypeAlias = Any
"""A NumPy array or a tensor. What is computed with operators, `clip`, slices, and assignments to
slices alone can be computed with either."""


def quick(tensor: Tensor) -> Array:
    """The memory of a tensor as a NumPy array where it is the CPU's; elsewhere the tensor itself.

    At some hundreds of worlds an operation is over in a microsecond. Torch takes several more to
    begin one, NumPy less than one, and every physics tick waits for a dozen of them.
    """
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


def columns(array: Array, index: Array) -> Array:
    """The columns `index` of a matrix, copied."""
    if hasattr(array, "index_select"):
        return array.index_select(1, index)
    return array.take(index, axis=1)


def row_like(array: Array, values: tuple[float, ...]) -> Array:
    """One number a column of a matrix, [J], in its library, precision and place."""
    if hasattr(array, "index_select"):
        return _row(values, array.dtype, array.device)
    import numpy as np

    return np.asarray(values, array.dtype)


@functools.cache
def _row(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Made once, since a tick may not wait for a copy to a GPU."""
    import torch

    return torch.tensor(values, dtype=dtype, device=device)
