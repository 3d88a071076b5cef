"""Stops an update before a non-finite number reaches the weights, and names where it began."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from trainer.rollout import Rollout, Samples


class NonFiniteError(ArithmeticError):
    """A tensor of the learner holds NaN or infinity.

    Attributes:
        quantity: name of the first bad tensor.
        columns: its bad columns, for an observation group or an action; else empty.
        index: place of its first bad entry, in the order of memory.
        value: that entry.
    """

    def __init__(self, quantity: str, tensor: Tensor) -> None:
        bad = ~torch.isfinite(tensor)
        self.quantity = quantity
        self.index = tuple(int(part) for part in bad.nonzero()[0].tolist()) if bad.any() else ()
        self.value = float(tensor.detach()[self.index]) if bad.any() else math.nan
        self.columns: tuple[int, ...] = ()
        message = f"{quantity}: {int(bad.sum())} of {bad.numel()} non-finite"
        if bad.dim() > 1 and bad.shape[-1] > 1:
            self.columns = tuple(bad.flatten(0, -2).any(0).nonzero().flatten().tolist())
            shown = ", ".join(map(str, self.columns[:8]))
            more = ", ..." if len(self.columns) > 8 else ""
            message += f", column{'s' if len(self.columns) > 1 else ''} {shown}{more}"
        super().__init__(message)


def check_rollout(rollout: Rollout) -> None:
    """Refuse a rollout that holds a non-finite number; one pass and one wait for the device.

    Raises:
        NonFiniteError: names the tensor in which it appeared first: the earliest step, and on one
            step the order of computation.
    """
    of_steps = dict(stepwise(rollout, rollout.num_steps))
    targets = {"returns": rollout.returns, "advantages": rollout.advantages}
    if all_finite((*of_steps.values(), *targets.values())):
        return
    if name := first_bad_of_steps(rollout, rollout.num_steps):
        raise NonFiniteError(name, of_steps[name])
    raise_first_non_finite(targets.items())


def first_bad_of_steps(rollout: Rollout, num_steps: int) -> str:
    """Name of the tensor in which a bad number appeared first within the first steps; "" if none.

    That is the one of the earliest step, and on one step the first in the order of computation.
    """
    rows = {name: _first_bad_row(tensor) for name, tensor in stepwise(rollout, num_steps)}
    name = min(rows, key=lambda name: rows[name])  # the first of equals
    return name if rows[name] < num_steps else ""


def all_finite(tensors: Iterable[Tensor]) -> bool:
    """Whether no entry is NaN or infinite; False also where a sum of large numbers overflows.

    A sum passes over a tensor once and carries every NaN and infinity through.
    """
    return math.isfinite(torch.stack([tensor.sum() for tensor in tensors]).sum().item())


def raise_first_non_finite(named: Iterable[tuple[str, Tensor]]) -> None:
    """Raise for the first of the tensors that holds NaN or infinity; return if none does.

    Raises:
        NonFiniteError: names that tensor.
    """
    for name, tensor in named:
        if not bool(torch.isfinite(tensor).all()):
            raise NonFiniteError(name, tensor)


def named_samples(batch: Samples) -> Iterator[tuple[str, Tensor]]:
    """A mini-batch's tensors with their names, in the order in which one follows from another."""
    for group, tensor in batch.observations.items():
        yield f"observations {group}", tensor
    yield from (
        ("means", batch.means),
        ("stds", batch.stds),
        ("actions", batch.actions),
        ("log_probs", batch.log_probs),
        ("values", batch.values),
        ("returns", batch.returns),
        ("advantages", batch.advantages),
    )


def stepwise(rollout: Rollout, num_steps: int) -> Iterator[tuple[str, Tensor]]:
    """What was stored in the first steps, with names, in the order of computation."""
    for group, tensor in rollout.observations.items():
        yield f"observations {group}", tensor[:num_steps]
    for name in ("means", "stds", "actions", "log_probs", "values", "rewards"):
        yield name, getattr(rollout, name)[:num_steps]


def _first_bad_row(tensor: Tensor) -> int:
    bad = (~torch.isfinite(tensor)).flatten(1).any(1).nonzero()
    return int(bad[0]) if len(bad) else len(tensor)
