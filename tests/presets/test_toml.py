import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presets.toml import format_key, format_table, format_value, leaves

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
TABLES = st.dictionaries(TEXTS, VALUES, max_size=4)


@given(TABLES)
def test_a_table_reads_back_as_it_was(table):
    assert tomllib.loads(format_table(table)) == table


@given(TABLES)
def test_comments_change_nothing(table):
    assert tomllib.loads(format_table(table, lambda path: "why # = [x]")) == table


@given(st.dictionaries(TEXTS, st.dictionaries(TEXTS, SCALARS, max_size=2), max_size=5))
def test_sub_tables_keep_their_order(table):
    assert list(tomllib.loads(format_table(table))) == list(table)


@given(VALUES)
def test_a_value_reads_back_on_one_line(value):
    line = f"value = {format_value(value)}"
    assert "\n" not in line
    assert tomllib.loads(line) == {"value": value}


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_a_dotted_key_reads_back(path):
    table = tomllib.loads(f"{format_key(path)} = 1")
    assert list(leaves(table)) == [(tuple(path), 1)]


def test_numbers_in_a_key_index_a_list():
    assert format_key(("trainer", "hidden dims", 1)) == 'trainer."hidden dims"[1]'


def test_an_unset_key_is_mentioned():
    assert format_table({"a": 1, "b": None}) == "a = 1\n# b is unset\n"


def test_what_toml_cannot_hold_is_refused():
    with pytest.raises(TypeError, match="no value for"):
        format_value(object())
