"""What is remembered of the screen: kept whole or not at all, and beaten by what is said now."""

import json
import os

import pytest

from tests.tui.fake_session import FakeSession
from tui import remembered
from tui.app import DashboardApp
from tui.draw.spans import Charset
from tui.panels import CurvePanel, RolloutPanel
from tui.remembered import Remembered
from tui.theme import DARK, LIGHT, default_charset, default_theme


class Session(FakeSession):
    def start(self):
        pass

    def join(self, timeout=None):
        return True


@pytest.fixture
def file(state_home):
    return state_home / "ppo-tui/screen.json"


def put(file, text):
    file.parent.mkdir(parents=True)
    file.write_bytes(text if isinstance(text, bytes) else json.dumps(text).encode())


async def press(*keys, leave=True, size=(120, 40)):
    """Open the dashboard, press keys and leave; returns the app."""
    app = DashboardApp(Session(), fps=50)
    async with app.run_test(size=size) as pilot:
        await pilot.pause(0.1)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.05)
        if leave:
            app.exit(0)
    return app


async def test_a_screen_that_nobody_changed_leaves_no_file(state_home):
    await press()
    await press("t", "4", "1", "plus", "minus")
    assert not state_home.exists()


async def test_view_charts_map_theme_and_characters_open_as_they_were_left(file):
    await press("y", "v", "v", "T", "A", "2", "6", "plus", "plus", "right_square_bracket")
    assert json.loads(file.read_text()) == {
        "view": "timing",
        "reach": 2000,
        "smoothing": 0.8,
        "log_axis": ["overview-curve"],
        "quantity": "td_error",
        "theme": LIGHT.name,
        "charset": "block",
    }
    app = DashboardApp(Session(), fps=50)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.1)
        screen = app.screen
        assert screen.view == "timing"
        assert screen.lens.words() == "last 2000 · smoothed 0.8"
        assert [curve.id for curve in screen.query(CurvePanel) if curve.log_axis] == [
            "overview-curve"
        ]
        assert {panel.quantity for panel in screen.query(RolloutPanel)} == {"td_error"}
        assert (app.theme, app.charset) == (LIGHT.name, Charset.BLOCK)


@pytest.mark.parametrize(("key", "view"), [("r", "robot"), ("g", "curve"), ("h", "episodes")])
async def test_views_without_a_number_are_remembered_too(file, key, view):
    await press("3", key)
    assert json.loads(file.read_text())["view"] == view
    app = await press()
    assert app._dashboard.lasting_view == view


async def test_trace_is_not_opened_with_but_the_view_before_it(file):
    await press("4", "t")
    assert json.loads(file.read_text())["view"] == "rewards"


async def test_the_help_and_the_question_how_to_leave_hide_nothing_of_what_is_remembered(file):
    await press("5", "question_mark")
    assert json.loads(file.read_text())["view"] == "curriculum"
    await press("6", "q")
    assert json.loads(file.read_text())["view"] == "timing"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b"[" * 50_000,
        b'"' + b"x" * 1_000_000 + b'"',
        b'{"reach": ' + b"9" * 5000 + b"}",
        {"unknown": 1, "view": "nowhere", "reach": 3, "smoothing": "much", "log_axis": "all"},
        {"view": 7, "reach": True, "smoothing": None, "log_axis": [[1], None, "x"], "quantity": []},
        {"theme": "\ud800", "charset": "runes", "view": "trace", "quantity": "__class__"},
    ],
    ids=range(11),
)
async def test_a_broken_file_is_the_default(file, text):
    put(file, text)
    app = await press(leave=False)
    assert app._dashboard.lasting_view == "overview"
    assert app._dashboard.lens.words() == ""
    assert (app.theme, app.charset) == (DARK.name, Charset.BRAILLE)
    await press("3")  # and is one that is not broken any more
    assert json.loads(file.read_text())["view"] == "update"


async def test_each_value_counts_by_itself(file):
    put(file, {"view": "nowhere", "smoothing": 0.9, "reach": "far", "quantity": "td_error"})
    app = await press()
    screen = app._dashboard
    assert (screen.lasting_view, screen.lens.words()) == ("overview", "smoothed 0.9")


def read_only(file):
    file.parent.mkdir(parents=True)
    file.parent.chmod(0o500)


