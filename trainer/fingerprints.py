"""Sums over the bits of tensors, which change with every bit that changes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

MAX_WORDS = 1 << 17
"""Of a larger tensor only evenly spaced rows are summed, about this many entries."""

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@torch.no_grad()
def fingerprint(*tensors: Tensor) -> Tensor:
    """Add up the bits of tensors as integers, [] int64; equal tensors have equal sums."""
    sums = [_sum_of_words(tensor) for tensor in tensors]
    return torch.stack(sums).sum() if len(sums) > 1 else sums[0]


def _sum_of_words(tensor: Tensor) -> Tensor:
    stride = tensor.numel() // MAX_WORDS
    if stride > 1:
        tensor = tensor.flatten(0, -2)[::stride] if tensor.ndim > 1 else tensor[::stride]
    return tensor.detach().view(_WORDS[tensor.element_size()]).sum(dtype=torch.int64)


def parameters_fingerprint(*networks: nn.Module, buffers: bool = False) -> Tensor:
    """`fingerprint` of all parameters, and if asked of the buffers; one pass over one copy."""
    tensors: list[Tensor] = [p for network in networks for p in network.parameters()]
    if buffers:
        tensors += [buffer for network in networks for buffer in network.buffers()]
    alike = [t.detach().flatten() for t in tensors if t.dtype is torch.float32]
    others = [t.detach() for t in tensors if t.dtype is not torch.float32]
    return fingerprint(torch.cat(alike), *others) if alike else fingerprint(*others)
