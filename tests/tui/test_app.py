"""The app over a fake session: what keys ask for, how runs are left, any size of terminal."""

import random

import pytest
from rich.cells import cell_len
from textual import events
from textual.geometry import Size
from textual.widgets import ContentSwitcher

from tests.tui.fake_session import FakeSession
from trainer.stages import Stage
from trainer.telemetry import Command, RunState
from tui import app as app_module
from tui.app import DashboardApp, Departure
from tui.screens.base import TooSmall
from tui.screens.dashboard import VIEWS, DashboardScreen, is_shown
from tui.screens.failure import FailureView
from tui.screens.help import HelpScreen
from tui.screens.quit import QuitScreen
from tui.screens.status import StatusLine


class Session(FakeSession):
    """A fake session that can be started and waited for."""

    started = 0

    def start(self):
        self.started += 1

    def join(self, timeout=None):
        return self.snapshot().state.is_over


@pytest.fixture
def session():
    return Session()


def open_app(session, size=(120, 40)):
    app = DashboardApp(session, fps=50)
    return app, app.run_test(size=size)


def status_of(app):
    return app.screen_stack[1].query_one(StatusLine)._text


async def test_the_session_is_started_once_the_dashboard_is_there(session):
    app, running = open_app(session)
    async with running as pilot:
        await pilot.pause()
        assert isinstance(app.screen, DashboardScreen)
        assert session.started == 1


@pytest.mark.parametrize(
    ("key", "command"),
    [
        ("space", Command.PAUSE),
        ("full_stop", Command.STEP_STAGE),
        ("greater_than_sign", Command.STEP_ITERATION),
        ("p", Command.STEP_PHASE),
        ("c", Command.CHECKPOINT),
    ],
)
async def test_a_key_gives_its_command(session, key, command):
    _, running = open_app(session)
    async with running as pilot:
        await pilot.press(key)
        assert session.commands == [command]


async def test_space_pauses_and_space_runs_on_and_the_screen_says_where(session):
    app, running = open_app(session)
    async with running as pilot:
        await pilot.press("space")
        await pilot.pause(0.1)
        assert "pauses at the next boundary" in status_of(app)
        session.tick()
        await pilot.pause(0.1)
        assert "PAUSED behind act_step" in status_of(app)
        await pilot.press("space")
        await pilot.pause(0.1)
        assert session.commands == [Command.PAUSE, Command.RUN]
        assert "PAUSED" not in status_of(app)


async def test_stepping_shows_the_seven_stages_in_order():
    session = Session(paused=True, stage=Stage.FRESH, step=0)
    app, running = open_app(session)
    seen = []
    async with running as pilot:
        for _ in range(3):
            await pilot.press("full_stop")
            await pilot.pause(0.05)
            seen.append(status_of(app).split()[2])
        session.publish(position=session.snapshot().position._replace(step=24))
        for _ in range(4):
            await pilot.press("full_stop")
            await pilot.pause(0.05)
            seen.append(status_of(app).split()[2])
    assert seen == [stage.label for stage in Stage]


async def test_keys_that_mean_nothing_now_are_not_offered(session):
    app, running = open_app(session)
    async with running as pilot:
        await pilot.pause(0.1)
        offered = {active.binding.action for active in app.screen.active_bindings.values()}
        assert "pause" in offered
        assert "run" not in offered
        assert "view('failure')" not in offered
        session.command(Command.STOP_NOW)
        await pilot.pause(0.1)
        await pilot.press("space", "full_stop", "c")
        assert session.commands == [Command.STOP_NOW]


async def test_digits_and_arrows_go_through_the_views(session):
    app, running = open_app(session)
    async with running as pilot:
        for number, name in enumerate(VIEWS, start=1):
            await pilot.press(str(number))
            assert app.screen.view == name
        await pilot.press("right")
        assert app.screen.view == VIEWS[0]
        await pilot.press("left")
        assert app.screen.view == VIEWS[-1]


async def test_only_panels_that_can_be_seen_are_shown_a_snapshot(session):
    app, running = open_app(session)
    async with running as pilot:
        await pilot.press("2")
        await pilot.pause(0.1)
        hidden = app.screen.query_one("#overview-rollout")
        before = hidden.snapshot.seq
        session.tick()
        await pilot.pause(0.1)
        assert hidden.snapshot.seq == before
        assert app.screen.query_one("#rollout-panel").snapshot.seq == session.snapshot().seq
        await pilot.press("1")
        await pilot.pause(0.1)
        assert hidden.snapshot.seq == session.snapshot().seq


