"""What keys ask of a session: counts, slow motion, stages, breakpoints, edits, and the past."""

import pytest
from textual.widgets import Input, Static

from tests.tui.fake_session import ADJUSTABLES
from tests.tui.test_app import Session, open_app, status_of
from trainer.breakpoints import parse
from trainer.control import (
    Arm,
    Control,
    Disarm,
    Edit,
    PauseBehind,
    RunIterations,
    SlowMotion,
    Undo,
)
from trainer.history import History
from trainer.stages import Stage
from trainer.telemetry import Command, RunState
from tui.screens.choices import Choices
from tui.screens.control_forms import BreakpointsScreen, CountScreen, MaskScreen
from tui.screens.dashboard import DashboardScreen
from tui.screens.editing import EditScreen, ValueScreen, matching
from tui.screens.looking_back import KEPT, EarlierHistory, LookingBack


@pytest.fixture
def session():
    return Session()


def said(app, id_="problem"):
    return str(app.screen.query_one(f"#{id_}").render())


def shown(app):
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def press(pilot, *keys):
    for key in keys:
        await pilot.press(key)
        await pilot.pause()


def cropped(dialog):
    """What of a dialog lies outside it, or is cut."""
    room = dialog.content_region
    found = []
    for widget in dialog.query("Static, Input, Choices, Label"):
        if not (widget.display and widget.region.area):
            continue
        is_cut = isinstance(widget, Static) and widget.region.height < widget.virtual_size.height
        if is_cut or not room.contains_region(widget.region):
            found.append(widget)
    strips = dialog.screen._compositor.render_strips()
    return found + [strip.text for strip in strips[room.y : room.bottom] if "…" in strip.text]


@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
@pytest.mark.parametrize(
    "keys",
    [
        "N 0 enter",
        "m down space",
        "b",
        "b n a n enter k l greater_than_sign 1 enter f o o greater_than_sign x enter",
        "e",
        "e r n d",
        "e z z z",
        "e enter",
        "e enter x enter",
        "q",
    ],
)
async def test_every_dialog_is_seen_whole(session, keys, size):
    app, running = open_app(session, size)
    async with running as pilot:
        await press(pilot, *keys.split())
        await pilot.pause(0.3)
        assert cropped(app.screen.query_one("#dialog")) == []


async def test_a_number_of_iterations_is_asked_for_and_run(session):
    app, running = open_app(session)
    async with running as pilot:
        await press(pilot, "N", "0", "enter")
        assert isinstance(app.screen, CountScreen)
        assert "1 to 1,000,000" in said(app)
        await press(pilot, "backspace", "1", "2", "enter")
        assert session.control_requests == [RunIterations(12)]
        await press(pilot, "N", "escape")
        assert len(session.control_requests) == 1


async def test_slow_motion_goes_up_and_down_in_steps_and_stands_in_the_header(session):
    app, running = open_app(session, (80, 24))
    async with running as pilot:
        for _ in range(8):
            await press(pilot, "s")
            await pilot.pause(0.05)
        assert [r.seconds for r in session.control_requests[:3]] == [0.05, 0.1, 0.2]
        assert session.control_requests[-1] == SlowMotion(2.0)
        header = app.screen.query_one("#header")
        assert "slow 2000 ms" in "".join(s.text for s in header.draw(80, 1)[0])
        await press(pilot, "S")
        assert session.control_requests[-1] == SlowMotion(1.0)


async def test_stages_are_marked_and_shown_in_the_strip(session):
    app, running = open_app(session, (80, 24))
    async with running as pilot:
        await press(pilot, "m", "3", "6", "down", "space", "6", "enter")
        assert session.control_requests == [PauseBehind((Stage.STORE, Stage.FRESH))]
        await pilot.pause(0.1)
        strip = app.screen.query_one("#strip")
        names = "".join(span.text for span in strip.draw(80, 3)[0])
        assert names.count("‖") == 2
        assert "store‖" in names
        await press(pilot, "m")
        assert isinstance(app.screen, MaskScreen)
        assert [line[1] for line in app.screen.query_one(Choices).lines] == list("  x   x")
        await press(pilot, "escape")
        assert len(session.control_requests) == 1


