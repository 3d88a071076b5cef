from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tui.draw.bars import bar, bins, columns, signed_bar, sparkline
from tui.draw.spans import Charset

any_float = st.floats(allow_nan=True, allow_infinity=True)
series = st.lists(any_float, max_size=40)
charsets = st.sampled_from(list(Charset))
size = st.integers(0, 30)


def test_a_bar_grows_in_half_cells():
    assert bar(0.0, 4) == "    "
    assert bar(0.01, 4) == "╸   "
    assert bar(0.5, 4) == "━━  "
    assert bar(0.625, 4) == "━━╸ "
    assert bar(7.0, 4) == "━━━━"
    assert bar(math.nan, 4) == "    "
    assert bar(0.5, 4, Charset.ASCII) == "==  "


def test_a_signed_bar_grows_away_from_its_axis():
    assert signed_bar(1.0, 1.0, 7) == ("   ", "│", "━━━")
    assert signed_bar(-0.5, 1.0, 7) == (" ╺━", "│", "   ")
    assert signed_bar(0.0, 1.0, 7) == ("   ", "│", "   ")
    assert signed_bar(-2.0, 1.0, 7, Charset.ASCII) == ("===", "|", "   ")
    assert signed_bar(math.nan, 1.0, 7) == ("   ", "│", "   ")


def test_a_sparkline_runs_from_the_smallest_to_the_largest():
    assert sparkline([0, 1, 2, 3, 4, 5, 6], 7) == "▁▂▃▄▅▆▇"
    assert sparkline([6, 0], 4) == "  ▇▁"
    assert sparkline([3, 3], 2) == "▄▄"
    assert sparkline([0, 1], 2, Charset.ASCII) == ".#"


def test_a_sparkline_shows_what_is_not_finite():
    assert sparkline([1, math.nan, 5], 3) == "▁ ▇"
    assert sparkline([math.nan], 5) == "  nan"
    assert sparkline([math.inf, 1], 2) == "↑▄"
    assert sparkline([math.inf], 4) == " inf"
    assert sparkline([], 3) == "   "


def test_bins_average_what_is_finite():
    np.testing.assert_allclose(bins([1, 3, 5, 7], 2), [2, 6])
    np.testing.assert_allclose(bins([1, math.nan, math.nan, math.nan], 2), [1, math.nan])
    np.testing.assert_allclose(bins([1, 2], 5), [1, 2])


def test_columns_stand_on_the_lowest_line():
    assert columns([0, 0.5, 1, 0.25], 2) == ["  █ ", " ██▄"]
    assert columns([math.nan, 1], 1) == ["?█"]
    assert columns([1e-9], 2) == [" ", "▁"]


@given(series, size, charsets)
def test_a_sparkline_has_the_width_asked(values, width, charset):
    text = sparkline(values, width, charset)
    assert len(text) == width
    assert charset is not Charset.ASCII or text.isascii()


@given(series, size, charsets)
def test_columns_have_the_size_asked(values, height, charset):
    rows = columns(values, height, charset)
    assert len(rows) == height
    assert all(len(row) == len(values) for row in rows)


@given(any_float, any_float, size, charsets)
def test_bars_have_the_width_asked(value, limit, width, charset):
    assert len(bar(value, width, charset)) == width
    assert len("".join(signed_bar(value, limit, width, charset))) == width
