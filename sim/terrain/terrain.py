"""The ground under N worlds, and where on it each of them stands."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from sim.managers.state import Stateful
from sim.terrain.config import TerrainConfig
from sim.terrain.generator import generate_terrain


class Terrain(Stateful):
    """Generated ground with levels; every world keeps its column and moves between levels.

    Worlds are spread over the columns in blocks of neighbours and begin at random levels. All
    stand on the same ground and do not meet: each has its own physics.

    Args:
        config: Settings of the ground.
        num_envs: N.
        generator: The env's source of random numbers. The ground itself depends on its first seed
            alone, so that it is the same on every device and whenever it is made.
    """

    buffers: ClassVar[tuple[str, ...]] = ("levels", "columns", "env_origins", "has_reached_top")

    def __init__(self, config: TerrainConfig, num_envs: int, generator: torch.Generator) -> None:
        self.map = generate_terrain(config, generator.initial_seed() % 2**63)
        """The ground itself."""
        device = generator.device
        self._generator = generator
        self._origins = torch.from_numpy(self.map.origins).float().to(device)
        self._kinds = torch.from_numpy(self.map.kinds).to(device)
        self.num_levels = config.num_rows
        """Levels, 0 the easiest."""
        highest = min(config.max_init_terrain_level, config.num_rows - 1)
        index = torch.arange(num_envs, device=device)
        self.levels = torch.randint(
            highest + 1, (num_envs,), generator=generator, device=device, dtype=torch.int64
        )
        """Row of each world's tile, [N]."""
        self.columns = index * config.num_cols // num_envs
        """Column of each world's tile, [N]; it never changes."""
        self.env_origins = self._origins[self.levels, self.columns]
        """Where the worlds stand, [N, 3] m."""
        self.has_reached_top = self.levels == self.num_levels - 1
        """Worlds that were at the last level at any time, [N] bool."""

    @property
    def kinds(self) -> Tensor:
        """Kind of each world's tile, an index into `map.names`, [N]."""
        return self._kinds[self.levels, self.columns]

    def move(self, ids: Tensor, levels: Tensor) -> None:
        """Move the worlds `ids` [K] by so many levels, [K] int64, and their origins with them.

        A world that would pass the last level goes to a random one, so that no level is forgotten;
        the mean level therefore settles below the top. None goes below the first.
        """
        new = self.levels[ids] + levels
        anywhere = torch.randint(
            self.num_levels, new.shape, generator=self._generator, device=new.device
        )
        new = torch.where(new < self.num_levels, new.clamp(min=0), anywhere)
        self.levels[ids] = new
        self.env_origins[ids] = self._origins[new, self.columns[ids]]
        self.has_reached_top[ids] |= new == self.num_levels - 1

    def summary(self) -> dict[str, float]:
        """Levels for the log: "" the mean of all worlds, then by kind; fetches once from a GPU."""
        counts = self.level_counts()
        reached = self.has_reached_top.sum().view(1)
        *flat, at_top = torch.cat((counts.flatten(), reached)).tolist()
        by_kind = {
            name: flat[k * self.num_levels : (k + 1) * self.num_levels]
            for k, name in enumerate(self.map.names)
        }
        total = [sum(column) for column in zip(*by_kind.values(), strict=True)]
        summary = {"": _mean_level(total), "reached_top": at_top / len(self.levels)}
        for name, worlds in by_kind.items():
            if any(worlds):
                summary[name] = _mean_level(worlds)
                summary |= {f"{name}/level_{k}": float(n) for k, n in enumerate(worlds)}
        return summary

    def level_counts(self) -> Tensor:
        """Worlds by kind and level, [kinds, levels] int64."""
        shape = len(self.map.names), self.num_levels
        place = self.kinds * self.num_levels + self.levels
        return torch.bincount(place, minlength=shape[0] * shape[1]).view(shape)


def _mean_level(worlds: list[int]) -> float:
    """Mean level of so many worlds at each level."""
    return sum(level * n for level, n in enumerate(worlds)) / sum(worlds)
