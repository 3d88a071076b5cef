"""Theme and characters while the screen is open: a key changes all of it, at once."""

import pytest

from tests.tui.fake_session import FakeSession
from tests.tui.poses import walker
from tests.tui.test_pictures import SAMPLE
from tests.tui.test_play_screen import FakePerformance, app_of, settled, text
from tests.tui.test_screens import open_menu
from tui.app import DashboardApp
from tui.draw.spans import Charset
from tui.looks import THEMES
from tui.machine import Machine
from tui.panels.drawing import Drawing
from tui.screens.dashboard import DashboardScreen


class Session(FakeSession):
    def start(self):
        pass

    def join(self, timeout=None):
        return True


def styles_of(app):
    strips = app.screen._compositor.render_strips()
    return {segment.style for strip in strips for segment in strip if segment.style}


@pytest.fixture(autouse=True)
def same_machine(monkeypatch):
    monkeypatch.setattr(Machine, "sample", lambda self, pid, run_dir: SAMPLE)


async def opened_with(theme, view, monkeypatch):
    """What is on show if the program is opened in a theme."""
    monkeypatch.setenv("TEXTUAL_THEME", theme)
    app = DashboardApp(Session(), fps=50)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press(view)
        await pilot.pause(0.2)
        return [[*strip] for strip in app.screen._compositor.render_strips()]


@pytest.mark.parametrize(
    ("view", "theme"),
    [*((view, THEMES[1]) for view in "12rt"), *(("1", theme) for theme in THEMES[2:])],
)
async def test_a_key_changes_the_theme_of_all_that_is_on_show(view, theme, monkeypatch):
    app = DashboardApp(Session(), fps=50)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press(view)
        while app.theme != theme:
            await pilot.press("T")
        app.clear_notifications()
        await pilot.pause(0.2)
        seen = [[*strip] for strip in app.screen._compositor.render_strips()]
    assert seen == await opened_with(theme, view, monkeypatch)


async def test_after_the_last_theme_comes_the_first():
    app = DashboardApp(Session(), fps=50)
    async with app.run_test() as pilot:
        await pilot.pause()
        seen = [app.theme]
        for _ in THEMES:
            await pilot.press("T")
            seen.append(app.theme)
    assert seen == [*THEMES, THEMES[0]]


@pytest.mark.parametrize("view", "147")
async def test_a_key_changes_the_characters_of_all_that_is_on_show(view):
    app = DashboardApp(Session(), fps=50)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press(view)
        await pilot.pause(0.2)
        seen = {app.charset: text(app)}
        for _ in range(2):
            await pilot.press("A")
            app.clear_notifications()
            await pilot.pause(0.3)
            seen[app.charset] = text(app)
        assert seen[Charset.ASCII].isascii()
        await pilot.press("A")
        app.clear_notifications()
        await pilot.pause(0.3)
        assert text(app) == seen[Charset.BRAILLE]
        assert not any(panel.has_class("-ascii") for panel in app.screen.query(Drawing))


async def test_the_keys_work_while_a_robot_plays_and_stand_in_its_help():
    app = app_of(FakePerformance(walker()))
    async with app.run_test(size=(120, 50)) as pilot:
        await settled(pilot)
        dark = styles_of(app)
        await pilot.press("T", "A", "A")
        app.clear_notifications()
        await settled(pilot)
        assert styles_of(app) != dark
        assert text(app).isascii()
        await pilot.press("question_mark")
        await settled(pilot)
        assert "Theme: dark, light" in text(app)


async def test_the_menu_has_the_keys_too_and_the_run_that_it_starts_keeps_what_they_chose():
    app, running, _ = open_menu()
    async with running as pilot:
        await pilot.pause(0.1)
        before = styles_of(app)
        await pilot.press("T", "A")
        app.clear_notifications()
        await pilot.pause(0.3)
        assert not before & styles_of(app)
        await pilot.press("enter")
        await pilot.pause(0.3)
        assert isinstance(app.screen, DashboardScreen)
        assert (app.theme, app.charset) == (THEMES[1], Charset.BLOCK)
