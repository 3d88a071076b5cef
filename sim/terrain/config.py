"""Settings of generated ground. Free of NumPy and torch, so that the menu reads presets at once."""

from __future__ import annotations

import math
from typing import Annotated, Self

from pydantic import Field, model_validator

from sim.settings import NonNegativeFloat, PositiveFloat, PositiveInt, RisingRange, Settings

FLOOR = "floor"
"""Name of the geom, a plane, that the model of a walking robot stands on; terrain replaces it."""
EDGE = 1e-6
"""m; a vertex nearer than this to an edge lies on it."""
MAX_TERRAIN_HEIGHTS = 2**27
"""Heights of one height field, 512 MiB in the engine; the usual ground has 2.4 million."""


class SubTerrainConfig(Settings):
    """One kind of tile; `difficulty`, from 0 to 1, picks a place in its range."""

    proportion: NonNegativeFloat
    """Share of the columns that are of this kind, relative to the other kinds'; 0 leaves it out."""


class PyramidStairsConfig(SubTerrainConfig):
    """Concentric square stairs that lead up (or, inverted, down) to a platform."""

    step_height_range: RisingRange = (0.025, 0.12)
    """Height of one step in m, from the easiest level to the hardest."""
    step_width: PositiveFloat = 0.3
    """Depth of one tread, m."""
    platform_width: PositiveFloat = 3.0
    """Side of the platform in the middle, m; it shrinks to what whole steps leave."""
    border_width: NonNegativeFloat = 1.0
    """Width of the flat rim, m."""


class BoxesConfig(SubTerrainConfig):
    """A grid of square columns of random height about a platform."""

    grid_width: PositiveFloat = 0.45
    """Side of one column, m."""
    grid_height_range: RisingRange = (0.025, 0.1)
    """Most that a column stands out or is sunk in, m, from the easiest level to the hardest."""
    platform_width: PositiveFloat = 2.0
    """Side of the platform in the middle, m."""


class RandomRoughConfig(SubTerrainConfig):
    """Every vertex at a height of its own; the same at all levels."""

    noise_range: RisingRange = (0.01, 0.06)
    """Lowest and highest height, m."""
    noise_step: PositiveFloat = 0.01
    """Distance between two heights that occur, m."""
    border_width: NonNegativeFloat = 0.25
    """Width of the flat rim, m; at least one cell more than this stays flat."""


class PyramidSlopeConfig(SubTerrainConfig):
    """A hill (or, inverted, a hollow) with a flat top."""

    slope_range: RisingRange = (0.0, 0.4)
    """Rise over run along the middle, from the easiest level to the hardest."""
    platform_width: PositiveFloat = 2.0
    """Side of the flat top, m."""
    border_width: NonNegativeFloat = 0.25
    """Width of the flat rim, m; at least one cell more than this stays flat."""


class SubTerrainsConfig(Settings):
    """The kinds of tiles, in the order in which the columns take them."""

    pyramid_stairs: PyramidStairsConfig = PyramidStairsConfig(proportion=0.2)
    """Stairs up to a platform."""
    pyramid_stairs_inv: PyramidStairsConfig = PyramidStairsConfig(proportion=0.2)
    """Stairs down into a pit."""
    boxes: BoxesConfig = BoxesConfig(proportion=0.2)
    """Columns of random height."""
    random_rough: RandomRoughConfig = RandomRoughConfig(proportion=0.2)
    """Rough ground."""
    hf_pyramid_slope: PyramidSlopeConfig = PyramidSlopeConfig(proportion=0.1)
    """A hill."""
    hf_pyramid_slope_inv: PyramidSlopeConfig = PyramidSlopeConfig(proportion=0.1)
    """A hollow."""


def vertices_of_rim(horizontal_scale: float, border_width: float) -> int:
    """Vertices of a tile that a rim keeps flat on each side: one cell more than its width."""
    return math.floor(border_width / horizontal_scale + EDGE) + 1


def vertices_within(cells: int, horizontal_scale: float, border_width: float) -> int:
    """Vertices along a side of a tile that lie within its rim; none or fewer: no room."""
    return cells + 1 - 2 * vertices_of_rim(horizontal_scale, border_width)


