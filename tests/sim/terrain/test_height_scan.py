"""The scan meets the surface that physics collides with, ray for ray."""

import math
import subprocess
import sys

import mujoco
import numpy as np
import pytest
import torch

from sim.terrain.config import TerrainConfig
from sim.terrain.generator import TerrainMap, generate_terrain
from sim.terrain.height_field import compile_on_terrain
from sim.terrain.height_scan import HeightScanner, ray_pattern

CPU = torch.device("cpu")
MISS = 7.0
BESIDE = 1e-4
"""m; a ray of MuJoCo's that runs exactly along the edge of two triangles slips between them."""
DOWN = np.array([0.0, 0.0, -1.0])


def config(**settings):
    return TerrainConfig(num_rows=2, num_cols=6, border_width=2.0, **settings)


def floor_spec():
    return mujoco.MjSpec.from_string("""
        <mujoco>
          <worldbody>
            <geom name="floor" type="plane" size="0 0 1" friction=".7 .1 .1"/>
            <body name="ball"><freejoint/><geom type="sphere" size=".001"/></body>
          </worldbody>
        </mujoco>
    """)


@pytest.fixture(scope="module")
def ground():
    # equal shares: each column is of another kind
    shares = {name: {"proportion": 1.0} for name in config().proportions}
    settings = TerrainConfig.model_validate(
        {"num_rows": 2, "num_cols": 6, "border_width": 2.0, "sub_terrains": shares}
    )
    return generate_terrain(settings, seed=3)


@pytest.fixture(scope="module")
def world(ground):
    model = compile_on_terrain(floor_spec(), ground)
    data = mujoco.MjData(model)
    data.qpos[2] = 50.0
    mujoco.mj_forward(model, data)
    return model, data


def scanner(ground, size=(1.6, 1.0), resolution=0.1, offset=0.5):
    return HeightScanner(ground, CPU, size, resolution, offset, MISS)


def quat(yaw, pitch=0.0, roll=0.0):
    """The orientation wxyz of a body turned by roll, then pitch, then yaw."""
    result, part = np.array([1.0, 0, 0, 0]), np.zeros(4)
    for axis, angle in (((0, 0, 1.0), yaw), ((0, 1.0, 0), pitch), ((1.0, 0, 0), roll)):
        mujoco.mju_axisAngle2Quat(part, np.array(axis), angle)
        total = np.zeros(4)
        mujoco.mju_mulQuat(total, result, part)
        result = total
    return result


def mujoco_heights(world, points, start):
    """Height that MuJoCo's own rays meet below `points` [R, 2]; NaN for a miss."""
    model, data = world
    met = np.zeros(1, np.int32)
    heights = []
    for x, y in points:
        origin = np.array([x, y, start])
        distance = mujoco.mj_ray(model, data, origin, DOWN, None, 1, 1, met)
        heights.append(start - distance if distance >= 0 else math.nan)
    return np.array(heights)


def grid(position, yaw, pattern):
    c, s = math.cos(yaw), math.sin(yaw)
    return position[:2] + pattern @ np.array([[c, s], [-s, c]])


def check(ground, world, positions, angles):
    positions = torch.tensor(np.array(positions), dtype=torch.float32)
    orientations = torch.tensor(np.array([quat(*a) for a in angles]), dtype=torch.float32)
    cast = scanner(ground)
    scan = cast.scan(positions, orientations).double().numpy()
    half = np.array(ground.half_extent)
    hits = misses = 0
    for position, (yaw, *_), row in zip(positions.double().numpy(), angles, scan, strict=True):
        points = grid(position, yaw, cast.pattern.double().numpy())
        theirs = position[2] - mujoco_heights(world, points, position[2] + 20.0) - 0.5
        # float32 cannot tell the two sides of the outermost edge apart
        known = (abs(abs(points) - half) > 1e-4).all(axis=1)
        missed = np.isnan(theirs)
        assert (row[known & missed] == MISS).all()
        assert row[known & ~missed] == pytest.approx(theirs[known & ~missed], abs=1e-3)
        hits, misses = hits + (known & ~missed).sum(), misses + (known & missed).sum()
    return hits, misses


