from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.draw.numbers import (
    count,
    duration,
    known,
    num_bytes,
    number,
    percent,
    plural,
    short_seconds,
    whole_number,
)

any_float = st.floats(allow_nan=True, allow_infinity=True)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "      0"),
        (0.0113, " 0.0113"),
        (1.0, "  1.000"),
        (-24.5, " -24.50"),
        (312.46, "  312.5"),
        (9999.0, "   9999"),
        (9999.6, "  10.0k"),
        (104_600, " 104.6k"),
        (999_960, "   1.0M"),
        (4.4e-4, " 4.4e-4"),
        (-1e-300, "-1e-300"),
        (1e300, "  1e300"),
        (math.nan, "    nan"),
        (-math.inf, "   -inf"),
    ],
)
def test_a_number_is_written_with_few_digits_in_seven_cells(value, text):
    assert number(value) == text


@given(any_float)
def test_seven_cells_hold_every_number(value):
    text = number(value)
    assert len(text) == 7
    assert "#" not in text


@given(any_float, st.integers(0, 12), st.booleans())
def test_a_number_has_exactly_the_width_asked(value, width, sign):
    assert len(number(value, width, sign=sign)) == width
    assert len(known(value, width, sign=sign)) == width


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e20, max_value=1e20))
def test_a_written_number_is_near_its_value(value):
    text = number(value).strip()
    factor = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}.get(text[-1], 1.0)
    read = float(text.rstrip("kMGTPE")) * factor
    assert read == pytest.approx(value, rel=0.06 if abs(value) < 1e-3 or factor > 1 else 0.05)


def test_a_number_without_room_is_never_shown_wrong():
    assert number(4.4e-4, 3) == "###"
    assert number(1234, 3) == "###"
    assert number(-0.5, 2) == "##"


def test_a_sign_is_written_where_asked():
    assert number(1.109, sign=True) == " +1.109"
    assert number(0.0, sign=True) == "      0"


def test_what_is_not_known_yet_is_a_dash():
    assert known(math.nan, 6) == "     -"
    assert known(2.0, 6) == " 2.000"


def test_percent_keeps_four_cells():
    assert [percent(v) for v in (0.0, 0.004, 0.61, 1.0, math.nan)] == [
        "  0%",
        " <1%",
        " 61%",
        "100%",
        "   -",
    ]


def test_a_duration_beyond_a_day_keeps_its_days():
    assert duration(2467) == "00:41:07"
    assert duration(86_400 + 2 * 3600 + 3 * 60 + 4) == "1d 02:03:04"
    assert duration(math.nan) == "--:--:--"
    assert duration(math.inf) == "--:--:--"
    assert duration(-5) == "00:00:00"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "   0 ms"),
        (1e-7, "  <1 µs"),
        (3e-4, " 300 µs"),
        (0.00123, " 1.2 ms"),
        (0.5731, " 573 ms"),
        (1.234, " 1.23 s"),
        (123.0, "123.0 s"),
        (math.nan, "      -"),
    ],
)
def test_a_short_time_carries_its_unit(seconds, text):
    assert short_seconds(seconds) == text


def test_counts_and_sizes():
    assert count(98_304) == "98,304"
    assert count(12_000_000) == "12.0M"
    assert num_bytes(512) == "    512 B"
    assert num_bytes(4_718_592) == "  4.5 MiB"
    assert num_bytes(1024**5) == " 1024 TiB"


@given(any_float)
def test_times_and_shares_never_raise(value):
    assert len(percent(value)) == 4
    assert len(short_seconds(value)) == 7
    assert duration(value)


def test_one_thing_is_no_plural():
    assert [plural(n, "world") for n in (0, 1, 4096)] == ["0 worlds", "1 world", "4,096 worlds"]


def test_a_whole_number_has_no_point_while_its_digits_fit():
    assert whole_number(256, 6) == "   256"
    assert whole_number(123_456, 6) == "123456"
    assert whole_number(1_228_800, 6) == "  1.2M"
