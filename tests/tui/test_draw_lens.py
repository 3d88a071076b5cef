"""Zoom, smoothing and cursor of the charts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.draw.chart import line_chart
from tui.draw.lens import WINDOWS, Lens, moving_average, nearest
from tui.draw.spans import Charset, Role, plain


def test_a_moving_average_is_the_textbooks_without_the_pull_to_zero():
    # 0.5 x, then (0.25 x0 + 0.5 x1) / 0.75, then (0.125 x0 + 0.25 x1 + 0.5 x2) / 0.875
    smooth = moving_average([8.0, 2.0, 4.0], 0.5)
    assert smooth.tolist() == pytest.approx([8.0, 4.0, (1.0 + 0.5 + 2.0) / 0.875])


def test_what_is_not_finite_stays_and_does_not_count():
    smooth = moving_average([8.0, math.nan, math.inf, 2.0], 0.5)
    assert math.isnan(smooth[1])
    assert smooth[2] == math.inf
    assert smooth[3] == pytest.approx(4.0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.floats(0, 0.99))
def test_smoothing_stays_between_the_extremes(values, weight):
    smooth = moving_average(values, weight)
    assert smooth.min() >= min(values) - 1e-6
    assert smooth.max() <= max(values) + 1e-6


@pytest.mark.parametrize("values", [[], [math.nan], [3.0]])
def test_series_of_no_or_one_value_are_smoothed(values):
    assert moving_average(values, 0.9) == pytest.approx(values, nan_ok=True)


def test_zoom_ends_at_the_whole_run_and_at_the_closest():
    lens = Lens()
    assert lens.span(0, 3000) == (0, 3000)
    lens.zoom(4)
    assert lens.span(0, 3000) == (2800, 3000)
    assert lens.span(2950, 3000) == (2950, 3000)
    lens.zoom(99)
    assert lens.words() == f"last {WINDOWS[-1]}"
    lens.zoom(-99)
    assert lens.words() == ""
    assert lens.span(0, 0) == (0, 1)


def test_the_cursor_comes_in_from_the_right_and_goes_out_there():
    lens = Lens()
    lens.move(-3, 0, 100)
    assert lens.cursor == 97
    lens.move(-500, 0, 100)
    assert lens.cursor == 0
    lens.move(40, 0, 100)
    assert lens.cursor == 40
    lens.move(61, 0, 100)
    assert lens.cursor is None


def test_the_value_under_the_cursor_is_of_the_bin_that_holds_it():
    iterations = np.arange(0, 40, 4)
    assert nearest(iterations, 7) == 1
    assert nearest(iterations, 8) == 2
    assert nearest(iterations, 99) == 9
    assert nearest(iterations, -3) == 0


@pytest.mark.parametrize("charset", list(Charset))
def test_a_chart_marks_its_cursor_and_draws_the_smooth_line_in_front(charset):
    values = [0.0, 4.0, 0.0, 4.0, 0.0]
    lines = line_chart(range(5), values, 28, 10, front=[2.0] * 5, cursor=2.0, charset=charset)
    mark, foot = (":", "^") if charset is Charset.ASCII else ("┊", "▲")
    column = 8 + 10  # the middle of twenty cells behind the gutter, rounded
    text = [plain(line) for line in lines]
    assert text[-2][column] == foot
    assert sum(line[column] == mark for line in text) >= 3
    roles = {span.role for line in lines for span in line}
    assert {Role.PRIMARY, Role.TREND, Role.CURRENT} <= roles


def test_a_cursor_out_of_sight_is_not_drawn():
    lines = line_chart(range(5), range(5), 30, 10, x_range=(2, 4), cursor=1.0)
    assert "▲" not in "".join(map(plain, lines))
