from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.draw.axis import GUTTER, Guide, Scale, round_range
from tui.draw.chart import Series, line_chart, overlay_chart
from tui.draw.spans import Charset, Role, cells, plain

any_float = st.floats(allow_nan=True, allow_infinity=True)
series = st.lists(any_float, max_size=50)


def chart(x, y, width=24, height=6, **options):
    return [plain(line).rstrip() for line in line_chart(x, y, width, height, **options)]


def test_a_rising_line_in_braille():
    assert chart(range(16), range(16), 24, 6) == [
        "       │            ⣀⡠⠒⠊",
        "     10┤        ⣀⡠⠒⠊",
        "       │   ⢀⣀⠔⠒⠉",
        "      0┤⣀⠔⠊⠁",
        "       └────────────────",
        "        0             15",
    ]


def test_a_rising_line_in_ascii():
    assert chart(range(4), range(4), GUTTER + 4, 6, charset=Charset.ASCII, x_label="it") == [
        "       |   |",
        "      2+  |'",
        "       | |'",
        "      0+.:",
        "       +----",
        "        0  3",
    ]


@pytest.mark.parametrize("top", [1.0, 3.448, 6.3, 16.9, 661.9])
@pytest.mark.parametrize("height", range(4, 13))
def test_three_ticks_or_more_never_stand_on_adjacent_lines(top, height):
    text = chart(range(40), np.linspace(-0.3 * top, top, 40), 50, height)
    ticks = [row for row, line in enumerate(text) if line[GUTTER - 1 : GUTTER] == "┤"]
    assert ticks
    if len(ticks) > 2:
        assert min(np.diff(ticks)) >= 2


def test_a_step_is_joined():
    rows = chart([0, 1], [0, 1], GUTTER + 4, 6, charset=Charset.BLOCK)
    assert all(row[GUTTER:].strip() for row in rows[:4])


def test_a_nan_is_a_gap_with_a_mark_on_the_axis():
    rows = chart([0, 1, 2], [1, math.nan, 5], GUTTER + 9, 6, charset=Charset.BLOCK)
    plot = [row[GUTTER:].ljust(9) for row in rows[:4]]
    assert all(row[4] == " " for row in plot)
    assert rows[4][GUTTER:] == "────x────"


def test_a_missing_point_between_two_is_bridged():
    rows = chart([0, 8], [1, 1], GUTTER + 9, 6, charset=Charset.BLOCK)
    assert any(len(row[GUTTER:].strip()) == 9 for row in rows[:4])


@pytest.mark.parametrize(
    ("values", "notice"),
    [([], "no data yet"), ([math.nan], "nan"), ([math.inf], "inf"), ([math.inf, math.nan], "inf")],
)
def test_a_series_without_a_line_says_why(values, notice):
    assert any(notice in row for row in chart(range(len(values)), values, 40, 8))


def test_an_infinity_beside_a_number_leaves_the_number():
    rows = chart([0, 1], [math.inf, 1], GUTTER + 8, 6, charset=Charset.BLOCK)
    assert rows[4][GUTTER] == "x"
    assert any(row[GUTTER:].strip() for row in rows[:4])


def test_values_that_are_not_positive_are_gaps_on_a_log_axis():
    rows = chart([0, 1, 2], [1, 0, 100], GUTTER + 9, 6, log=True)
    assert rows[4][GUTTER:] == "────x────"


def test_a_log_axis_has_its_ticks_at_powers_of_ten():
    rows = chart(range(5), [1e-5, 1e-4, 1e-3, 1e-2, 1e-1], 40, 14, log=True)
    labels = [row[: GUTTER - 1].strip() for row in rows if row[GUTTER - 1 : GUTTER] == "┤"]
    assert labels == ["0.1", "0.01", "0.001", "0.0001", "1e-5"]


def test_a_guide_is_a_line_with_a_label():
    rows = chart([0, 1], [0, 0], 40, 8, guides=[Guide(2.0, "desired")])
    guided = next(row for row in rows if row.endswith("desired"))
    assert guided.count("┄") > 10


def test_guides_do_not_hide_the_line():
    lines = line_chart([0, 9], [1, 1], GUTTER + 10, 6, guides=[Guide(1.0)])
    assert any(
        span.role == Role.PRIMARY and len(span.text) == 10 for line in lines for span in line
    )


def test_spikes_survive_when_points_share_a_column():
    values = np.zeros(5000)
    values[2500] = 100.0
    rows = chart(range(5000), values, 30, 8)
    assert rows[0][GUTTER:].strip()


def test_the_extremes_behind_a_mean_are_drawn():
    rows = chart([0, 1], [0, 0], GUTTER + 4, 6, low=[0, -8], high=[0, 8], charset=Charset.BLOCK)
    assert sum(bool(row[GUTTER + 3 :].strip()) for row in rows[:4]) == 4


