import math

import pytest

from tui.draw.levels import (
    is_level_tag,
    largest_share,
    level_axis,
    level_bars,
    level_counts,
    level_numbers,
    mean_level,
)
from tui.draw.spans import Charset

STAIRS = "Curriculum/terrain_levels/pyramid_stairs"


def test_only_bars_of_histograms_are_level_tags():
    assert is_level_tag(f"{STAIRS}/level_0")
    assert is_level_tag(f"{STAIRS}/level_12")
    assert not is_level_tag(STAIRS)
    assert not is_level_tag("Curriculum/terrain_levels/promotions")
    assert not is_level_tag(f"{STAIRS}/level_x")


def test_histograms_are_gathered_by_term_and_kind_in_the_order_of_levels():
    metrics = {
        f"{STAIRS}/level_2": 3.0,
        f"{STAIRS}/level_0": 1.0,
        "Curriculum/terrain_levels/boxes/level_1": 4.0,
        "Curriculum/terrain_levels": 1.5,
    }
    assert level_counts(metrics) == {
        "terrain_levels": {"pyramid_stairs": [1.0, 0.0, 3.0], "boxes": [0.0, 4.0]}
    }


def test_mean_level_by_hand():
    assert mean_level([1, 0, 3]) == pytest.approx(1.5)
    assert math.isnan(mean_level([0, 0]))
    assert math.isnan(mean_level([1, math.nan]))


def test_the_largest_share_is_over_all_histograms():
    assert largest_share([[1, 3], [1, 1, 0], [0, 0], [math.nan]]) == pytest.approx(0.75)
    assert largest_share([]) == 0


def test_the_top_share_fills_all_but_a_quarter_of_a_line_and_half_of_it_half_of_that():
    bars = level_bars([2, 1, 1, 0], top=0.5, cell=3, height=2)
    assert bars == ["▆▆          ", "██ ▇▇ ▇▇    "]


def test_bars_of_one_line_stay_apart_from_the_line_above():
    assert level_bars([4, 0], top=1.0, cell=2, height=1) == ["▆   "]


def test_without_worlds_there_are_no_bars_and_what_is_not_finite_says_so():
    assert level_bars([0, 0], top=0.0, cell=2, height=1) == ["    "]
    for broken in (math.inf, math.nan):
        assert level_bars([0, broken], top=0.5, cell=2, height=1) == ["  ? "]
    assert level_bars([1, 2], top=0.5, cell=2, height=1, charset=Charset.ASCII)[0].isascii()


def test_numbers_stand_below_their_bars():
    assert level_numbers([12, 0, 345, math.nan], cell=4) == " 12     345   ? "
    assert level_numbers([0.2, 2.6], cell=1) == " 3"


def test_the_axis_names_every_level_that_has_room():
    assert level_axis(4, cell=3) == " 0  1  2  3 "
    assert level_axis(12, cell=1) == "0  3  6  9  "
    assert level_axis(11, cell=2).startswith("0   2")