async def test_breakpoints_are_armed_listed_and_disarmed(session):
    app, running = open_app(session, (80, 24))
    async with running as pilot:
        await press(pilot, "b", *"kl", "space", "greater_than_sign", *"x", "enter")
        assert isinstance(app.screen, BreakpointsScreen)
        assert "'x' is no number" in said(app)
        await press(pilot, "backspace", *"0.05", "enter", *"nan", "enter")
        assert said(app) == ""
        armed = [Arm(parse("Loss/kl_mean > 0.05")), Arm(parse("nan"))]
        assert session.control_requests == armed
        lines = app.screen.query_one(Choices).lines
        assert lines == ("Loss/kl_mean > 0.05", "nan")
        await press(pilot, "down", "shift+tab", "x")
        assert session.control_requests[-1] == Disarm(parse("nan"))
        assert app.screen.query_one(Choices).lines == ("Loss/kl_mean > 0.05",)
        await press(pilot, "escape")
        assert isinstance(app.screen, DashboardScreen)


async def test_a_value_is_found_edited_with_a_reason_and_taken_back(session):
    app, running = open_app(session, (80, 24))
    async with running as pilot:
        await press(pilot, "e", *"entropy")
        assert isinstance(app.screen, EditScreen)
        assert len(app.screen.query_one(Choices).lines) == 1
        await press(pilot, "enter")
        assert isinstance(app.screen, ValueScreen)
        app.screen.query_one("#value", Input).value = "-1"
        await press(pilot, "enter")
        assert "trainer.entropy_coef = -1.0: must be greater than or equal to 0" in said(app)
        app.screen.query_one("#value", Input).value = "0.02"
        await press(pilot, "enter", *"calm", "enter")
        assert session.control_requests == [Edit("trainer.entropy_coef", 0.02, "calm")]
        assert isinstance(app.screen, DashboardScreen)
        await pilot.pause(0.1)
        await press(pilot, "u")
        assert session.control_requests[-1] == Undo()
        await pilot.pause(0.1)
        await press(pilot, "u")  # nothing is left to take back
        assert len(session.control_requests) == 2


async def test_what_an_edit_brings_with_it_is_said_and_one_without_effect_is_not_opened(session):
    app, running = open_app(session, (80, 24))
    async with running as pilot:
        await press(pilot, "e", "enter")
        assert "schedule becomes fixed" in said(app, "note")
        await press(pilot, "escape", *"rnd", "enter")
        assert isinstance(app.screen, EditScreen)
        assert "! no effect: trainer.rnd.weight_schedule moves it" in said(app, "about")
        await press(pilot, "escape")
        assert session.control_requests == []


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (200, 50)])
@pytest.mark.parametrize("keys", [["N"], ["m"], ["b"], ["e"], ["e", "enter"]])
async def test_every_form_fits_and_all_that_takes_keys_can_be_seen(session, size, keys):
    app, running = open_app(session, size)
    async with running as pilot:
        await press(pilot, *keys)
        dialog = app.screen.query_one("#dialog").region
        assert app.screen.region.contains_region(dialog)
        for widget in (one for one in app.screen.query("Input, Choices") if one.display):
            assert dialog.contains_region(widget.region)
            assert widget.region.height > 0