def test_charts_of_one_range_line_up():
    early, whole = (
        chart(x, [1.0] * len(x), 40, 8, x_range=(0, 20)) for x in (range(11), range(21))
    )
    assert early[-1] == whole[-1]
    widths = [max(len(row[GUTTER:].rstrip()) for row in rows[:6]) for rows in (early, whole)]
    assert widths == [pytest.approx(16, abs=1), 32]


def test_a_constant_lies_in_the_middle_of_its_scale():
    scale = Scale.around([5.0, 5.0])
    assert scale.low < 5.0 < scale.high
    assert Scale.around([]) == Scale(0.0, 1.0)
    assert Scale.around([math.nan], log=True) == Scale(0.1, 1.0, log=True)


def test_ticks_are_round_and_on_the_scale():
    assert Scale(0.0, 24.0).ticks(3) == [0, 10, 20]
    assert Scale(31.0, 918.0).ticks(3) == [200, 400, 600, 800]
    assert Scale(1e-5, 1e-2, log=True).ticks(4) == pytest.approx([1e-5, 1e-4, 1e-3, 1e-2])


@given(
    series, st.integers(0, 70), st.integers(0, 20), st.booleans(), st.sampled_from(list(Charset))
)
def test_anything_fits_any_size(values, width, height, log, charset):
    lines = line_chart(
        range(len(values)),
        values,
        width,
        height,
        log=log,
        charset=charset,
        guides=[Guide(0.5, "half")],
        x_label="iteration",
    )
    assert len(lines) == height
    assert all(cells(line) == width for line in lines)
    if charset is Charset.ASCII:
        assert all(plain(line).isascii() for line in lines)


@given(st.lists(st.tuples(any_float, any_float), max_size=20), any_float, any_float, any_float)
def test_any_position_and_range_is_drawn(points, left, right, guide):
    x, y = ([p[i] for p in points] for i in (0, 1))
    lines = line_chart(x, y, 40, 10, x_range=(left, right), guides=[Guide(guide, "here")])
    assert [cells(line) for line in lines] == [40] * 10


@given(st.lists(any_float, max_size=6), st.booleans(), st.integers(0, 8))
def test_ticks_of_any_scale_are_few_and_rising(values, log, most):
    ticks = Scale.around(values, log=log).ticks(most)
    assert len(ticks) <= most + 1
    assert ticks == sorted(ticks)


def test_a_chart_takes_less_than_three_milliseconds():
    x, y = np.arange(500), np.sin(np.arange(500) / 30)
    line_chart(x, y, 64, 14)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        line_chart(x, y, 64, 14)
        times.append(time.perf_counter() - start)
    assert min(times) < 3e-3


def test_overlaid_series_share_their_axes_and_keep_their_marks():
    lines = overlay_chart(
        [Series([0, 10], [0.0, 10.0], "A", "cyan"), Series([0, 5], [10.0, 10.0], "B", "red")],
        40,
        12,
        x_label="env steps",
        charset=Charset.ASCII,
    )
    text = [plain(line) for line in lines]
    assert [len(line) for line in text] == [40] * 12
    assert text[0].count("B") == 17  # columns 0 to 16 of 31, on the highest line
    assert text[0][-1] == "A"
    assert text[9].startswith("      0+A")
    assert text[-1].split() == ["0", "env", "steps", "10"]
    assert {span.role for line in lines for span in line} >= {"cyan", "red"}


@pytest.mark.parametrize("charset", Charset)
@pytest.mark.parametrize(
    "lines", [[], [Series([], [], "A", "")], [Series([1], [math.nan], "A", "")]]
)
def test_an_overlay_without_values_says_so(lines, charset):
    text = "\n".join(plain(line) for line in overlay_chart(lines, 40, 12, charset=charset))
    assert "no data yet" in text or "nan" in text


def test_an_overlay_has_exactly_the_room_that_it_is_given():
    for width in (0, 5, 11, 12, 40):
        for height in (0, 4, 5, 12):
            lines = overlay_chart([Series([0, 1], [0.0, 1.0], "A", "")], width, height)
            assert [cells(line) for line in lines] == [width] * height


@pytest.mark.parametrize(
    ("ends", "expected"),
    [((-1.3, 27.2), (-10, 30)), ((0.2, 0.9), (0, 1)), ((5.0, 5.0), (4.5, 5.5)), ((0, 0), (-1, 1))],
)
def test_a_round_range_holds_both_ends(ends, expected):
    low, high = round_range(*ends)
    assert low <= ends[0]
    assert high >= ends[1]
    assert low < high
    assert (low, high) == pytest.approx(expected, abs=0.6)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_any_range_can_be_rounded(one, other):
    low, high = round_range(min(one, other), max(one, other))
    assert low < high
