from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.draw.spans import (
    Role,
    Span,
    ascii_only,
    beside,
    block,
    cells,
    clean,
    crop,
    fit,
    labelled,
    pad,
    plain,
    runs,
    whole,
)

texts = st.text(st.characters(exclude_categories=("Cc", "Cs", "Mn", "Me", "Cf")), max_size=12)
lines = st.lists(st.builds(Span, texts), max_size=4).map(tuple)


def test_a_line_is_cropped_or_filled():
    assert plain(fit((Span("abc"), Span("def")), 4)) == "abcd"
    assert plain(fit((Span("abc"),), 5)) == "abc  "
    assert fit((Span("abc"),), 0) == ()


def test_a_wide_character_that_does_not_fit_leaves_a_blank():
    assert plain(fit((Span("a世"),), 2)) == "a "


def test_cropping_says_so():
    assert crop("learning", 5) == "lear…"
    assert crop("learning", 8) == "learning"
    assert crop("learning", 1) == "l"
    assert pad("ab", 4, right=True) == "  ab"


def test_control_characters_do_not_reach_the_screen():
    assert clean("a\nb\x1b[31m\tc") == "a b [31m c"
    assert clean("naïve π") == "naïve π"


def test_a_block_has_its_size():
    assert [plain(line) for line in block([(Span("abc"),)], 2, 2)] == ["ab", "  "]
    assert block([(Span("abc"),)], 2, 0) == []


def test_blocks_stand_beside_each_other():
    left, right = block([(Span("a"),)], 2, 1), block([(Span("b"),)], 1, 1)
    assert plain(beside(left, right, gap=1)[0]) == "a  b"


def test_equal_roles_become_one_span():
    assert runs("aab", [Role.TEXT, Role.TEXT, Role.ERROR]) == (
        Span("aa", Role.TEXT),
        Span("b", Role.ERROR),
    )
    assert runs("", []) == ()


def test_parts_that_do_not_fit_are_left_out_whole():
    parts = [labelled("rate", "1"), labelled("KL", "2"), labelled("max", "3")]
    assert plain(whole(parts, 14)) == "rate 1  KL 2"
    assert plain(whole(parts, 19)) == "rate 1  KL 2  max 3"


def test_ascii_keeps_every_cell():
    line = (Span("σ ± ε · 世 x"),)
    assert plain(ascii_only(line)) == "s ~ e - ?? x"


@given(lines, st.integers(0, 20))
def test_any_line_fits_any_width(line, width):
    assert cells(fit(line, width)) == width
    assert cells((Span(pad(plain(line), width)),)) == width


@given(lines)
def test_any_line_becomes_ascii(line):
    converted = ascii_only(line)
    assert plain(converted).isascii()
    assert cells(converted) == cells(line)