async def test_an_unchanged_snapshot_draws_nothing(session, monkeypatch):
    drawn = []
    original = DashboardScreen.show
    monkeypatch.setattr(
        DashboardScreen,
        "show",
        lambda screen, snapshot, **how: (
            drawn.append(snapshot.seq),
            original(screen, snapshot, **how),
        ),
    )
    _, running = open_app(session)
    async with running as pilot:
        await pilot.pause(0.3)
        assert drawn == [session.snapshot().seq]
        session.tick()
        await pilot.pause(0.2)
        assert len(drawn) == 2


async def test_help_explains_keys_and_stages_and_closes(session):
    app, running = open_app(session, (120, 60))
    async with running as pilot:
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        await pilot.pause()
        text = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
        assert "Pause at the next stage boundary" in text
        assert [stage for stage in Stage if stage.label not in text] == []
        await pilot.press("escape")
        assert isinstance(app.screen, DashboardScreen)


@pytest.mark.parametrize(
    ("keys", "command"),
    [
        (["q", "f"], Command.FINISH),
        (["q", "enter"], Command.FINISH),
        (["q", "s"], Command.STOP_NOW),
        (["q", "down", "enter"], Command.STOP_NOW),
        (["ctrl+q", "f"], Command.FINISH),
        (["ctrl+c", "ctrl+c"], Command.STOP_NOW),
    ],
)
async def test_quitting_ends_the_run_as_chosen_and_leaves_with_0(session, keys, command):
    app, running = open_app(session)
    async with running as pilot:
        await pilot.press(*keys)
        await pilot.pause(0.2)
    assert session.commands == [command]
    assert app.return_value == 0
    assert not app.gave_up


@pytest.mark.parametrize("keys", [["q", "escape"], ["q", "end", "enter"]])
async def test_quitting_can_be_taken_back(session, keys):
    app, running = open_app(session)
    async with running as pilot:
        await pilot.press(*keys)
        assert isinstance(app.screen, DashboardScreen)
        assert session.commands == []


class Launcher:
    """A process that could give the terminal back."""

    is_gone = False


@pytest.mark.parametrize("keys", [["d"], ["q", "d"], ["q", "down", "down", "enter"]])
async def test_detaching_leaves_the_session_as_it_is(session, keys):
    app, running = open_app(session)
    app.launcher = Launcher()
    async with running as pilot:
        await pilot.press(*keys)
        await pilot.pause(0.2)
    assert app.departure is Departure.DETACHED
    assert app.return_value == 0
    assert session.commands == []


async def test_without_a_launcher_nothing_is_detached(session):
    app, running = open_app(session)
    async with running as pilot:
        await pilot.press("d", "ctrl+z")
        await pilot.pause(0.1)
        assert app.departure is None
        assert app.return_value is None
        assert len(app._notifications) == 2


class Stubborn(Session):
    """Never ends."""

    def command(self, command):
        self.commands.append(command)


async def test_stopping_is_said_at_once_and_a_second_quit_leaves():
    app, running = open_app(Stubborn())
    async with running as pilot:
        await pilot.press("q", "f")
        await pilot.pause(0.1)
        assert status_of(app).startswith("Stopping")
        assert app.return_value is None
        await pilot.press("q")
        await pilot.pause(0.1)
    assert app.gave_up


async def test_a_session_without_a_sign_of_life_is_left_behind(monkeypatch):
    monkeypatch.setattr(app_module, "PATIENCE", 0.2)
    app, running = open_app(Stubborn())
    async with running as pilot:
        await pilot.press("q", "f")
        await pilot.pause(0.6)
    assert app.gave_up


async def test_a_slow_session_that_moves_is_waited_for(monkeypatch):
    monkeypatch.setattr(app_module, "PATIENCE", 0.3)
    session = Stubborn()
    app, running = open_app(session)
    async with running as pilot:
        await pilot.press("q", "f")
        for _ in range(6):
            await pilot.pause(0.1)
            session.tick()
        assert not app.gave_up
        session.publish(state=RunState.FINISHED)
        await pilot.pause(0.2)
    assert app.return_value == 0
    assert not app.gave_up


async def test_a_finished_run_stays_on_screen_until_q():
    session = Session(num_iterations=313)
    app, running = open_app(session)
    async with running as pilot:
        session.finish_iteration()
        await pilot.pause(0.1)
        assert status_of(app) == "finished after 313 iterations  ·  q quits"
        assert app.return_value is None
        await pilot.press("q")
        await pilot.pause(0.1)
    assert app.return_value == 0
    assert session.commands == []


async def test_a_failed_run_shows_what_where_and_what_is_saved_and_ends_with_1(session):
    app, running = open_app(session)
    async with running as pilot:
        session.fail("ValueError: boom")
        await pilot.pause(0.1)
        assert app.screen.view == "failure"
        text = str(app.screen.query_one(FailureView).query_one("#failure-text").content)
        for part in ("ValueError: boom", "act_step", "312", "model_300.pt", "Traceback"):
            assert part in text
        await pilot.press("1")
        assert app.screen.view == "overview"
        await pilot.press("8")
        assert app.screen.view == "failure"
        await pilot.press("q")
        await pilot.pause(0.1)
    assert app.return_value == 1


