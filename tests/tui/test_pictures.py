"""Every screen at three sizes shows what it showed when somebody last looked at it."""

import re
import time
from dataclasses import replace
from types import MappingProxyType

import pytest
from textual.widgets import Input

from tests.tui import renditions
from tests.tui.fake_session import FakeSession, episodes_view, metrics_at
from tests.tui.poses import walker
from tests.tui.test_play_screen import FakePerformance, app_of
from tests.tui.test_screens import open_menu
from trainer.stages import Stage
from trainer.telemetry import RunState
from tui.app import DashboardApp
from tui.draw.spans import Charset
from tui.machine import Machine, Sample
from tui.theme import DARK, LIGHT

SIZES = ((80, 24), (120, 40), (200, 50))
GIB = 2.0**30
SAMPLE = Sample(
    pid=1234,
    cores=16,
    load=9.5,
    cpu=7.25,
    screen=0.021,
    threads=41,
    resident=2.5 * GIB,
    memory_total=64 * GIB,
    memory_free=40 * GIB,
    run_bytes=84e6,
    disk_free=120 * GIB,
    checkpoints=("model_250.pt", "model_300.pt"),
    gpus=(),
)


@pytest.fixture(autouse=True)
def same_everywhere(monkeypatch, tmp_path):
    """No clock, no time zone, no machine and no folder of this computer is in a picture."""
    for name in ("NO_COLOR", "TEXTUAL_THEME", "COLORFGBG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(Input, "cursor_blink", False)
    monkeypatch.setattr(Machine, "sample", lambda self, pid, run_dir: SAMPLE)
    monkeypatch.chdir(tmp_path)
    yield
    monkeypatch.undo()
    time.tzset()


class Session(FakeSession):
    def start(self):
        pass

    def join(self, timeout=None):
        return True


def running():
    """In the middle of a rollout, with a full one behind it."""
    session = Session(stage=Stage.FRESH, step=24)
    ended = replace(session.snapshot(), episodes=episodes_view(311, session.info))
    session = Session()
    session.publish(boundary=ended)
    return session


def broken():
    """All that can be NaN is."""
    nan = float("nan")
    session = Session()
    session.history.append(312, dict.fromkeys(metrics_at(1), nan))
    session.publish(metrics=MappingProxyType(dict.fromkeys(metrics_at(1), nan)), eta=nan)
    return session


def fresh():
    """Nothing is known yet."""
    return Session(completed=0, step=0)


def starting():
    session = Session(completed=0, step=0)
    session.publish(
        state=RunState.STARTING, info=None, rollout=None, progress="building 4,096 worlds"
    )
    return session


def failed():
    session = Session()
    session.fail("NonFiniteError: observations: obs[37] = joint_vel_rel[1], world 77, t 11")
    return session


def paused():
    return Session(paused=True, stage=Stage.TARGETS, step=24)


def one_iteration():
    return Session(completed=1, step=3)


VIEWS = {
    "overview": (running, "1"),
    "rollout": (running, "2"),
    "rollout-advantage": (running, "2 v v"),
    "rollout-ends": (running, "2 v v v v"),
    "episodes": (running, "h"),
    "update": (running, "3"),
    "rewards": (running, "4 tab down down"),
    "curriculum": (running, "5"),
    "timing": (running, "6"),
    "log": (running, "7"),
    "curves": (running, "g plus plus right_square_bracket right_square_bracket left left left"),
    "curve-zoomed": (running, "tab tab z y"),
    "filter": (running, "4 slash v e l"),
    "overview-fresh": (fresh, "1"),
    "overview-one-iteration": (one_iteration, "1"),
    "overview-nan": (broken, "1"),
    "update-nan": (broken, "3"),
    "starting": (starting, ""),
    "paused": (paused, ""),
    "failure": (failed, "8"),
    "help": (running, "3 tab question_mark"),
    "quit": (running, "q"),
    "iterations": (running, "N"),
    "mask": (running, "m"),
    "breakpoints": (running, "b"),
}
"""Name to session and the keys pressed."""


async def pictures(app, keys="", sizes=SIZES):
    """Return what an app shows at each size after some keys."""
    seen = {}
    async with app.run_test(size=sizes[0]) as pilot:
        await pilot.pause()
        for key in keys.split():
            await pilot.press(key)
        for size in sizes:
            await pilot.resize_terminal(*size)
            await pilot.pause(0.05)
            seen[size] = renditions.rendition(app.screen._compositor.render_strips())
    return seen


def check_all(name, seen):
    for size, picture in seen.items():
        renditions.check(named(name, size), picture)


def dashboard(session, theme=DARK, charset=Charset.BRAILLE):
    app = DashboardApp(session, fps=10)
    app.charset, app.theme = charset, theme.name
    return app


def named(name, size):
    return f"{name}_{size[0]}x{size[1]}"


@pytest.mark.parametrize("name", VIEWS)
async def test_the_dashboard_shows_what_it_showed(name):
    session, keys = VIEWS[name]
    check_all(name, await pictures(dashboard(session()), keys))


async def test_the_trace_shows_what_it_showed():
    # A real trainer is behind it: its numbers may differ in the last digit from machine to machine.
    for size, seen in (await pictures(dashboard(paused()), "t")).items():
        characters, _, _ = seen.partition("\n~\n")
        renditions.check(named("trace", size), re.sub(r"-?[\d.]+(e-?\d+)?", "#", characters) + "\n")


async def test_the_menu_shows_what_it_showed():
    app, _, _ = open_menu()
    app.charset, app.theme = Charset.BRAILLE, DARK.name
    check_all("menu", await pictures(app))


async def test_playing_shows_what_it_showed():
    app = app_of(FakePerformance(walker()))
    app.theme = DARK.name
    check_all("play", await pictures(app))


@pytest.mark.parametrize("look", ["light", "ascii"])
async def test_light_and_ascii_look_as_they_did(look):
    app = dashboard(
        running(),
        theme=LIGHT if look == "light" else DARK,
        charset=Charset.ASCII if look == "ascii" else Charset.BRAILLE,
    )
    check_all(look, await pictures(app, sizes=SIZES[:2]))


async def test_a_terminal_that_is_too_small_says_so():
    check_all("too-small", await pictures(dashboard(running()), sizes=[(40, 10)]))


def test_no_picture_is_left_over():
    sized = [*VIEWS, "trace", "menu", "play"]
    names = {named(name, size) for name in sized for size in SIZES}
    names |= {named(look, size) for look in ("light", "ascii") for size in SIZES[:2]}
    names.add("too-small_40x10")
    stored = {path.stem for path in renditions.FOLDER.glob("*.txt")}
    assert stored == names
    assert sum(path.stat().st_size for path in renditions.FOLDER.iterdir()) < 3_000_000


def test_a_picture_that_differs_is_shown_where_it_does(monkeypatch, tmp_path):
    monkeypatch.setattr(renditions, "FOLDER", tmp_path)
    monkeypatch.delenv(renditions.REWRITE, raising=False)
    (tmp_path / "a.txt").write_text("one\ntwo\n~\na3\na3\n~\na none\n")
    renditions.check("a", "one\ntwo\n~\na3\na3\n~\na none\n")
    with pytest.raises(
        AssertionError, match=r"(?s)a shows something else \(characters\).*-two\n\+too"
    ):
        renditions.check("a", "one\ntoo\n~\na3\na3\n~\na none\n")
    with pytest.raises(AssertionError, match=r"(?s)\(styles\).*-a none\n\+a bold"):
        renditions.check("a", "one\ntwo\n~\na3\na3\n~\na bold\n")
    with pytest.raises(AssertionError, match="b was never stored"):
        renditions.check("b", "one\n")