class TerrainConfig(Settings):
    """Generated ground: tiles in rows (levels) along x and columns (kinds) along y.

    The defaults are those of Isaac Lab's rough terrain, with the heights that its develop branch
    gives a Go2.
    """

    size: PositiveFloat = 8.0
    """Side of a tile, m."""
    border_width: NonNegativeFloat = 20.0
    """Width of the flat ground around all tiles, m."""
    num_rows: PositiveInt = 10
    """Levels, from the easiest to the hardest."""
    num_cols: PositiveInt = 20
    """Tiles of every level."""
    horizontal_scale: Annotated[float, Field(gt=0, le=1.0, allow_inf_nan=False)] = 0.1
    """Side of a cell of the height field, m; a riser is a slope over one cell, so smaller is
    steeper. Halving it takes four times the memory and slows contacts down."""
    vertical_scale: Annotated[float, Field(gt=0, le=0.1, allow_inf_nan=False)] = 0.005
    """Heights of rough ground and slopes are multiples of this, m; stairs and boxes are exact."""
    curriculum: bool = True
    """Whether columns are of one kind and rows grow harder; else every tile is drawn at random."""
    difficulty_range: RisingRange = (0.0, 1.0)
    """Difficulty of the first row's beginning and the last row's end."""
    max_init_terrain_level: Annotated[int, Field(ge=0)] = 5
    """Worlds begin at random levels up to this one (or up to the last)."""
    seed: Annotated[int, Field(ge=0)] | None = None
    """Seed of the ground; the worlds' own where unset."""
    sub_terrains: SubTerrainsConfig = SubTerrainsConfig()
    """The kinds of tiles."""

    @property
    def cells_per_tile(self) -> int:
        """Cells along the side of a tile."""
        return round(self.size / self.horizontal_scale)

    @property
    def border_cells(self) -> int:
        """Cells across the border."""
        return round(self.border_width / self.horizontal_scale)

    @property
    def proportions(self) -> dict[str, float]:
        """Share of each kind, by name; they add up to 1."""
        shares = {name: kind.proportion for name, kind in self.sub_terrains}
        total = sum(shares.values())
        return {name: share / total for name, share in shares.items()}

    @model_validator(mode="after")
    def _fits_the_grid(self) -> Self:
        for name in ("size", "border_width"):
            cells = getattr(self, name) / self.horizontal_scale
            if abs(cells - round(cells)) > 1e-6:
                raise ValueError(
                    f"{name} = {getattr(self, name)} is not a multiple of "
                    f"horizontal_scale = {self.horizontal_scale}"
                )
        border = 2 * self.border_cells
        heights = (self.num_rows * self.cells_per_tile + border + 1) * (
            self.num_cols * self.cells_per_tile + border + 1
        )
        if heights > MAX_TERRAIN_HEIGHTS:
            raise ValueError(
                f"horizontal_scale = {self.horizontal_scale} makes {heights} heights of this "
                f"ground, at most {MAX_TERRAIN_HEIGHTS} are allowed; take larger cells or "
                "fewer tiles"
            )
        return self

    @model_validator(mode="after")
    def _kinds_fit_their_tiles(self) -> Self:
        if not any(kind.proportion for _, kind in self.sub_terrains):
            raise ValueError("every sub-terrain has proportion 0; give at least one a share")
        if self.difficulty_range[1] > 1:
            raise ValueError(f"difficulty_range = {list(self.difficulty_range)} must end at most 1")
        for name, kind in self.sub_terrains:
            if kind.proportion and (reason := self._misfit(kind)):
                raise ValueError(f"sub_terrains.{name}{reason}, a tile has {self.size:g} m")
        return self

    @model_validator(mode="after")
    def _roughness_is_not_rounded_away(self) -> Self:
        rough = self.sub_terrains.random_rough
        low, high = rough.noise_range
        is_flat = round(low / self.vertical_scale) == round(high / self.vertical_scale)
        if rough.proportion and low < high and is_flat:
            raise ValueError(
                f"sub_terrains.random_rough.noise_range = {[low, high]}: both are the same "
                f"multiple of vertical_scale = {self.vertical_scale:g}, the ground would be flat; "
                "take a wider range or a smaller vertical_scale"
            )
        return self

    def _misfit(self, kind: SubTerrainConfig) -> str:
        """What of a kind has no room on a tile; empty if all has."""
        border = getattr(kind, "border_width", 0.0)
        taken = getattr(kind, "platform_width", 0.0) + 2 * border
        if taken > self.size:
            return f": platform and borders take {taken:g} m"
        if isinstance(kind, BoxesConfig) and kind.grid_width > self.size:
            return f".grid_width = {kind.grid_width:g}: a column is wider than its tile"
        has_rim = isinstance(kind, RandomRoughConfig | PyramidSlopeConfig)
        if has_rim and vertices_within(self.cells_per_tile, self.horizontal_scale, border) < 3:
            return f".border_width = {border:g}: the flat rim leaves no ground within"
        return ""
