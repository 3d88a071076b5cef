from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from tui.draw.heat import (
    LEVELS,
    MARKED,
    Palette,
    cell_role,
    colour,
    heat_map,
    levels,
    parse_cell_role,
    ramp,
    resample,
)
from tui.draw.spans import Charset, cells, plain

any_float = st.floats(allow_nan=True, allow_infinity=True)
matrices = arrays(
    np.float64, array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=9), elements=any_float
)


def test_half_blocks_hold_two_rows_and_long_runs():
    lines = heat_map([[0, 0, 1], [1, 1, 0]], 3, 1)
    assert plain(lines[0]) == "▀▀▀"
    assert [span.role for span in lines[0]] == [
        cell_role(Palette.SEQUENTIAL, 0, LEVELS - 1),
        cell_role(Palette.SEQUENTIAL, LEVELS - 1, 0),
    ]


def test_rows_without_values_are_dotted():
    assert plain(heat_map([[1, 2], [math.nan, math.nan]], 2, 2, shades=True)[1]) == "··"
    upper, lower = heat_map([[1, 2], [3, 4], [math.nan] * 2, [math.nan] * 2], 2, 2)
    assert (plain(upper), plain(lower)) == ("▀▀", "··")


def test_a_mark_is_a_character_on_its_cell():
    marks = {"x": [[False, True], [False, False]]}
    line = heat_map([[1, 2], [3, 4]], 2, 1, marks=marks)[0]
    assert plain(line) == "▀x"
    assert parse_cell_role(line[1].role) == (Palette.SEQUENTIAL, MARKED, LEVELS - 1)
    assert plain(heat_map([[1, 2], [3, 4]], 2, 2, marks=marks, shades=True)[0])[1] == "x"


@pytest.mark.parametrize("shades", [False, True])
def test_of_several_marks_in_a_cell_the_first_is_drawn(shades):
    upper, lower = [[True, False], [False, False]], [[True, False], [False, True]]
    for matrix in ([[1, 2], [3, 4]], [[math.nan] * 2] * 2):
        lines = heat_map(matrix, 2, 1, marks={"x": upper, "o": lower}, shades=shades)
        assert plain(lines[0]) == "xo"
        lines = heat_map(matrix, 2, 1, marks={"x": lower, "o": upper}, shades=shades)
        assert plain(lines[0]) == "xx"


def test_the_ramp_shows_every_level_the_smallest_first():
    drawn = ramp(Palette.DIVERGING, shades=False)
    assert [parse_cell_role(span.role)[1] for span in drawn] == list(range(LEVELS))
    assert plain(ramp(Palette.DIVERGING, shades=True)) == " ░▒▓█"
    assert plain(ramp(Palette.SEQUENTIAL, shades=False, charset=Charset.ASCII)) == " .:*#"


def test_shades_tell_values_without_colour():
    assert plain(heat_map([[0, 1, 2, 3, 4]], 5, 1, shades=True)[0]) == " ░▒▓█"
    assert plain(heat_map([[0, 1, 2, 3, 4]], 5, 1, charset=Charset.ASCII)[0]) == " .:*#"


def test_a_map_grows_by_whole_cells():
    assert plain(heat_map([[0, 1]], 5, 1, shades=True)[0]) == "  ██ "


def test_a_mark_survives_when_bins_are_merged():
    marks = np.zeros((4, 40), bool)
    marks[2, 17] = True
    text = [plain(line) for line in heat_map(np.ones((4, 40)), 10, 1, marks={"x": marks})]
    assert text == ["▀▀▀▀x▀▀▀▀▀"]


def test_a_diverging_palette_is_centred_on_zero():
    assert levels([-1.0, 0.0, 3.0], Palette.DIVERGING, 9).tolist() == [3, 4, 8]
    assert levels([5.0, 5.0], Palette.SEQUENTIAL, 9).tolist() == [4, 4]
    assert levels([math.nan, math.inf], Palette.SEQUENTIAL).tolist() == [-1, -1]


def test_brightness_rises_with_the_level():
    brightness = [sum(colour(Palette.SEQUENTIAL, level)) for level in range(LEVELS)]
    assert brightness == sorted(brightness)


def test_roles_of_cells_are_read_back():
    assert parse_cell_role(cell_role(Palette.DIVERGING, 3, -1)) == (Palette.DIVERGING, 3, -1)
    assert parse_cell_role("muted") is None


def test_resampling_averages_finite_cells():
    np.testing.assert_allclose(resample([[1, 3], [5, math.nan]], 1, 2), [[3, 3]])
    np.testing.assert_allclose(resample([[1, 2]], 2, 2), [[1, 2], [1, 2]])


@given(
    matrices, st.integers(0, 14), st.integers(0, 8), st.booleans(), st.sampled_from(list(Charset))
)
def test_any_matrix_fits_any_size(matrix, width, height, shades, charset):
    lines = heat_map(
        matrix,
        width,
        height,
        marks={"x": matrix > 0, "o": matrix < 0},
        shades=shades,
        charset=charset,
        palette=Palette.DIVERGING,
    )
    assert len(lines) == height
    assert all(cells(line) == width for line in lines)
    assert charset is not Charset.ASCII or all(plain(line).isascii() for line in lines)
