"""Patterns of joint and body names."""

import pytest

from sim.names import match_names

NAMES = ("FL_hip", "FR_hip", "FL_foot", "FR_foot")


def test_patterns_match_in_full_and_keep_the_order_of_the_names():
    assert match_names([".*_foot", "FL_.*"], NAMES, "body") == [0, 2, 3]
    assert match_names("FR_hip", NAMES, "body") == [1]


def test_a_pattern_without_a_match_is_named_with_the_nearest_names():
    with pytest.raises(ValueError, match=r"no body matches 'FL_foo'; near are FL_foot"):
        match_names([".*", "FL_foo"], NAMES, "body")


def test_a_pattern_that_is_no_expression_is_named():
    with pytest.raises(ValueError, match=r"joint pattern '\(' cannot be read"):
        match_names("(", NAMES, "joint")