def test_rays_meet_what_mujocos_own_rays_meet_at_random_poses(ground, world):
    random = np.random.default_rng(0)
    half = ground.half_extent
    positions = [
        [random.uniform(-half[0], half[0]), random.uniform(-half[1], half[1]), random.uniform(0, 1)]
        for _ in range(120)
    ]
    angles = random.uniform(-math.pi, math.pi, (120, 3)) * [1, 0.4, 0.4]
    hits, _ = check(ground, world, positions, angles)
    assert hits > 20_000


def test_rays_meet_what_mujocos_own_rays_meet_at_the_edges_of_tiles(ground, world):
    # tiles meet at x = 0 and at multiples of 8 m along y; grid lines lie on the edges themselves
    positions = [[x + BESIDE, y + 2 * BESIDE, 0.4] for x in (-8, 0, 8) for y in range(-24, 25, 8)]
    angles = [(yaw,) for yaw in (0.0, math.pi / 2, math.pi, 0.3, -2.0, 1.2, -0.01)] * 3
    hits, misses = check(ground, world, positions, angles)
    assert hits > 3_000
    assert misses == 0


def test_rays_beyond_the_border_miss(ground, world):
    # half extents: 10 m and 26 m
    positions = [[x + BESIDE, y - 2 * BESIDE, 0.4] for x in (-10, 0, 10) for y in (-26, 26)]
    positions.append([10.5, 26.4, 0.3])
    angles = [(0.4 * k,) for k in range(len(positions))]
    hits, misses = check(ground, world, positions, angles)
    assert hits > 200
    assert misses > 200


def test_the_ground_that_is_collided_with_is_the_ground_that_is_scanned(ground, world):
    """A tiny ball touches at its radius above the plane of the scan's triangle, no sooner."""
    model, _ = world
    data = mujoco.MjData(model)
    random = np.random.default_rng(1)
    cast = scanner(ground, size=(0.0, 0.0), resolution=1.0, offset=0.0)
    upright = torch.tensor([[1.0, 0.0, 0.0, 0.0]])

    def touches(x, y, z):
        data.qpos[:3] = x, y, z
        mujoco.mj_forward(model, data)
        return data.ncon > 0

    for _ in range(60):
        x, y = random.uniform(-8, 8), random.uniform(-24, 24)
        low, high = -2.0, 2.0
        for _ in range(16):
            middle = (low + high) / 2
            low, high = (middle, high) if touches(x, y, middle) else (low, middle)
        point = torch.tensor([[x, y, 0.0]], dtype=torch.float32)
        surface = -cast.scan(point, upright).item()
        # the radius of 1 mm, on a slope of up to 1.2 a little more; a riser beside it touches first
        assert -1e-3 < high - surface < 5e-3


def test_only_yaw_turns_the_grid_and_x_changes_first(ground):
    pattern = ray_pattern((1.6, 1.0), 0.1)
    assert pattern.shape == (187, 2)
    assert pattern[0].tolist() == pytest.approx([-0.8, -0.5])
    assert pattern[1].tolist() == pytest.approx([-0.7, -0.5])
    assert pattern[17].tolist() == pytest.approx([-0.8, -0.4])
    assert pattern[186].tolist() == pytest.approx([0.8, 0.5])

    position = torch.tensor([[-4.0, -22.2, 0.9]]).repeat(3, 1)  # on stairs
    leaning = torch.tensor(np.array([quat(0.7), quat(0.7, 0.5), quat(0.7, 0.0, -0.9)])).float()
    scan = scanner(ground).scan(position, leaning)
    assert scan[0].std() > 0.02
    # what a roll does to the heading of the x axis is nothing; a pitch neither
    assert scan[1] == pytest.approx(scan[0], abs=1e-5)
    assert scan[2] == pytest.approx(scan[0], abs=1e-5)


def test_flat_ground_reads_the_height_less_the_offset(ground):
    position = torch.tensor([[9.0, 0.0, 0.3]])  # the border
    scan = scanner(ground).scan(position, torch.tensor([[1.0, 0.0, 0.0, 0.0]]))
    assert scan == pytest.approx(-0.2, abs=1e-6)


