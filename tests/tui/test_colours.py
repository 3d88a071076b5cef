"""Few colours, none, light or dark: what is written can be told from what it is written on."""

import re

import pytest
from rich._palettes import EIGHT_BIT_PALETTE, STANDARD_PALETTE
from rich.color import ColorSystem

from tests.tui.fake_session import FakeSession
from tui.app import DashboardApp
from tui.draw.spans import Charset
from tui.picture import Picture
from tui.theme import DARK, LIGHT

SIZE = (200, 50)
LINES = frozenset("╭╮╰╯─│┄┊├┤└┴▀▄· ")
"""What may be faint: borders and guides, and the colours of a heat map themselves."""


class Session(FakeSession):
    def start(self):
        pass


async def strips_of(theme, keys=(), **attributes):
    app = DashboardApp(Session(), fps=50)
    app.charset, app.theme = Charset.BRAILLE, theme.name
    for name, value in attributes.items():
        setattr(app, name, value)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(0.1)
        for key in keys:
            await pilot.press(key)
        await pilot.pause(0.1)
        return app.screen._compositor.render_strips()


def sent(strips, system):
    picture = Picture(system)
    picture.resize(*SIZE)
    for y, strip in enumerate(strips):
        for segment in strip:
            if segment.style is not None:
                segment.style._ansi = None  # kept from another terminal's colours
        picture.draw(0, y, strip)
    return picture.changes()


def luminance(rgb):
    """Relative luminance of sRGB (WCAG 2)."""
    red, green, blue = (
        v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in (c / 255 for c in rgb)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(front, back):
    low, high = sorted((luminance(front), luminance(back)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
async def test_only_colours_that_the_terminal_knows_are_sent_and_text_can_be_read(theme):
    strips = await strips_of(theme, ("4", "tab", "1"))
    standard = sent(strips, ColorSystem.STANDARD)
    assert not re.search(r"[34]8;[25];", standard)
    assert re.search(r"\x1b\[[\d;]*[34]\dm", standard)
    eight_bit = sent(strips, ColorSystem.EIGHT_BIT)
    assert "8;2;" not in eight_bit
    assert "38;5;" in eight_bit
    assert "38;2;" in sent(strips, ColorSystem.TRUECOLOR)
    palettes = {
        ColorSystem.STANDARD: STANDARD_PALETTE,
        ColorSystem.EIGHT_BIT: EIGHT_BIT_PALETTE,
        ColorSystem.TRUECOLOR: None,
    }
    for system, palette in palettes.items():
        for segment in (segment for strip in strips for segment in strip):
            ink = segment.style
            if set(segment.text) <= LINES or not (ink and ink.color and ink.bgcolor):
                continue
            if system is ColorSystem.STANDARD and "x" in segment.text and len(segment.text) < 3:
                continue  # a mark in a heat map, which is drawn in shades where colours are few
            front, back = (
                tuple(color.triplet or palette[color.number])
                for color in (ink.color.downgrade(system), ink.bgcolor.downgrade(system))
            )
            assert contrast(front, back) > 2.8, (system.name, segment.text, ink)


async def test_without_colours_nothing_is_lost():
    strips = await strips_of(DARK, no_color=True)
    text = "\n".join(strip.text for strip in strips)
    assert "▀" not in text  # the heat map is in shades
    assert re.search(r"[░▒▓█]{3}", text)
    for mark in (">2 act_step<", "[1 Overview]", "ok KL mean", "RUNNING"):
        assert mark in text
