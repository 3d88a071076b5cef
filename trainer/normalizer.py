"""Running mean and standard deviation of observations."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trainer.distributed import Group, Moments


class EmpiricalNormalizer(nn.Module):
    """Scales observations by the mean and standard deviation of all rows seen so far.

    The statistics change in `update` alone, which the loop calls once an iteration, after the last
    optimizer step. So one rollout and its update read the same numbers, and the ratio of the first
    mini-batch is 1. State-dict names, and the update, are RSL-RL's.

    Args:
        dim: width d of an observation.
        eps: added to the standard deviation, so that a constant column does not explode.
        until: rows after which the statistics stay as they are; unset: they never do.
    """

    _mean: Tensor
    _var: Tensor
    _std: Tensor
    count: Tensor

    def __init__(self, dim: int, eps: float = 1e-2, until: int | None = None) -> None:
        super().__init__()
        self.eps = eps
        self.until = until
        self.register_buffer("_mean", torch.zeros(1, dim))
        self.register_buffer("_var", torch.ones(1, dim))
        self.register_buffer("_std", torch.ones(1, dim))
        self.register_buffer("count", torch.tensor(0, dtype=torch.int64))

    def forward(self, obs: Tensor) -> Tensor:
        """Normalise `obs` [..., d]; the result is not clipped."""
        return (obs - self._mean) / (self._std + self.eps)

    @torch.no_grad()
    def update(self, *parts: Tensor, group: Group | None = None) -> None:
        """Take in the rows of `parts`, merged by the parallel form of Chan et al. (1979).

        The buffers are written in place: they stay ordinary tensors even where this runs in
        inference mode.

        Args:
            parts: [..., d_i] each, side by side in the columns; their widths add up to d. A column
                is a matter of its own, so they need not be joined.
            group: the ranks whose rows are taken in together; unset: this process alone.
        """
        var, mean = (
            torch.cat(columns, dim=1)
            for columns in zip(
                *(
                    torch.var_mean(part.flatten(0, -2), dim=0, correction=0, keepdim=True)
                    for part in parts
                ),
                strict=True,
            )
        )
        num_rows = parts[0].shape[:-1].numel()
        if group is not None:
            num_rows, mean, var = group.merge_moments(Moments(num_rows, mean, var))
        taken = num_rows if self.until is None else num_rows * (self.count < self.until)
        self.count += taken
        rate = taken / self.count.to(mean.dtype)
        delta = mean - self._mean
        self._mean += rate * delta
        self._var += rate * (var - self._var + delta * (mean - self._mean))
        self._std.copy_(self._var.sqrt())
