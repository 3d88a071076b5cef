"""Observations and actions of an env as a mirror shows them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from sim.symmetry import Reflection, Reflections


class Mirror:
    """Applies reflections to rows of tensors; done twice, every row is what it was, bit for bit.

    Args:
        reflections: which column stands where.
        device: where the rows live.
    """

    def __init__(self, reflections: Reflections, device: torch.device) -> None:
        self._groups = {
            group: _Columns(reflection, device)
            for group, reflection in reflections.observations.items()
        }
        self._actions = _Columns(reflections.actions, device)

    def observations(self, observations: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Mirror observation groups, group to [..., O_g]."""
        return {group: self._groups[group](rows) for group, rows in observations.items()}

    def actions(self, actions: Tensor) -> Tensor:
        """Mirror actions [..., A]."""
        return self._actions(actions)


class _Columns:
    def __init__(self, reflection: Reflection, device: torch.device) -> None:
        self._source = torch.tensor(reflection.source, device=device)
        self._sign = torch.tensor(reflection.sign, device=device)

    def __call__(self, rows: Tensor) -> Tensor:
        return rows.index_select(-1, self._source) * self._sign
