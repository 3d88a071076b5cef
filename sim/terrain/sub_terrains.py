"""The tiles: each function draws the heights of one square of ground on a grid of vertices.

A height field has one height a vertex, and between two vertices the ground is a plane. So a
vertical riser becomes a slope over one cell: with 0.1 m cells and a 0.12 m step, a slope of 50
degrees that begins one cell before the edge. A vertex on the edge has the height of the upper
side; the upper tread keeps its full width and the lower one loses a cell. Edges that fall between
vertices (those of the boxes, on 0.1 m cells) move by less than a cell. A finer
`horizontal_scale` makes risers steeper: 67 degrees with 0.05 m cells, 78 with 0.025 m.

Geometry and numbers are those of Isaac Lab's rough terrain, where stairs and boxes are meshes with
vertical risers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.terrain.config import (
    EDGE,
    BoxesConfig,
    PyramidSlopeConfig,
    PyramidStairsConfig,
    RandomRoughConfig,
    SubTerrainConfig,
    TerrainConfig,
    vertices_within,
)

Floats = NDArray[np.float64]

SPAWN_HALF_WIDTH = 1.0
"""m; a robot stands on the highest point of this half-width about the middle of rough ground."""


class Grid(NamedTuple):
    """The vertices of one tile, which begins at (0, 0)."""

    cells: int
    """Cells along a side; one vertex more."""
    horizontal_scale: float
    """Side of a cell, m."""
    vertical_scale: float
    """Heights of rough ground and slopes are multiples of this, m."""

    @property
    def size(self) -> float:
        """Side of the tile, m."""
        return self.cells * self.horizontal_scale

    @property
    def axis(self) -> Floats:
        """Coordinates of the vertices along one side, [cells + 1] m."""
        return np.arange(self.cells + 1, dtype=np.float64) * self.horizontal_scale


class Tile(NamedTuple):
    """One square of ground."""

    heights: Floats
    """Of the vertices, [cells + 1, cells + 1] m; rows along y."""
    origin_z: float
    """Height on which a robot is placed in the middle, m."""


def make_tile(
    name: str, config: TerrainConfig, difficulty: float, random: np.random.Generator
) -> Tile:
    """Draw the tile of a kind.

    Args:
        name: The kind, a field of `SubTerrainsConfig`.
        config: Settings of the ground.
        difficulty: From 0 to 1.
        random: Source of random numbers.
    """
    grid = Grid(config.cells_per_tile, config.horizontal_scale, config.vertical_scale)
    settings: SubTerrainConfig = getattr(config.sub_terrains, name)
    sign = -1.0 if name.endswith("_inv") else 1.0
    match settings:
        case PyramidStairsConfig():
            return pyramid_stairs(grid, settings, difficulty, sign)
        case BoxesConfig():
            return boxes(grid, settings, difficulty, random)
        case RandomRoughConfig():
            return random_rough(grid, settings, random)
        case PyramidSlopeConfig():
            return pyramid_slope(grid, settings, difficulty, sign)
    raise TypeError(f"there is no tile of {type(settings).__name__}")


def pyramid_stairs(
    grid: Grid, settings: PyramidStairsConfig, difficulty: float, sign: float
) -> Tile:
    """Square rings of steps about a platform, up for sign 1, down for -1."""
    height = sign * _pick(settings.step_height_range, difficulty)
    width, border = settings.step_width, settings.border_width
    room = grid.size - 2 * border - settings.platform_width
    steps = math.floor(room / (2 * width) + EDGE) + 2  # the last one is onto the platform

    def height_at(x: Floats, y: Floats) -> Floats:
        inset = np.minimum(np.minimum(x, grid.size - x), np.minimum(y, grid.size - y))
        level: Floats = np.clip(np.floor((inset - border) / width) + 1, 0, steps)
        return height * level

    return Tile(_on_vertices(grid, height_at), height * steps)


def boxes(
    grid: Grid, settings: BoxesConfig, difficulty: float, random: np.random.Generator
) -> Tile:
    """Square columns, each up to the largest height up or down; a platform at that height."""
    largest = _pick(settings.grid_height_range, difficulty)
    width = settings.grid_width
    count = math.floor(grid.size / width + EDGE)
    rim = (grid.size - count * width) / 2
    tops = random.uniform(-largest, largest, (count, count))

    def height_at(x: Floats, y: Floats) -> Floats:
        column = np.floor((x - rim) / width).astype(int)
        row = np.floor((y - rim) / width).astype(int)
        is_box = (column >= 0) & (column < count) & (row >= 0) & (row < count)
        top = np.where(is_box, tops[row.clip(0, count - 1), column.clip(0, count - 1)], 0.0)
        middle = grid.size / 2
        away = np.maximum(np.abs(x - middle), np.abs(y - middle))
        return np.where(away < settings.platform_width / 2, largest, top)

    return Tile(_on_vertices(grid, height_at), largest)


def random_rough(grid: Grid, settings: RandomRoughConfig, random: np.random.Generator) -> Tile:
    """Every vertex within the rim at one of the equally likely heights; has no difficulty."""
    lowest, highest, step = (
        round(value / grid.vertical_scale) for value in (*settings.noise_range, settings.noise_step)
    )
    choices = np.arange(lowest, highest + 1, max(step, 1)) * grid.vertical_scale
    inner = vertices_within(grid.cells, grid.horizontal_scale, settings.border_width)
    return _with_rim(grid, random.choice(choices, (inner, inner)))


def pyramid_slope(grid: Grid, settings: PyramidSlopeConfig, difficulty: float, sign: float) -> Tile:
    """The product of two ramps that rise (sign 1) or fall (-1) to the middle, cut off flat."""
    slope = sign * _pick(settings.slope_range, difficulty)
    inner = vertices_within(grid.cells, grid.horizontal_scale, settings.border_width)
    middle = inner // 2
    half = inner * grid.horizontal_scale / 2
    peak = math.trunc(slope * half / grid.vertical_scale + math.copysign(EDGE, slope))
    ramp = (middle - np.abs(middle - np.arange(inner))) / middle
    heights = peak * ramp[:, None] * ramp
    corner = middle - math.floor(settings.platform_width / grid.horizontal_scale / 2 + EDGE)
    top = heights[corner, corner]
    heights = np.clip(heights, min(0.0, top), max(0.0, top))
    return _with_rim(grid, np.rint(heights) * grid.vertical_scale)


def _pick(limits: tuple[float, float], difficulty: float) -> float:
    low, high = limits
    return low + difficulty * (high - low)


def _on_vertices(grid: Grid, height_at: Callable[[Floats, Floats], Floats]) -> Floats:
    """Heights of the vertices; one on an edge has that of the upper side, [cells + 1] squared m."""
    x, y = np.meshgrid(grid.axis, grid.axis)
    sides = [height_at(x + dx, y + dy) for dx in (-EDGE, EDGE) for dy in (-EDGE, EDGE)]
    heights: Floats = np.maximum.reduce(sides)
    return heights + 0.0  # no -0


def _with_rim(grid: Grid, inner: Floats) -> Tile:
    rim = (grid.cells + 1 - len(inner)) // 2
    heights = np.pad(inner, rim)
    axis = grid.axis
    low, high = grid.size / 2 - SPAWN_HALF_WIDTH, grid.size / 2 + SPAWN_HALF_WIDTH
    near = (axis > low - EDGE) & (axis < high - EDGE)
    return Tile(heights, float(heights[np.ix_(near, near)].max()))
