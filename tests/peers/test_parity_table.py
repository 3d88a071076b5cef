"""The page says of every feature what the comparison finds, and of none that is not compared."""

import pytest

from tests.peers.parity import FEATURES, TOLERANCE, Feature, Parity, compare
from tests.peers.parity_table import BEGIN, END, PAGE, bound, documented, table, written


@pytest.fixture(scope="module")
def rows():
    return documented(PAGE.read_text(encoding="utf-8"))


def test_the_page_lists_what_is_compared(rows):
    told = "write the table anew: python -m tests.peers.parity_table"
    assert [row.feature for row in rows] == [feature.name for feature in FEATURES], told


def test_every_difference_on_the_page_passes(rows):
    assert all(row.bound <= TOLERANCE for row in rows)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_the_run_confirms_what_the_page_says(rows, feature):
    assert feature.name in [row.feature for row in rows]
    parity = compare(feature)
    # another processor rounds otherwise: what holds is the tolerance
    assert parity.within, parity.differences


def test_notes_are_those_of_the_features():
    page = PAGE.read_text(encoding="utf-8")
    for feature in FEATURES:
        assert f"{feature.note}." in page


@pytest.mark.parametrize(
    ("difference", "shown"),
    [(0.0, 1e-6), (3e-7, 1e-6), (1e-6, 1e-6), (1.1e-6, 1e-5), (9e-6, 1e-5), (2.0, 10.0)],
)
def test_a_difference_is_rounded_up(difference, shown):
    assert bound(difference) == pytest.approx(shown)


def test_what_is_written_is_read_back_and_nothing_else_changes():
    results = [
        Parity(Feature("one", note="as it is"), {"a": 3e-7, "b": 0.0}, ()),
        Parity(Feature("two"), {"a": 2e-6}, ()),
        Parity(Feature("three", note="as it is"), {"a": 0.0}, ()),
    ]
    page = written(f"before\n{BEGIN}old\n{END}after\n", results)
    assert page.startswith(f"before\n{BEGIN}| feature |")
    assert page.endswith(f"{END}after\n")
    assert documented(page) == [("one", 1e-6), ("two", 1e-5), ("three", 1e-6)]
    assert table(results).count("1. as it is.") == 1
    with pytest.raises(ValueError, match="has no place for the table"):
        written("a page without a table", results)
