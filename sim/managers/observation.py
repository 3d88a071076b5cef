"""Observations: for each group one row a world, its terms side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from sim.config import ObservationSettings
from sim.managers.binding import bind
from sim.managers.calling import Path, call, row_per_world

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv


class ObservationGroup:
    """The terms of one group; noise, clip and scale act on the whole row at once."""

    def __init__(
        self, env: ManagerBasedEnv, name: str, settings: Mapping[str, ObservationSettings]
    ) -> None:
        self._env = env
        self._terms: list[tuple[Path, Callable[..., Tensor], int]] = []
        for key, entry in settings.items():
            path = ("observations", name, key)
            bound = bind(env, path, entry)
            is_class = isinstance(bound.func, type)
            term: Callable[..., Any] = call(path, bound, env) if is_class else bound
            width = row_per_world(path, call(path, term, env), env).shape[1]
            self._terms.append((path, term, width))
        widths = [width for _, _, width in self._terms]
        self.terms = tuple(zip(settings, widths, strict=True))

        def columns(values: list[float]) -> Tensor:
            wide = [v for v, width in zip(values, widths, strict=True) for _ in range(width)]
            return torch.tensor(wide, device=env.device)

        entries = list(settings.values())
        noise = [entry.noise or (0.0, 0.0) for entry in entries]
        low = columns([low for low, _ in noise])
        span = columns([high - low for low, high in noise])
        # Columns without noise draw no random numbers.
        self._noisy = ((low != 0) | (span != 0)).nonzero().squeeze(1)
        self._noise_low, self._noise_span = low[self._noisy], span[self._noisy]

        clip = [entry.clip or (-math.inf, math.inf) for entry in entries]
        self._clip = (columns([low for low, _ in clip]), columns([high for _, high in clip]))
        self._scale = columns([entry.scale for entry in entries])
        self._has_clip = any(entry.clip for entry in entries)
        self._has_scale = any(entry.scale != 1.0 for entry in entries)

    def compute(self) -> Tensor:
        """Compute a new row [N, O] for every world: values, then noise, clip and scale."""
        env = self._env
        parts = [
            row_per_world(path, call(path, term, env), env, width)
            for path, term, width in self._terms
        ]
        row = torch.cat(parts, dim=1).float()  # the engine's own numbers may be float64
        if len(self._noisy):
            noise = torch.rand(
                len(row), len(self._noisy), generator=self._env.generator, device=row.device
            )
            noise.mul_(self._noise_span).add_(self._noise_low)
            row.index_add_(1, self._noisy, noise)
        if self._has_clip:
            row.clamp_(*self._clip)
        if self._has_scale:
            row.mul_(self._scale)
        return row


class ObservationManager:
    """All observation groups."""

    def __init__(
        self,
        env: ManagerBasedEnv,
        settings: Mapping[str, Mapping[str, ObservationSettings]],
    ) -> None:
        self.groups = {name: ObservationGroup(env, name, terms) for name, terms in settings.items()}

    def compute(self) -> dict[str, Tensor]:
        """Compute all groups afresh, with new noise: name to [N, O_g]."""
        return {name: group.compute() for name, group in self.groups.items()}
