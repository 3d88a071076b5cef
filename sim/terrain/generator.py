"""The whole ground: tiles in rows and columns with a flat border, as one grid of heights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.terrain.config import TerrainConfig
from sim.terrain.sub_terrains import make_tile

COLUMN_OFFSET = 1e-3
"""Added to a column's place among the shares, so that rounding does not give it the kind before."""


@dataclass(frozen=True)
class TerrainMap:
    """Generated ground. The middle of all tiles is at x = y = 0."""

    heights: NDArray[np.float32]
    """Heights of the vertices, [along y, along x] m."""
    horizontal_scale: float
    """Distance of neighbouring vertices, m."""
    origins: NDArray[np.float64]
    """Where a robot is placed on each tile, [rows, cols, 3] m; rows lie along x."""
    kinds: NDArray[np.int64]
    """Kind of each tile, an index into `names`, [rows, cols]."""
    names: tuple[str, ...]
    """Names of the kinds."""
    tile_size: float
    """Side of a tile, m."""

    @property
    def half_extent(self) -> tuple[float, float]:
        """Half of the ground's length along x and along y, m."""
        along_y, along_x = self.heights.shape
        return (
            (along_x - 1) * self.horizontal_scale / 2,
            (along_y - 1) * self.horizontal_scale / 2,
        )


def generate_terrain(config: TerrainConfig, seed: int) -> TerrainMap:
    """Draw all tiles.

    With `curriculum`, a column is of one kind and difficulty grows along the rows: that of row r
    is uniform in the r-th part of the range, drawn for each tile. Without it, kind and difficulty
    of every tile are drawn.

    Args:
        config: Settings of the ground.
        seed: Seed of all that is drawn, where the settings have none of their own.
    """
    random = np.random.default_rng(seed if config.seed is None else config.seed)
    names = tuple(config.proportions)
    shares = np.array(list(config.proportions.values()))
    rows, cols = config.num_rows, config.num_cols
    tile, border = config.cells_per_tile, config.border_cells
    heights = np.zeros((cols * tile + 2 * border + 1, rows * tile + 2 * border + 1), np.float32)
    origins = np.zeros((rows, cols, 3))
    kinds = np.zeros((rows, cols), np.int64)
    low, high = config.difficulty_range

    for col in range(cols):
        for row in range(rows):
            if config.curriculum:
                kind = column_kind(col / cols, shares)
                difficulty = low + (high - low) * (row + random.random()) / rows
            else:
                kind = int(random.choice(len(names), p=shares))
                difficulty = random.uniform(low, high)
            drawn = make_tile(names[kind], config, difficulty, random)
            # neighbours share the vertices of their common edge, which all kinds leave at 0
            x, y = border + row * tile, border + col * tile
            heights[y : y + tile + 1, x : x + tile + 1] = drawn.heights
            kinds[row, col] = kind
            origins[row, col] = (
                (row + 0.5 - rows / 2) * config.size,
                (col + 0.5 - cols / 2) * config.size,
                drawn.origin_z,
            )
    return TerrainMap(heights, config.horizontal_scale, origins, kinds, names, config.size)


def column_kind(place: float, shares: NDArray[np.float64]) -> int:
    """Kind of the column at a place from 0 to 1, so that the kinds get their shares in order."""
    return int(np.argmax(place + COLUMN_OFFSET < np.cumsum(shares)))
