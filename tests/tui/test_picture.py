"""Only changed cells are sent, and what is sent leads to the wanted picture."""

import pyte
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style

from tui.picture import Picture

WIDTH, HEIGHT = 12, 3
STYLES = [
    None,
    Style.parse("red"),
    Style.parse("bold red on blue"),
    Style.parse("underline"),
    Style.parse("reverse green"),
    Style.parse("#102030 on #a0b0c0"),
    Style.parse("on yellow"),
]
pieces = st.tuples(
    st.integers(0, WIDTH - 1),
    st.integers(0, HEIGHT - 1),
    st.text(alphabet="ab ⠋─é", min_size=1, max_size=WIDTH),
    st.sampled_from(STYLES),
)


class Screen:
    """A terminal that shows what it is sent."""

    def __init__(self):
        self.screen = pyte.Screen(WIDTH, HEIGHT)
        self.screen.reset_mode(pyte.modes.DECAWM)
        self.stream = pyte.Stream(self.screen)

    def cells(self):
        return [[self.screen.buffer[y][x] for x in range(WIDTH)] for y in range(HEIGHT)]


def seen(cell):
    """What a person sees of a cell: no colour of a blank's text."""
    if cell.data == " " and not (cell.underscore or cell.reverse):
        return " ", cell.bg
    return cell


def drawn(pieces):
    """A picture with some text in it."""
    picture = Picture(ColorSystem.TRUECOLOR)
    picture.resize(WIDTH, HEIGHT)
    for piece in pieces:
        draw(picture, piece)
    return picture


def draw(picture, piece):
    x, y, text, style = piece
    picture.draw(x, y, [Segment(text, style)])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(pieces, max_size=4), min_size=1, max_size=5))
def test_changes_lead_to_the_picture_that_all_of_it_would_lead_to(frames):
    stepwise, picture = Screen(), drawn([])
    for frame in frames:
        for piece in frame:
            draw(picture, piece)
        stepwise.stream.feed(picture.changes())
    at_once = Screen()
    at_once.stream.feed(drawn([piece for frame in frames for piece in frame]).changes())
    for ours, theirs in zip(stepwise.cells(), at_once.cells(), strict=True):
        assert list(map(seen, ours)) == list(map(seen, theirs))


def test_one_digit_that_changes_is_all_that_is_sent():
    picture = drawn([(0, 1, "it 41/1500", STYLES[1])])
    picture.changes()
    picture.draw(0, 1, [Segment("it 42/1500", STYLES[1])])
    assert picture.changes() == "\x1b[2;5H\x1b[31m2\x1b[m"
    assert picture.changes() == ""


def test_a_short_way_is_written_and_a_long_one_is_jumped():
    picture = drawn([(0, 0, "0a0bbbbb0", None)])
    picture.changes()
    picture.draw(0, 0, [Segment("1a1bbbbb1", None)])
    assert picture.changes() == "\x1b[1H1a1\x1b[5C1"


def test_wide_characters_are_whole():
    picture = drawn([(0, 0, "深い", None)])
    screen = Screen()
    screen.stream.feed(picture.changes())
    picture.draw(0, 0, [Segment("深a b", None)])
    screen.stream.feed(picture.changes())
    assert screen.screen.display[0].startswith("深a b")


def test_a_colour_of_a_blank_that_nobody_sees_changes_nothing():
    picture = drawn([(0, 0, "    ", Style.parse("red"))])
    picture.changes()
    picture.draw(0, 0, [Segment("    ", Style.parse("bold green"))])
    assert picture.changes() == ""
    picture.draw(0, 0, [Segment("    ", Style.parse("on green"))])
    assert picture.changes() != ""


def test_after_another_size_or_when_told_to_all_is_sent_anew():
    picture = drawn([(0, 0, "abc", None)])
    whole = picture.changes()
    picture.forget()
    assert picture.changes() == whole
    picture.resize(WIDTH, HEIGHT)
    assert picture.changes() == ""
    picture.resize(5, 1)
    assert picture.changes() == "\x1b[1H     "


def test_what_lies_beyond_the_edges_is_left_out():
    picture = drawn([(WIDTH - 2, 0, "abcdef", None), (0, HEIGHT, "below", None)])
    assert "cd" not in picture.changes()


def test_without_colours_a_ground_that_stands_out_is_reversed_and_nothing_else_is_coloured():
    picture = Picture(None)
    picture.resize(20, 1)
    plain, chosen = Style.parse("bold red on #101010"), Style.parse("white on #8080c0")
    picture.draw(0, 0, [Segment("a", plain), Segment("b", chosen), Segment("c")])
    assert picture.changes().rstrip() == "\x1b[1H\x1b[1ma\x1b[0;7mb\x1b[mc"
