"""The ground: its kinds, its sizes, and that a seed gives it again."""

import numpy as np
import pytest
from pydantic import ValidationError

from sim.terrain.config import TerrainConfig
from sim.terrain.generator import column_kind, generate_terrain
from sim.terrain.sub_terrains import make_tile

KINDS = (
    "pyramid_stairs",
    "pyramid_stairs_inv",
    "boxes",
    "random_rough",
    "hf_pyramid_slope",
    "hf_pyramid_slope_inv",
)


def tile(name, difficulty=1.0, seed=0, **config):
    return make_tile(name, TerrainConfig(**config), difficulty, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def ground():
    return generate_terrain(TerrainConfig(), seed=7)


def test_the_columns_take_the_kinds_by_their_shares(ground):
    assert ground.names == KINDS
    expected = np.repeat(np.arange(6), (4, 4, 4, 4, 2, 2))
    assert (ground.kinds == expected).all()


def test_a_column_at_the_edge_of_a_share_takes_the_next_kind_in_spite_of_rounding():
    shares = np.array([0.1, 0.2, 0.7])
    kinds = [column_kind(col / 10, shares) for col in range(10)]
    assert kinds == [0, 1, 1, 2, 2, 2, 2, 2, 2, 2]


def test_ten_levels_by_twenty_tiles_of_eight_metres_lie_within_a_flat_border(ground):
    # (10 x 8 + 2 x 20) m along x, (20 x 8 + 2 x 20) m along y, a vertex every 0.1 m
    assert ground.heights.shape == (2001, 1201)
    assert ground.half_extent == pytest.approx((60.0, 100.0))
    inside = np.zeros(ground.heights.shape, bool)
    inside[201:-201, 201:-201] = True
    assert (ground.heights[~inside] == 0).all()
    assert ground.origins[0, 0, :2] == pytest.approx([-36, -76])
    assert ground.origins[9, 19, :2] == pytest.approx([36, 76])


def test_tiles_meet_at_height_zero(ground):
    assert (ground.heights[200:-200:80] == 0).all()
    assert (ground.heights[:, 200:-200:80] == 0).all()


def test_origins_lie_on_the_ground_or_on_the_highest_point_near(ground):
    for row in range(10):
        for col in range(20):
            x, y, z = ground.origins[row, col]
            ix, iy = round((x + 60) / 0.1), round((y + 100) / 0.1)
            near = ground.heights[iy - 10 : iy + 10, ix - 10 : ix + 10]
            assert z == pytest.approx(near.max(), abs=1e-6)


def test_rows_grow_harder(ground):
    # a step has height 0.025 + 0.095 d with d in [r, r + 1] / 10; seven of them make the pyramid
    for row in range(10):
        low, high = 7 * (0.025 + 0.0095 * row), 7 * (0.025 + 0.0095 * (row + 1))
        assert (ground.origins[row, :4, 2] >= low).all()
        assert (ground.origins[row, :4, 2] <= high).all()
        assert (ground.origins[row, 4:8, 2] <= -low).all()
        assert (ground.origins[row, 4:8, 2] >= -high).all()
    # difficulty is drawn for every tile
    assert len(set(ground.origins[:, :4, 2].ravel())) == 40


def test_stairs_have_a_flat_rim_six_treads_and_a_platform():
    heights, origin = tile("pyramid_stairs")
    h = 0.12
    across = heights[40]
    assert across[:10] == pytest.approx(0)  # up to 0.9 m; the riser at 1.0 m begins there
    for k in range(6):
        # the upper side of an edge owns the vertex on it
        assert across[10 + 3 * k : 13 + 3 * k] == pytest.approx((k + 1) * h)
    assert across[28:53] == pytest.approx(7 * h)  # 2.4 m wide
    assert origin == pytest.approx(7 * h)
    assert heights == pytest.approx(heights.T)
    assert heights == pytest.approx(heights[::-1, ::-1])


def test_a_pit_has_the_same_steps_downwards_and_keeps_its_upper_treads_whole():
    heights, origin = tile("pyramid_stairs_inv", difficulty=0.0)
    h = 0.025
    across = heights[40]
    assert across[:11] == pytest.approx(0)
    for k in range(6):
        assert across[11 + 3 * k : 14 + 3 * k] == pytest.approx(-(k + 1) * h)
    assert across[29:52] == pytest.approx(-7 * h)
    assert origin == pytest.approx(-7 * h)


def test_boxes_are_seventeen_by_seventeen_columns_about_a_platform():
    heights, origin = tile("boxes")
    assert origin == pytest.approx(0.1)
    assert np.abs(heights).max() <= 0.1
    assert heights[31:50, 31:50] == pytest.approx(0.1)  # 2 m, without its own edges' vertices
    assert (heights[:2] == 0).all()  # rim of 0.175 m
    assert (heights[:, -2:] == 0).all()
    # column 0 covers 0.175 to 0.625 m: vertices 2 to 6
    assert np.unique(heights[2:7, 2:7]).size == 1
    # all vertices of the outer ring of columns: 4 x 16 heights, all different, and the rim's 0
    ring = np.concatenate((heights[3], heights[77], heights[:, 3], heights[:, 77]))
    assert np.unique(ring).size == 4 * 16 + 1
    assert (ring > 0.05).any()  # some stand out, some are sunk in
    assert (ring < -0.05).any()
    easy = tile("boxes", difficulty=0.0)
    assert easy.origin_z == pytest.approx(0.025)
    assert np.abs(easy.heights).max() <= 0.025


def test_rough_ground_has_six_heights_and_no_difficulty():
    heights, origin = tile("random_rough", difficulty=1.0)
    inner = heights[3:78, 3:78]
    levels, counts = np.unique(np.rint(inner * 1000).astype(int), return_counts=True)
    assert levels.tolist() == [10, 20, 30, 40, 50, 60]
    # each has a share of 1/6 of 5625: 937.5, standard deviation 28
    assert (abs(counts - 937.5) < 5 * 28).all()
    assert heights.sum() == pytest.approx(inner.sum())
    assert origin == pytest.approx(heights[30:50, 30:50].max())
    assert (tile("random_rough", difficulty=0.0).heights == heights).all()


@pytest.mark.parametrize(("name", "sign"), [("hf_pyramid_slope", 1), ("hf_pyramid_slope_inv", -1)])
def test_a_slope_is_the_product_of_two_ramps_cut_off_flat(name, sign):
    heights, origin = tile(name, difficulty=0.5)
    # slope 0.2 over half of 7.5 m, in units of 5 mm: 150
    peak = 150
    ramp = np.array([(37 - abs(37 - i)) / 37 for i in range(75)])
    expected = np.minimum(peak * np.outer(ramp, ramp), peak * (27 / 37) ** 2)
    inner = heights[3:78, 3:78]
    assert inner == pytest.approx(sign * np.rint(expected) * 0.005)
    assert origin == pytest.approx(sign * round(peak * (27 / 37) ** 2) * 0.005)
    assert heights.sum() == pytest.approx(inner.sum())


def test_finer_cells_keep_the_shapes_and_make_risers_steeper():
    coarse, fine = tile("pyramid_stairs"), tile("pyramid_stairs", horizontal_scale=0.025)
    assert fine.heights.shape == (321, 321)
    assert fine.origin_z == coarse.origin_z
    # all but the cells that hold a riser
    tread = fine.heights[160, 40 + 1 : 52]
    assert tread == pytest.approx(0.12)
    assert fine.heights[160, 39] == 0
    assert np.diff(fine.heights[160]).max() / 0.025 == pytest.approx(0.12 / 0.025)


def test_a_seed_gives_the_same_ground_again(ground):
    again = generate_terrain(TerrainConfig(), seed=7)
    assert (again.heights == ground.heights).all()
    assert (again.origins == ground.origins).all()
    other = generate_terrain(TerrainConfig(), seed=8)
    for first, end in ((8, 12), (12, 16)):  # boxes, rough ground
        ours, theirs = (
            m.heights[200 + 80 * first : 200 + 80 * end, 200:-200] for m in (ground, other)
        )
        assert (ours != theirs).mean() > 0.5
    own = generate_terrain(TerrainConfig(seed=7), seed=8)
    assert (own.heights == ground.heights).all()


def test_without_curriculum_every_tile_is_drawn():
    config = TerrainConfig(num_rows=20, num_cols=20, curriculum=False)
    kinds = generate_terrain(config, seed=0).kinds
    assert all(np.unique(kinds[:, col]).size > 1 for col in range(20))
    counts = np.bincount(kinds.ravel(), minlength=6)
    expected = 400 * np.array([0.2, 0.2, 0.2, 0.2, 0.1, 0.1])
    assert (abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_a_kind_without_a_share_does_not_occur():
    config = TerrainConfig.model_validate({"sub_terrains": {"boxes": {"proportion": 0.0}}})
    assert (generate_terrain(config, seed=0).kinds != 2).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"horizontal_scale": 0.3}, "size = 8.0 is not a multiple of horizontal_scale = 0.3"),
        ({"horizontal_scale": 0.01}, "at most 134217728 are allowed"),
        ({"difficulty_range": (0.0, 1.5)}, "must end at most 1"),
        ({"difficulty_range": (0.5, 0.1)}, "is not in order"),
        (
            {"size": 4.0},
            "sub_terrains.pyramid_stairs: platform and borders take 5 m, a tile has 4 m",
        ),
        ({"horizontal_scale": 8.0}, "less than or equal to 1"),
        ({"vertical_scale": 10.0}, "less than or equal to 0.1"),
        (
            {"sub_terrains": {"random_rough": {"proportion": 1.0, "noise_range": [0.001, 0.002]}}},
            r"random_rough.noise_range = \[0.001, 0.002\]: both .* the ground would be flat",
        ),
        (
            {"sub_terrains": {"boxes": {"proportion": 1.0, "grid_width": 9.0}}},
            "boxes.grid_width = 9: a column is wider than its tile",
        ),
        (
            {"sub_terrains": {"random_rough": {"proportion": 1.0, "border_width": 3.9}}},
            "border_width = 3.9: the flat rim leaves no ground within",
        ),
        (
            {
                "sub_terrains": {
                    "hf_pyramid_slope": {
                        "proportion": 1.0,
                        "border_width": 4.0,
                        "platform_width": 0.0001,
                    }
                }
            },
            "platform and borders take 8.0001 m",
        ),
        (
            {
                "sub_terrains": {
                    "hf_pyramid_slope": {
                        "proportion": 1.0,
                        "border_width": 3.9,
                        "platform_width": 0.1,
                    }
                }
            },
            "the flat rim leaves no ground within",
        ),
        (
            {"sub_terrains": {name: {"proportion": 0.0} for name in KINDS}},
            "every sub-terrain has proportion 0",
        ),
        ({"sub_terrains": {"stairs": {"proportion": 1.0}}}, "stairs"),
    ],
)
def test_ground_that_cannot_be_is_refused_with_a_reason(settings, message):
    with pytest.raises(ValidationError, match=message):
        TerrainConfig.model_validate(settings)
