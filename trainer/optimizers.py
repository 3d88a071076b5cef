"""The optimizers to choose from, with torch's defaults but for the learning rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch
from torch import nn

from trainer.config import OptimizerName

_OPTIMIZERS: Mapping[OptimizerName, Callable[..., torch.optim.Optimizer]] = {
    "adam": partial(torch.optim.Adam, fused=True),
    "adamw": partial(torch.optim.AdamW, fused=True),
    "sgd": partial(torch.optim.SGD, fused=True),
    "rmsprop": torch.optim.RMSprop,  # torch has no fused one
}
"""Fused: one kernel for all parameters, the same numbers but for rounding."""


_TELLING = ("betas", "alpha", "momentum")
"""Settings by which one kind of optimizer is told from another."""


def make_optimizer(
    name: OptimizerName, parameters: Iterable[nn.Parameter], learning_rate: float
) -> torch.optim.Optimizer:
    """Make an optimizer over all parameters, as one group."""
    return _OPTIMIZERS[name](parameters, lr=learning_rate)


def require_fitting_state(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Refuse a state that torch would take in without a word, and crash on.

    Args:
        optimizer: whose state it is to become.
        state: as a `state_dict` returned it.

    Raises:
        ValueError: it is that of another kind of optimizer, or of other parameters.
    """
    (ours,) = optimizer.param_groups
    groups = state["param_groups"]
    if len(groups) != 1 or any((key in groups[0]) != (key in ours) for key in _TELLING):
        raise ValueError("the saved optimizer is of another kind than this one")
    shapes = [parameter.shape for parameter in ours["params"]]
    if len(groups[0]["params"]) != len(shapes):
        raise ValueError(
            f"the saved optimizer is of {len(groups[0]['params'])} parameters, "
            f"these networks have {len(shapes)}"
        )
    kept = state["state"]
    for index, parameter in enumerate(ours["params"]):
        if kept and index not in kept and parameter.requires_grad:
            raise ValueError(f"the saved averages lack those of parameter {index}")
    for index, moments in kept.items():
        for name, tensor in moments.items():
            if isinstance(tensor, torch.Tensor) and tensor.ndim and tensor.shape != shapes[index]:
                raise ValueError(
                    f"the saved optimizer's {name} of parameter {index} has shape "
                    f"{list(tensor.shape)}, the parameter {list(shapes[index])}"
                )
