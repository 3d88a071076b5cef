"""A grid of vertical rays about each robot, cast by Warp on the surface that physics collides with.

MuJoCo (and MuJoCo Warp) cut each cell of a height field into two triangles along the diagonal from
its corner of least x and y to the opposite one. A vertical ray meets one of the two, so its height
is that of a plane through three vertices: no tree of triangles is needed.

Importing this module loads Warp; the kernel is compiled with the first scanner, and cached on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from sim.physics.base import Listener, Nobody
from sim.physics.compiling import telling_of_kernels
from sim.physics.graph import Stream
from sim.terrain.generator import TerrainMap
from sim.warp_start import wp

START_HEIGHT = 20.0
"""m above the robot at which rays begin; ground higher than that is not seen (Isaac Lab's)."""

Kernel = Callable[..., Any]
kernel = cast(
    Callable[[Kernel], Kernel], wp.kernel(module="unique", enable_backward=False, grid_stride=False)
)


@kernel
def cast_rays(
    position: wp.array(dtype=wp.vec3),  # type: ignore[valid-type]
    orientation: wp.array(dtype=wp.vec4),  # type: ignore[valid-type]
    pattern: wp.array(dtype=wp.vec2),  # type: ignore[valid-type]
    heights: wp.array(dtype=wp.float32),  # type: ignore[valid-type]
    num_rows: wp.int32,
    num_columns: wp.int32,
    corner: wp.vec2,
    cells_per_metre: wp.float32,
    start_height: wp.float32,
    offset: wp.float32,
    miss: wp.float32,
    rays_apart: wp.int32,
    scan: wp.array2d(dtype=wp.float32),  # type: ignore[valid-type]
) -> None:
    """Cast every `rays_apart`-th ray of one world."""
    world, first = wp.tid()  # type: ignore[misc]
    p = position[world]
    q = orientation[world]  # wxyz

    # the base's x axis seen from above
    forward_x = 1.0 - 2.0 * (q[2] * q[2] + q[3] * q[3])
    forward_y = 2.0 * (q[1] * q[2] + q[0] * q[3])
    length = wp.sqrt(forward_x * forward_x + forward_y * forward_y)
    cos_yaw = wp.where(length > 0.0, forward_x / length, 1.0)
    sin_yaw = wp.where(length > 0.0, forward_y / length, 0.0)

    last_row = num_rows - 1
    last_column = num_columns - 1
    for ray in range(first, pattern.shape[0], rays_apart):
        point = pattern[ray]
        u = (p[0] + cos_yaw * point[0] - sin_yaw * point[1] - corner[0]) * cells_per_metre
        v = (p[1] + sin_yaw * point[0] + cos_yaw * point[1] - corner[1]) * cells_per_metre
        # without branches, which the processor could not foresee; NaN is outside
        inside = u >= 0.0 and v >= 0.0 and u <= float(last_column) and v <= float(last_row)
        u = wp.where(inside, u, 0.0)
        v = wp.where(inside, v, 0.0)
        column = wp.min(int(u), last_column - 1)
        row = wp.min(int(v), last_row - 1)
        a = u - float(column)
        b = v - float(row)
        vertex = row * num_columns + column
        low = heights[vertex]
        high = heights[vertex + num_columns + 1]
        side = heights[vertex + wp.where(a > b, 1, num_columns)]
        ground = low + wp.max(a, b) * (side - low) + wp.min(a, b) * (high - side)
        hit = inside and ground <= p[2] + start_height
        scan[world, ray] = wp.where(hit, p[2] - ground - offset, miss)


class HeightScanner:
    """Height of robots above the ground at a grid of points that turns with them.

    Rays are vertical; the grid turns by the robot's yaw alone. Ray index iy * nx + ix: x (forward)
    changes first, from behind to ahead, then y, from right to left.

    Args:
        terrain: The ground.
        device: Where the robots' tensors live.
        size: Length of the grid forward and sideways, m.
        resolution: Distance of neighbouring rays, m.
        offset: Taken off every height, m.
        miss: What a ray reads that meets no ground.
        listener: Told of the compilation of the kernel.
    """

    def __init__(
        self,
        terrain: TerrainMap,
        device: torch.device,
        size: tuple[float, float],
        resolution: float,
        offset: float,
        miss: float,
        listener: Listener | None = None,
    ) -> None:
        self.pattern = ray_pattern(size, resolution).to(device)
        """Where the rays are, from the robot and along its yaw, [R, 2] m."""
        self._heights = torch.from_numpy(terrain.heights).to(device)
        half_x, half_y = terrain.half_extent
        self._constants = (
            *terrain.heights.shape,
            wp.vec2(-half_x, -half_y),
            1.0 / terrain.horizontal_scale,
            START_HEIGHT,
            offset,
            miss,
        )
        # a GPU wants a thread a ray; a core is quicker with one turn of the robot a world
        self._threads_per_world = len(self.pattern) if device.type == "cuda" else 1
        self._stream = Stream(torch.device(device))
        with telling_of_kernels((listener or Nobody()).progress):
            self.scan(torch.zeros(1, 3, device=device), torch.zeros(1, 4, device=device))

    def scan(self, position: Tensor, orientation: Tensor) -> Tensor:
        """Cast all rays.

        Args:
            position: Of the robots, [N, 3] float32 m.
            orientation: Of the robots, unit quaternions wxyz, [N, 4] float32.

        Returns:
            Height of the robot above the ground at each ray less the offset, or `miss`; a new
            tensor, [N, R] m.
        """
        scan = torch.empty((len(position), len(self.pattern)), device=position.device)
        # Warp has streams of its own; on torch's, the kernel waits for what torch wrote
        wp.launch(
            cast_rays,
            dim=(len(position), self._threads_per_world),
            inputs=[
                wp.from_torch(position, dtype=wp.vec3),
                wp.from_torch(orientation, dtype=wp.vec4),
                wp.from_torch(self.pattern, dtype=wp.vec2),
                wp.from_torch(self._heights.view(-1)),
                *self._constants,
                self._threads_per_world,
            ],
            outputs=[wp.from_torch(scan)],
            device=self._stream.device,
            stream=self._stream.current(),
        )
        return scan


def ray_pattern(size: tuple[float, float], resolution: float) -> Tensor:
    """Points of a centred grid, x changing first, [R, 2] m."""
    along_x, along_y = (
        torch.arange(int(length / resolution + 1e-6) + 1, dtype=torch.float64) * resolution
        - length / 2
        for length in size
    )
    y, x = torch.meshgrid(along_y, along_x, indexing="ij")
    return torch.stack((x.flatten(), y.flatten()), dim=1).float()