def folder_in_its_place(file):
    file.mkdir(parents=True)


def pipe_in_its_place(file):
    file.parent.mkdir(parents=True)
    os.mkfifo(file)


def file_around_it(file):
    file.parent.parent.mkdir(parents=True)
    file.parent.write_text("")


def link_to_nowhere(file):
    file.parent.mkdir(parents=True)
    file.symlink_to(os.devnull)


@pytest.mark.parametrize(
    "fault", [read_only, folder_in_its_place, pipe_in_its_place, file_around_it, link_to_nowhere]
)
async def test_a_place_that_takes_nothing_is_no_error_and_stays_as_it_is(file, state_home, fault):
    if fault is read_only and os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    fault(file)
    before = sorted(state_home.rglob("*"))
    app = await press("4")
    assert app.return_value == 0
    assert sorted(state_home.rglob("*")) == before


def test_a_full_disk_leaves_what_was_there(file, small_files):
    remembered.write(Remembered(view="timing"))
    before = file.read_bytes()
    remembered.write(Remembered(log_axis=("x" * 20_000,)))
    assert os.listdir(file.parent) == [file.name]
    assert file.read_bytes() == before


def test_a_full_disk_leaves_no_folder(state_home, small_files):
    remembered.write(Remembered(log_axis=("x" * 20_000,)))
    assert not state_home.exists()


def test_a_link_to_the_file_stays_a_link(file, tmp_path):
    (tmp_path / "dotfiles").mkdir()
    file.parent.mkdir(parents=True)
    file.symlink_to(tmp_path / "dotfiles/screen.json")
    remembered.write(Remembered(view="log"))
    assert file.is_symlink()
    assert remembered.read().view == "log"


def test_without_a_state_folder_it_lies_in_the_home_and_without_a_home_nowhere(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("HOME", str(tmp_path))
    for relative in ("", "state"):
        found = remembered.place({"XDG_STATE_HOME": relative})
        assert found == tmp_path / ".local/state/ppo-tui/screen.json"
    monkeypatch.setenv("HOME", "here")
    assert remembered.place({}) is None


async def test_of_two_at_once_the_last_one_to_leave_wins(file):
    first = DashboardApp(Session(), fps=50)
    async with first.run_test() as pilot:
        await pilot.pause(0.1)
        await pilot.press("2")
        await press("5")
        assert json.loads(file.read_text())["view"] == "curriculum"
        first.exit(0)
    assert json.loads(file.read_text())["view"] == "rollout"


@pytest.mark.parametrize(
    ("environment", "was", "theme"),
    [
        ({}, "nord", "nord"),
        ({"COLORFGBG": "0;15"}, DARK.name, DARK.name),
        ({"TEXTUAL_THEME": "light"}, "nord", LIGHT.name),
        ({"TEXTUAL_THEME": "gruvbox"}, "nord", "gruvbox"),
    ],
)
def test_the_environment_beats_the_remembered_theme(environment, was, theme):
    assert default_theme(environment, remembered=was) == theme


@pytest.mark.parametrize(
    ("environment", "was", "charset"),
    [
        ({"LANG": "C.UTF-8"}, "ascii", Charset.ASCII),
        ({"LANG": "C"}, "braille", Charset.ASCII),
        ({"LANG": "C.UTF-8", "TERM": "linux"}, "braille", Charset.BLOCK),
        ({"LANG": "C.UTF-8", "TERM": "linux"}, "ascii", Charset.ASCII),
        ({"LANG": "C", "PPO_TUI_CHARSET": "braille"}, "ascii", Charset.BRAILLE),
        ({"PPO_TUI_CHARSET": "runes"}, "runes", Charset.BRAILLE),
    ],
)
def test_characters_that_the_terminal_lacks_are_not_drawn_for_being_remembered(
    environment, was, charset
):
    assert default_charset(environment, remembered=was) is charset


async def test_what_an_option_or_the_environment_says_is_not_remembered(file, monkeypatch):
    monkeypatch.setenv("TEXTUAL_THEME", "nord")
    monkeypatch.setenv("LC_ALL", "C")
    app = await press("3")
    assert (app.theme, app.charset) == ("nord", Charset.ASCII)
    kept = json.loads(file.read_text())
    assert (kept["theme"], kept["charset"]) == ("", "")