def test_ground_far_above_the_robot_is_not_seen(ground):
    upright = torch.tensor([[1.0, 0.0, 0.0, 0.0]]).repeat(2, 1)
    position = torch.tensor([[9.0, 0.0, -19.9], [9.0, 0.0, -20.1]])
    scan = scanner(ground).scan(position, upright)
    assert scan[0] == pytest.approx(-20.4, abs=1e-5)
    assert (scan[1] == MISS).all()


def test_a_robot_without_a_place_reads_misses_alone(ground):
    nowhere = torch.tensor([[math.nan, 0.0, 0.3], [math.inf, 0.0, 0.3], [0.0, -1e30, 0.3]])
    scan = scanner(ground).scan(nowhere, torch.tensor([[1.0, 0.0, 0.0, 0.0]]).repeat(3, 1))
    assert (scan == MISS).all()
    broken = scanner(ground).scan(torch.zeros(1, 3), torch.full((1, 4), math.nan))
    assert broken.isfinite().all()
    unseen = scanner(ground).scan(torch.tensor([[9.0, 0.0, math.nan]]), torch.eye(4)[:1])
    assert (unseen == MISS).all()


def test_the_floor_keeps_its_name_and_friction_as_a_height_field(ground, world):
    model, _ = world
    floor = model.geom("floor")
    assert floor.type == mujoco.mjtGeom.mjGEOM_HFIELD
    assert floor.friction == pytest.approx([0.7, 0.1, 0.1])
    heights = model.hfield_data.reshape(ground.heights.shape) * model.hfield_size[0, 2]
    assert heights + floor.pos[2] == pytest.approx(ground.heights, abs=1e-6)
    with pytest.raises(ValueError, match="no geom 'floor'"):
        compile_on_terrain(mujoco.MjSpec(), ground)


def test_ground_without_any_height_is_a_plane():
    flat = TerrainConfig.model_validate(
        {
            "num_rows": 1,
            "num_cols": 1,
            "border_width": 1.0,
            "difficulty_range": [0.0, 0.0],
            "sub_terrains": {
                name: {"proportion": float(name == "hf_pyramid_slope")}
                for name in TerrainConfig().proportions
            },
        }
    )
    ground = generate_terrain(flat, seed=0)
    assert (ground.heights == 0).all()
    model = compile_on_terrain(floor_spec(), ground)
    assert (model.hfield_data == 0).all()


def test_warp_is_loaded_with_the_first_scan_only_and_prints_nothing(tmp_path):
    program = """
import sys
import sim.terrain.terrain, sim.terms.observations
assert "warp" not in sys.modules
import torch
from sim.terrain.config import TerrainConfig
from sim.terrain.generator import TerrainMap, generate_terrain
from sim.terrain.height_scan import HeightScanner
ground = generate_terrain(TerrainConfig(num_rows=1, num_cols=6), seed=0)
cast = HeightScanner(ground, torch.device("cpu"), (1.6, 1.0), 0.1, 0.5, 1.0)
assert cast.scan(torch.zeros(2, 3), torch.eye(4)[:1].repeat(2, 1)).isfinite().all()
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""


def test_a_drop_reads_as_a_drop_and_a_wall_as_a_wall():
    # a wall of 2 m from x = 0 on; the sensor at 0.6 m, as the preset has it
    heights = np.zeros((41, 41), np.float32)
    heights[:, 20:] = 2.0
    origin = np.zeros((1, 1, 3))
    wall = TerrainMap(heights, 0.1, origin, np.zeros((1, 1), int), ("wall",), 4.0)
    cast = HeightScanner(wall, CPU, (0.0, 0.0), 1.0, 0.5, 1.0)
    position = torch.tensor([[-1.0, 0.0, 0.6], [1.0, 0.0, 0.6], [5.0, 0.0, 0.6]])
    upright = torch.tensor([[1.0, 0.0, 0.0, 0.0]]).repeat(3, 1)
    scan = cast.scan(position, upright).clamp(-1.0, 1.0)
    assert scan.squeeze(1).tolist() == pytest.approx([0.1, -1.0, 1.0])
