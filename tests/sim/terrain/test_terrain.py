"""Where the worlds stand, and how they move between levels."""

import pytest
import torch

from sim.terrain.config import TerrainConfig
from sim.terrain.terrain import Terrain


def terrain(num_envs, seed=0, **settings):
    generator = torch.Generator().manual_seed(seed)
    return Terrain(TerrainConfig(border_width=1.0, **settings), num_envs, generator)


def test_worlds_lie_in_blocks_of_columns_and_begin_at_levels_up_to_five():
    ground = terrain(400)
    assert ground.columns.tolist() == [i // 20 for i in range(400)]
    assert sorted(set(ground.levels.tolist())) == [0, 1, 2, 3, 4, 5]
    for i in (0, 123, 399):
        expected = ground.map.origins[ground.levels[i], ground.columns[i]]
        assert ground.env_origins[i].tolist() == pytest.approx(expected.tolist())


def test_fewer_worlds_than_columns_spread_over_them():
    assert terrain(5).columns.tolist() == [0, 4, 8, 12, 16]


def test_initial_levels_keep_to_the_levels_there_are():
    assert set(terrain(200, num_rows=3).levels.tolist()) == {0, 1, 2}
    assert set(terrain(16, max_init_terrain_level=0).levels.tolist()) == {0}
    assert not terrain(16, max_init_terrain_level=0).has_reached_top.any()


def test_moving_takes_the_origin_along_and_leaves_the_others():
    ground = terrain(40)
    ground.levels.fill_(4)
    before = ground.env_origins.clone()
    kept = ground.env_origins
    ground.move(torch.tensor([3, 7, 30]), torch.tensor([1, -1, 0]))
    assert ground.levels[[3, 7, 30, 4]].tolist() == [5, 3, 4, 4]
    assert ground.env_origins is kept
    for i, level in ((3, 5), (7, 3)):
        expected = ground.map.origins[level, ground.columns[i]]
        assert kept[i].tolist() == pytest.approx(expected.tolist())
    others = [i for i in range(40) if i not in (3, 7, 30)]
    assert (kept[others] == before[others]).all()


def test_none_goes_below_the_first_level_and_past_the_last_one_any_is_drawn():
    ground = terrain(2000)
    everyone = torch.arange(2000)
    ground.levels.zero_()
    ground.move(everyone, torch.full((2000,), -1))
    assert (ground.levels == 0).all()
    assert not ground.has_reached_top.any()

    ground.levels.fill_(9)
    ground.move(everyone, torch.ones(2000, dtype=torch.int64))
    counts = torch.bincount(ground.levels, minlength=10)
    # 200 of each, standard deviation 13.4
    assert ((counts - 200).abs() < 5 * 13.4).all()


def test_who_was_at_the_top_once_is_remembered():
    ground = terrain(40)
    ground.levels.fill_(8)
    ground.has_reached_top.zero_()
    ids = torch.tensor([5, 6])
    ground.move(ids, torch.tensor([1, -1]))
    ground.move(ids, torch.tensor([-1, -1]))
    assert ground.has_reached_top.nonzero().squeeze(1).tolist() == [5]


def test_level_counts_are_by_kind_of_tile():
    ground = terrain(20)
    ground.levels.copy_(torch.arange(20) % 10)
    counts = ground.level_counts()
    assert counts.shape == (6, 10)
    assert counts.sum(1).tolist() == [4, 4, 4, 4, 2, 2]
    assert counts[0].tolist() == [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert counts[5].tolist() == [0] * 8 + [1, 1]


def test_the_ground_depends_on_the_seed_alone_and_levels_on_the_draw():
    first, second = terrain(64, seed=4), terrain(64, seed=4)
    assert (first.map.heights == second.map.heights).all()
    assert (first.levels == second.levels).all()
    generator = torch.Generator().manual_seed(4)
    torch.rand(10, generator=generator)
    later = Terrain(TerrainConfig(border_width=1.0), 64, generator)
    assert (later.map.heights == first.map.heights).all()
    assert (later.levels != first.levels).any()


def test_a_saved_state_continues_in_place():
    first, second = terrain(64, seed=4), terrain(64, seed=5)
    first.move(torch.arange(64), torch.ones(64, dtype=torch.int64))
    kept = second.env_origins
    second.load_state_dict(first.state_dict())
    assert (second.levels == first.levels).all()
    assert (kept == first.env_origins).all()