async def test_a_failure_cannot_draw_over_the_screen(session):
    app, running = open_app(session)
    async with running as pilot:
        session.fail("ValueError: \x1b[2Jcleared\x1b[1;1H\r\nsecond [b]line[/b]")
        await pilot.pause(0.1)
        text = str(app.screen.query_one(FailureView).query_one("#failure-text").content)
        assert "[2Jcleared" in text
        assert "\nsecond [b]line[/b]" in text
        assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("key", ["1", "question_mark", "q"])
async def test_two_sizes_at_once_end_with_the_newest_and_not_in_a_circle(session, key):
    app, running = open_app(session)
    async with running as pilot:
        await pilot.press(key)
        await pilot.pause(0.1)
        layouts = []
        lay_out = app.screen._screen_resized

        def counted(size):
            layouts.append(size)
            if len(layouts) <= 20:  # a circle ends here
                lay_out(size)

        app.screen._screen_resized = counted
        older, newest = Size(54, 47), Size(80, 24)
        await pilot.resize_terminal(*newest)
        for size in (older, newest, older, newest):
            app.screen.post_message(events.Resize(size, size))
            app.screen.call_later(lambda: None)  # two sizes in a row would become one
        await pilot.pause(0.5)
        assert app.screen.size == newest
        assert len(layouts) < 12


@pytest.mark.parametrize("size", [(59, 24), (80, 14), (40, 10), (10, 3), (1, 1)])
async def test_a_small_terminal_gets_a_page_of_its_own_and_comes_back(session, size):
    app, running = open_app(session)
    async with running as pilot:
        await pilot.resize_terminal(*size)
        await pilot.pause(0.1)
        assert is_shown(app.screen.query_one(TooSmall))
        assert not is_shown(app.screen.query_one(ContentSwitcher))
        await pilot.resize_terminal(80, 24)
        await pilot.pause(0.1)
        assert not is_shown(app.screen.query_one(TooSmall))
        assert is_shown(app.screen.query_one("#overview-curve"))


async def test_a_new_size_leaves_nothing_of_the_old_one(session):
    app, running = open_app(session)
    async with running as pilot:
        await pilot.press("space")
        await pilot.pause(0.1)
        await pilot.resize_terminal(80, 24)
        await pilot.pause(0.1)
        for strip in app.screen._compositor.render_strips():
            assert cell_len(strip.text) == 80, strip.text


async def test_no_size_on_any_page_is_an_error():
    session = Session()
    app, running = open_app(session, (80, 24))
    draw = random.Random(7)
    async with running as pilot:
        for step in range(36):
            await pilot.press(draw.choice([*"1234567t", "question_mark", "escape", "z", "tab"]))
            size = draw.choice(
                [(1, 1), (2, 40), (200, 1), (draw.randint(1, 220), draw.randint(1, 60))]
            )
            await pilot.resize_terminal(*size)
            session.tick()
            if step == 20:
                await pilot.press("escape", "q")
            if step == 25:
                await pilot.press("escape")
                assert not isinstance(app.screen, QuitScreen)
        await pilot.resize_terminal(120, 40)
        await pilot.press("escape", "escape", "escape", "1")
        await pilot.pause(0.1)
        assert is_shown(app.screen.query_one("#overview-curve"))


@pytest.mark.parametrize(
    ("size", "shown", "hidden"),
    [
        ((80, 24), ["curve", "health", "rewards", "terminations"], ["rate", "ratio", "timing"]),
        ((120, 40), ["rollout", "curve", "rate", "ratio", "rewards", "events"], ["metrics"]),
        ((200, 50), ["rollout", "rate", "ratio", "timing", "metrics", "events"], []),
    ],
)
async def test_the_overview_shows_what_fits(session, size, shown, hidden):
    app, running = open_app(session, size)
    async with running as pilot:
        await pilot.pause(0.1)
        for name in shown:
            panel = app.screen.query_one(f"#overview-{name}")
            assert is_shown(panel), name
            assert panel.region.width >= 20, name
            assert app.screen.region.contains_region(panel.region), name
        for name in hidden:
            assert not is_shown(app.screen.query_one(f"#overview-{name}")), name


@pytest.mark.parametrize("gone", ["StatusLine", "ViewBar", "NotesPanel"])
async def test_a_snapshot_that_comes_while_the_screen_is_taken_down_is_not_shown(session, gone):
    app, running = open_app(session)
    async with running as pilot:
        await pilot.pause()
        dashboard = app.screen
        await dashboard.query(gone).remove()
        dashboard.show(session.snapshot())
