import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.draw.canvas import Canvas
from tui.draw.spans import Charset, Role, cells, plain

anything = st.floats(allow_nan=True, allow_infinity=True)


def text(canvas):
    return [plain(line) for line in canvas.render()]


def test_a_line_of_dots_runs_from_end_to_end():
    canvas = Canvas(3, 1)
    assert canvas.size == (6, 4)
    canvas.lines([[[0, 0], [5, 0]]], Role.PRIMARY)
    assert text(canvas) == ["⠉⠉⠉"]
    canvas.lines([[[0, 3], [5, 3]]], Role.PRIMARY)
    assert text(canvas) == ["⣉⣉⣉"]


def test_every_second_dot_leaves_gaps():
    canvas = Canvas(2, 1)
    canvas.lines([[[0, 0], [3, 0]]], Role.PRIMARY, every=2)
    assert text(canvas) == ["⠁⠁"]


def test_half_blocks_and_ascii_draw_the_same_slope():
    block, ascii_ = (Canvas(4, 2, charset) for charset in (Charset.BLOCK, Charset.ASCII))
    assert block.size == ascii_.size == (4, 4)
    for canvas in (block, ascii_):
        canvas.lines([[[0, 3], [3, 0]]], Role.PRIMARY)
    assert text(block) == ["  ▄▀", "▄▀  "]
    assert text(ascii_) == ["  //", "//  "]


@pytest.mark.parametrize(
    ("end", "drawn"),
    [((5, 5), "\\"), ((5, 0), "-"), ((0, 5), "|"), ((5, -5), "/")],
)
def test_an_ascii_line_leans_as_it_does(end, drawn):
    canvas = Canvas(20, 20, Charset.ASCII)
    canvas.lines([[[10, 20], [10 + end[0], 20 + end[1]]]], Role.TEXT)
    assert set("".join(text(canvas))) - {" "} == {drawn}


def test_what_is_drawn_later_lies_on_top_and_text_above_all():
    canvas = Canvas(3, 1)
    canvas.lines([[[0, 0], [5, 0]]], Role.PRIMARY)
    canvas.dots([[2, 3]], Role.WARNING)
    canvas.text(2, 0, "xy", Role.STRONG)
    (line,) = canvas.render()
    assert [(span.text, span.role) for span in line] == [
        ("⠉", Role.PRIMARY),
        ("⡉", Role.WARNING),
        ("x", Role.STRONG),
    ]


def test_a_disc_is_full_and_a_circle_is_not():
    full, empty = Canvas(5, 3), Canvas(5, 3)
    full.disc((4, 5), 3, Role.TEXT)
    empty.disc((4, 5), 3, Role.TEXT, filled=False)

    def count(canvas):
        drawn = "".join(text(canvas)).replace(" ", "")
        return sum((ord(c) - 0x2800).bit_count() for c in drawn)

    assert count(full) == 29
    assert 12 <= count(empty) < count(full)
    small = Canvas(3, 1, Charset.ASCII)
    small.disc((1, 0), 1, Role.TEXT)
    small.disc((2, 0), 1, Role.TEXT, filled=False)
    assert text(small) == [" @o"]


@given(
    st.integers(0, 12),
    st.integers(0, 5),
    st.sampled_from(Charset),
    st.lists(st.tuples(anything, anything, anything, anything), max_size=5),
)
def test_no_number_is_too_large_to_be_left_out(width, height, charset, numbers):
    canvas = Canvas(width, height, charset)
    canvas.lines(np.array(numbers, float).reshape(-1, 2, 2), Role.PRIMARY)
    canvas.dots(np.array(numbers, float).reshape(-1, 2), Role.GUIDE)
    for a, b, *_ in numbers:
        canvas.label((a, b), "here")
    lines = canvas.render()
    assert len(lines) == height
    assert all(cells(line) == width for line in lines)
    if charset is Charset.ASCII:
        assert all(plain(line).isascii() for line in lines)
