from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.draw.axis import Guide
from tui.draw.histogram import histogram, outside, rebin
from tui.draw.spans import Charset, Role, cells, plain

any_float = st.floats(allow_nan=True, allow_infinity=True)
GUIDES = (Guide(0.8), Guide(1.0), Guide(1.2))


def test_mass_outside_two_values_is_counted_within_bins():
    assert outside([0, 1, 2], [1, 3], 1.0, 1.5) == pytest.approx((0.25, 0.375))
    assert outside([0, 1, 2], [1, 3], 0.5, 2.0) == pytest.approx((0.125, 0.0))
    assert all(math.isnan(share) for share in outside([0, 1], [0], 0.2, 0.8))


def test_rebinning_keeps_the_mass():
    np.testing.assert_allclose(rebin([0, 1, 2], [1, 3], 4), [0.5, 0.5, 1.5, 1.5])
    assert rebin(np.linspace(0.5, 1.5, 42), np.arange(41), 17).sum() == pytest.approx(820)


def test_a_histogram_with_guides():
    lines = histogram([0.5, 0.7, 0.9, 1.1, 1.3, 1.5], [1, 2, 4, 0, 1], 20, 3, guides=GUIDES)
    assert [plain(line) for line in lines] == [
        "      ┊ ████  ┊     ",
        "▄▄▄▄████████  ┊ ▄▄▄▄",
        "0.5  0.8  1  1.2 1.5",
    ]


def test_columns_beyond_the_guides_are_a_warning():
    line = histogram([0, 1, 2, 3], [5, 5, 5], 9, 1, guides=(Guide(1.0), Guide(2.0)))[0]
    assert [span.role for span in line] == [Role.WARNING, Role.PRIMARY, Role.WARNING]


def test_a_policy_that_has_not_moved_is_one_column():
    counts = np.zeros(41, int)
    counts[20] = 4000
    top = plain(histogram(np.linspace(0.5, 1.5, 42), counts, 41, 4, guides=GUIDES)[0])
    assert top.count("█") == 1


@given(
    st.lists(any_float, max_size=12),
    st.lists(st.integers(-2, 2**62), max_size=12),
    st.integers(0, 30),
    st.integers(0, 8),
    st.lists(any_float.map(Guide), max_size=4),
    st.sampled_from(list(Charset)),
)
def test_anything_fits_any_size(edges, counts, width, height, guides, charset):
    lines = histogram(edges, counts, width, height, guides=guides, charset=charset)
    assert len(lines) == height
    assert all(cells(line) == width for line in lines)
    outside(edges, counts, 0.8, 1.2)
