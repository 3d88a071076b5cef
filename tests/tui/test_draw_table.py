from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.draw.spans import Span, cells, plain
from tui.draw.table import GAP, Column, head, layout, row

COLUMNS = (
    Column("name", 6, 0, right=False, grow=4),
    Column("now", 5, 1),
    Column("trend", 8, 3, right=False),
    Column("mean", 5, 2),
)


def test_columns_of_high_rank_give_way_first():
    assert layout(COLUMNS, 40) == [10, 5, 8, 5]
    assert layout(COLUMNS, 22) == [8, 5, 0, 5]
    assert layout(COLUMNS, 13) == [6, 5, 0, 0]
    assert layout(COLUMNS, 4) == [4, 0, 0, 0]
    assert layout(COLUMNS, 0) == [0, 0, 0, 0]


def test_cells_line_up_under_their_titles():
    widths = layout(COLUMNS, 22)
    texts = [(Span("kl"),), (Span("0.01"),), (Span("never"),), (Span("123456789"),)]
    assert plain(head(COLUMNS, widths)) == "name        now   mean"
    assert plain(row(texts, COLUMNS, widths)) == "kl         0.01  12345"


columns = st.lists(
    st.builds(
        Column,
        st.text("abc", max_size=8),
        st.integers(1, 12),
        st.integers(0, 5),
        st.booleans(),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=6,
)


@given(columns, st.integers(0, 60))
def test_a_row_never_exceeds_its_width(columns, width):
    widths = layout(columns, width)
    kept = sum(w > 0 for w in widths)
    assert sum(widths) + GAP * max(kept - 1, 0) <= width
    assert cells(head(columns, widths)) == sum(widths) + GAP * max(kept - 1, 0)
