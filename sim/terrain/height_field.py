"""Generated ground as MuJoCo's height field."""

from __future__ import annotations

import mujoco
import numpy as np

from sim.terrain.config import FLOOR
from sim.terrain.generator import TerrainMap

NAME = "terrain"
DEPTH = 1.0
"""m of solid ground below the lowest point."""
LEAST_ELEVATION = 1e-3
"""m; a height field cannot be without any."""


def compile_on_terrain(spec: mujoco.MjSpec, terrain: TerrainMap) -> mujoco.MjModel:
    """Compile a robot's model with the ground in place of its floor.

    Args:
        spec: The model; its geom `floor`, a plane, becomes the height field and keeps its friction.
        terrain: The ground.

    Raises:
        ValueError: The model has no such geom.
    """
    geom = spec.geom(FLOOR)
    if geom is None:
        raise ValueError(f"the robot's model has no geom '{FLOOR}' that terrain could replace")
    heights = terrain.heights.astype(np.float64)
    lowest = float(heights.min())
    elevation = max(float(heights.max()) - lowest, LEAST_ELEVATION)
    shares = ((heights - lowest) / elevation).astype(np.float32)
    rows, columns = shares.shape
    spec.add_hfield(
        name=NAME,
        nrow=rows,
        ncol=columns,
        size=[*terrain.half_extent, elevation, DEPTH],
        userdata=shares.ravel(),
    )
    geom.type = mujoco.mjtGeom.mjGEOM_HFIELD
    geom.hfieldname = NAME
    geom.size = [0.0, 0.0, 0.0]
    geom.pos = [0.0, 0.0, lowest]
    model = spec.compile()
    # the compiler stretches the shares to fill 0 to 1, which only flat ground would not do itself
    model.hfield_data[:] = shares.ravel()
    return model
