"""The time axis: what happened when, told by shape, and what the shapes mean."""

import numpy as np
import pytest

from tui.draw.axis import GUTTER
from tui.draw.spans import Charset, cells, plain
from tui.draw.time_axis import Mark, MarkKind, TimeAxis, weightiest

WIDTH = 40
NOTHING = np.zeros(WIDTH, bool)


def axis(charset=Charset.BRAILLE, right=100):
    return TimeAxis(0, right, WIDTH, charset)


def marks(**at):
    return [Mark(place, MarkKind[kind], kind.lower()) for kind, place in at.items()]


def drawn(line):
    return plain(line)[GUTTER:]


@pytest.mark.parametrize("charset", Charset)
def test_no_two_kinds_have_one_shape(charset):
    assert len({kind.glyph(charset) for kind in MarkKind}) == len(MarkKind)
    assert not any(kind.glyph(charset) in "x-─^▲" for kind in MarkKind)
    if charset is Charset.ASCII:
        assert all(kind.glyph(charset).isascii() for kind in MarkKind)


def test_marks_stand_where_they_happened_and_those_out_of_sight_nowhere():
    line = drawn(axis().line(NOTHING, [*marks(CHECKPOINT=0, EDIT=100), *marks(BREAK=101)]))
    assert line[0] == "◆"
    assert line[-1] == "■"
    assert "‖" not in line


def test_of_several_in_a_cell_the_gravest_is_drawn_and_all_are_read():
    crowd = marks(CHECKPOINT=50, EDIT=50, TROUBLE=50, BREAK=50)
    line = drawn(axis().line(NOTHING, crowd))
    assert line.count("!") == 1
    assert not set("◆■‖") & set(line)
    assert axis().under(50, crowd) == crowd
    assert axis().under(20, crowd) == []
    assert weightiest(crowd).kind is MarkKind.TROUBLE


def test_a_value_that_cannot_be_shown_gives_way_to_trouble_alone():
    broken = NOTHING.copy()
    broken[0] = True
    assert drawn(axis().line(broken, marks(CHECKPOINT=0)))[0] == "x"
    assert drawn(axis().line(broken, marks(TROUBLE=0)))[0] == "!"
    assert drawn(axis().line(broken, marks(TROUBLE=0), cursor=0))[0] == "▲"


def test_the_legend_names_what_is_in_sight_and_nothing_else():
    assert drawn(axis().labels("iteration", marks(CHECKPOINT=10, EDIT=200))).split() == [
        "0", "iteration", "◆", "saved", "100",
    ]  # fmt: skip
    everything = marks(TROUBLE=1, RESUME=2, BREAK=3, EDIT=4, CHECKPOINT=5)
    assert drawn(axis().labels("iteration", everything)).split() == [
        "0", "!", "trouble", "»", "resumed", "‖", "break", "100",
    ]  # fmt: skip
    assert drawn(axis().labels("iteration")).split() == ["0", "iteration", "100"]


@pytest.mark.parametrize("width", range(1, 90))
def test_every_width_is_filled_exactly(width):
    narrow = TimeAxis(0, 12_345, width, Charset.BRAILLE)
    everything = marks(TROUBLE=1, RESUME=2, BREAK=3, EDIT=4, CHECKPOINT=5)
    assert cells(narrow.line(np.zeros(width, bool), everything)) == GUTTER + width
    assert cells(narrow.labels("iteration", everything)) == GUTTER + width
