"""What a filter lets through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.draw.search import matches


@pytest.mark.parametrize(
    ("wanted", "text", "found"),
    [
        ("", "anything", True),
        ("loss", "Loss/kl_mean", True),
        ("kl mean", "Loss/kl_mean", True),
        ("kl std", "Loss/kl_mean", False),
        ("^loss/.*max$", "Loss/kl_max", True),
        ("^kl", "Loss/kl_max", False),
        ("(vel|ang)_", "ang_vel_xy_l2", True),
        ("[xy", "foot_[xy_error", True),
        ("*", "a * b", True),
    ],
)
def test_words_and_expressions(wanted, text, found):
    assert matches(wanted, text) is found


@given(st.text(max_size=20), st.text(max_size=20))
def test_whatever_is_typed_is_no_error(wanted, text):
    matches(wanted, text)