async def test_looking_back_shows_an_earlier_iteration_and_says_that_training_goes_on():
    session = Session(completed=100)
    app, running = open_app(session)
    async with running as pilot:
        for _ in range(4):
            session.finish_iteration()
            await pilot.pause(0.05)
        await press(pilot, "comma", "comma", "comma")
        assert "LOOKING BACK at iteration 102 of 104; training goes on" in status_of(app)
        header, health = app.screen.query_one("#header"), app.screen.query_one("#overview-health")
        assert health.snapshot.completed_iterations == 102
        assert len(health.session.history) == 102
        assert "102/1500" in "".join(span.text for span in header.draw(120, 1)[0])
        session.finish_iteration()
        await pilot.pause(0.05)
        assert "LOOKING BACK at iteration 102 of 105" in status_of(app)
        await press(pilot, "semicolon")
        assert "iteration 103 of 105" in status_of(app)
        await press(pilot, "escape")
        assert "LOOKING BACK" not in status_of(app)
        assert health.snapshot.completed_iterations == 105


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (200, 50)])
async def test_a_panel_that_fills_the_screen_hides_no_word_on_the_past_or_a_pause(session, size):
    app, running = open_app(session, size)
    async with running as pilot:
        session.finish_iteration()
        await pilot.pause(0.05)
        await press(pilot, "tab", "tab", "z", "comma")
        assert app.screen.maximized is not None
        assert "LOOKING BACK at iteration 313" in shown(app)
        assert "q Quit" in shown(app)
        session.command(Command.STEP_STAGE)
        await press(pilot, "escape")
        await pilot.pause(0.1)
        assert app.screen.maximized is not None
        assert "PAUSED behind" in shown(app)


async def test_in_the_trace_too_esc_leaves_the_past_first():
    session = Session(paused=True, stage=Stage.TARGETS, step=24)
    app, running = open_app(session)
    async with running as pilot:
        session.finish_iteration()
        await pilot.pause(0.1)
        await press(pilot, "t", "comma")
        assert "LOOKING BACK" in status_of(app)
        await press(pilot, "escape")
        await pilot.pause(0.1)
        assert "LOOKING BACK" not in status_of(app)
        assert app.screen.view == "trace"


async def test_a_session_that_is_over_can_be_looked_back_at_but_not_steered(session):
    app, running = open_app(session)
    async with running as pilot:
        session.finish_iteration()
        await pilot.pause(0.05)
        session.command(Command.STOP_NOW)
        await pilot.pause(0.05)
        await press(pilot, "s", "m", "b", "e", "u", "N")
        assert isinstance(app.screen, DashboardScreen)
        assert session.control_requests == []
        await press(pilot, "comma")
        assert status_of(app).startswith("LOOKING BACK at iteration 313 of 313  ·")


async def test_the_cause_of_a_pause_stands_in_the_status_line(session):
    app, running = open_app(session)
    async with running as pilot:
        why = Control(paused_by="Loss/kl_mean 0.06 above 0.05")
        session.publish(state=RunState.PAUSED, control=why)
        await pilot.pause(0.1)
        assert "Loss/kl_mean 0.06 above 0.05" in status_of(app)


def test_at_most_so_many_ends_are_kept_and_the_one_on_show_stays(session):
    past = LookingBack(session)
    for _ in range(5):
        session.finish_iteration()
        past.take(session.snapshot())
        past.take(session.snapshot())
    assert len(past) == 5
    assert past.move(-2)
    shown = past.shown[0].completed_iterations
    session.finish_iteration()
    past.take(session.snapshot())
    assert past.shown[0].completed_iterations == shown
    for _ in range(2 * KEPT):
        session.finish_iteration()
        past.take(session.snapshot())
    assert len(past) == KEPT
    assert past.shown is not None  # the oldest that is left
    assert past.move(KEPT)
    assert past.shown is None
    assert not past.move(1)


def test_curves_end_where_one_looks_back_to():
    history = History()
    for iteration in range(1, 11):
        history.append(iteration, {"a": float(iteration)})
    earlier = EarlierHistory(history, 4)
    assert earlier.curve("a").mean.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert len(earlier) == 4
    assert earlier.tags == ("a",)
    assert earlier.stride == 1


def test_a_value_is_found_by_words_in_any_order():
    found = matching(ADJUSTABLES, "weight VEL track")
    assert [one.key for one in found] == [
        "env.rewards.track_lin_vel_xy_exp.weight",
        "env.rewards.track_ang_vel_z_exp.weight",
    ]
