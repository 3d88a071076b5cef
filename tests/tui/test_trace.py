"""The trace: any stage from the inside, at any size, and what keys do in it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.widgets import Input

from tests.tui.fake_session import FakeSession, run_info
from tests.tui.traced import NUM_ENVS, NUM_STEPS, all_hold, answer
from trainer.stages import Stage
from trainer.telemetry import Command
from trainer.trace import ALL_COLUMNS, NEWEST, CheckCost, TargetsNumbers, TraceRequest, Verdict
from tui.app import DashboardApp
from tui.draw.collect_numbers import signed
from tui.draw.learn_numbers import targets_numbers
from tui.draw.spans import Charset, plain
from tui.draw.stage_words import WORDS, tick
from tui.panels.tensors import TensorTable
from tui.panels.trace import tab_texts
from tui.screens.trace import GoToScreen, TraceView, parse_place

SIZES = [(80, 24), (120, 40), (200, 50)]


class Session(FakeSession):
    """A fake session that can be started and waited for."""

    def __init__(self, **settings):
        info = run_info(num_envs=NUM_ENVS, num_steps_per_env=NUM_STEPS)
        super().__init__(info=info, **settings)
        self.publish(invariants=all_hold(), check_cost=CheckCost(0.004, 0.003, 1))

    def start(self):
        pass

    def join(self, timeout=None):
        return True


def paused_behind(stage):
    step = {Stage.OBSERVE: 17, Stage.ACT_STEP: 17, Stage.STORE: 18}.get(stage, NUM_STEPS)
    return Session(paused=True, stage=stage, step=step)


def open_app(session, size=(120, 40)):
    app = DashboardApp(session, fps=50)
    return app, app.run_test(size=size)


async def settle(pilot):
    for _ in range(3):
        await pilot.pause(0.06)


def text_of(app):
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def state_of(app):
    return app.screen_stack[1].query_one(TraceView).state


@pytest.mark.parametrize("leave", ["t", "escape"])
async def test_t_opens_the_stage_paused_behind_and_goes_back(leave):
    session = paused_behind(Stage.TARGETS)
    app, running = open_app(session)
    async with running as pilot:
        await pilot.press("3", "t")
        await settle(pilot)
        assert app.screen.view == "trace"
        assert "[4>targets" in text_of(app)
        assert "enter Open" in text_of(app)
        assert session.requests[-1].stage is Stage.TARGETS
        await pilot.press(leave)
        await settle(pilot)
        assert app.screen.view == "update"
        assert session.requests[-1] is None


@pytest.mark.parametrize("size", SIZES)
async def test_every_stage_shows_words_checks_numbers_and_tensors(size):
    session = paused_behind(Stage.OPTIMIZE)
    app, running = open_app(session, size)
    seen = {}
    async with running as pilot:
        await pilot.press("t")
        for stage in Stage:
            await pilot.press(str(stage.value))
            await settle(pilot)
            seen[stage] = text = text_of(app)
            here = ">" if stage is Stage.OPTIMIZE else " "
            assert f"[{stage.value}{here}{stage.label}" in text
            assert WORDS[stage].input[:30] in text
            assert "✓" in text
            assert "ok, iteration 312" in text
            assert "tensors" in text
            assert "world n 0 of 64" in text
    for stage, words in {
        Stage.OBSERVE: "obs.policy[0]",
        Stage.ACT_STEP: "log π(a) = -0.5×",
        Stage.STORE: "cursor t = 24",
        Stage.TARGETS: "δ_23 = ",
        Stage.SAMPLE: "t N + n = 23 × 64 + 0 = 1472",
        Stage.OPTIMIZE: "epoch 3 of 5",
        Stage.FRESH: "weights",
    }.items():
        assert words in seen[stage], stage


async def test_arrows_turn_through_the_stages():
    app, running = open_app(paused_behind(Stage.FRESH))
    async with running as pilot:
        await pilot.press("t", "right")
        assert state_of(app).stage is Stage.OBSERVE
        await pilot.press("left", "left")
        assert state_of(app).stage is Stage.OPTIMIZE


async def test_a_loop_that_is_stepped_takes_the_trace_along():
    session = paused_behind(Stage.OBSERVE)
    app, running = open_app(session)
    async with running as pilot:
        await pilot.press("t")
        for stage in (Stage.ACT_STEP, Stage.STORE):
            await pilot.press("full_stop")
            await settle(pilot)
            assert state_of(app).stage is stage
            assert f"behind {stage.label}" in text_of(app)
    assert session.commands == [Command.STEP_STAGE] * 2


async def test_while_running_the_answer_comes_with_the_iteration():
    session = Session()
    app, running = open_app(session)
    async with running as pilot:
        await pilot.press("t", "4")
        await settle(pilot)
        assert "comes when this iteration ends" in text_of(app)
        session.finish_iteration()
        await settle(pilot)
        text = text_of(app)
        assert "live · iteration 3, behind fresh" in text
        assert "δ_23 = " in text
    assert session.commands == []


async def test_a_tensor_is_chosen_opened_and_closed():
    session = paused_behind(Stage.TARGETS)
    app, running = open_app(session, (80, 24))
    async with running as pilot:
        await pilot.press("t")
        await settle(pilot)
        assert session.requests[-1].tensor == ""
        await pilot.press("down", "down", "down", "enter")
        await settle(pilot)
        assert session.requests[-1].tensor == "rollout.rewards"
        assert "rollout.rewards [T,N,1] = 24×64×1" in text_of(app)
        assert "x episode ends" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert app.screen.view == "trace"
        assert not state_of(app).opened


async def test_arrows_move_the_cursor_of_an_opened_tensor():
    session = paused_behind(Stage.TARGETS)
    app, running = open_app(session)
    async with running as pilot:
        await pilot.press("t", "end", "enter")
        await settle(pilot)
        await pilot.press("up", "right", "shift+right")
        await settle(pilot)
        request = session.requests[-1]
        assert request.tensor == "rollout.returns"
        assert 0 < request.world <= 3
        assert request.step < NUM_STEPS - 1
        view = session.snapshot().trace.view
        assert (view.row, view.column) == (request.step, request.world)
        assert f"t {view.row}, n {view.column}" in text_of(app)


async def test_columns_of_the_last_axis_turn_with_v():
    session = paused_behind(Stage.STORE)
    app, running = open_app(session)
    async with running as pilot:
        await pilot.press("t", "enter")
        await settle(pilot)
        assert session.requests[-1].column == ALL_COLUMNS
        turned = []
        for key in ("v", "v", "v", "V"):
            await pilot.press(key)
            await settle(pilot)
            turned.append(session.requests[-1].column)
        assert turned == [0, 1, ALL_COLUMNS, 1]
        assert ">noise" in text_of(app)


async def test_world_and_step_are_chosen_by_keys_and_by_number():
    session = paused_behind(Stage.TARGETS)
    app, running = open_app(session)
    async with running as pilot:
        await pilot.press("t")
        await settle(pilot)
        assert session.requests[-1].step == NEWEST
        await pilot.press("left_square_bracket", "right_curly_bracket", "shift+right")
        await settle(pilot)
        assert (session.requests[-1].world, session.requests[-1].step) == (2, 22)
        await pilot.press("g")
        await settle(pilot)
        app.screen.query_one(Input).value = "640 3"
        await pilot.press("enter")
        assert isinstance(app.screen, GoToScreen)
        app.screen.query_one(Input).value = "33 17"
        await pilot.press("enter")
        await settle(pilot)
        assert (session.requests[-1].world, session.requests[-1].step) == (33, 17)
        assert "world n 33 of 64 · step t 17 of 24" in text_of(app)
        await pilot.press("0")
        assert session.requests[-1].step == NEWEST


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("33", (33, None)),
        ("33 17", (33, 17)),
        ("n 3, t 4", (3, 4)),
        ("", "one or two whole numbers"),
        ("1 2 3", "one or two whole numbers"),
        ("64", "no world 64; the last one is 63"),
        ("-1", "no world -1"),
        ("0 24", "no step 24; the last one is 23"),
    ],
)
def test_a_place_is_read_or_refused_with_a_reason(text, place):
    found = parse_place(text, 64, 24)
    assert place in found if isinstance(place, str) else found == place


def with_bad_entry(trace):
    """The answer with one tensor that holds a NaN."""
    tensors = [
        replace(t, nan=1, bad_index=(11, 7, 1), bad_name="foot_height[2]")
        if t.name == "rollout.obs.policy"
        else t
        for t in trace.tensors
    ]
    return replace(trace, tensors=(*tensors[1:], tensors[0]))


async def test_a_bad_entry_stands_first_is_named_and_gone_to():
    session = paused_behind(Stage.STORE)
    app, running = open_app(session)
    async with running as pilot:
        await pilot.press("t")
        await settle(pilot)
        session.publish(trace=with_bad_entry(session.snapshot().trace))
        await settle(pilot)
        text = text_of(app)
        assert "!! rollout.obs.policy" in text
        assert "first at [11, 7, 1]" in text
        assert "foot_height[2]" in text
        await pilot.press("exclamation_mark")
        request = session.requests[-1]
        assert (request.step, request.world, request.column) == (11, 7, 1)


def broken():
    states = list(all_hold())
    states[1] = replace(
        states[1], verdict=Verdict.BROKEN, iteration=12, detail="the actor changed while collecting"
    )
    return tuple(states)


async def test_a_broken_invariant_is_red_in_words_and_by_its_shape():
    session = paused_behind(Stage.ACT_STEP)
    session.publish(invariants=broken())
    app, running = open_app(session)
    async with running as pilot:
        await settle(pilot)
        assert "✗" in text_of(app)  # behind the stage's name in the strip
        await pilot.press("t")
        await settle(pilot)
        text = text_of(app)
        assert "[2>act_step ✗]" in text
        assert "BROKEN in iteration 12: the actor changed while collecting" in text


@pytest.mark.parametrize("charset", Charset)
def test_verdicts_have_a_shape_each(charset):
    shapes = {tick(verdict, charset).text for verdict in Verdict}
    assert len(shapes) == 3
    assert charset is not Charset.ASCII or all(shape.isascii() for shape in shapes)


@pytest.mark.parametrize("size", SIZES)
async def test_in_ascii_no_stage_shows_another_character(size):
    session = paused_behind(Stage.OPTIMIZE)
    session.publish(invariants=broken())
    app, running = open_app(session, size)
    app.charset = Charset.ASCII
    async with running as pilot:
        await pilot.press("t")
        for stage in Stage:
            await pilot.press(str(stage.value), "enter")
            await settle(pilot)
            view = app.screen.query_one(TraceView)
            for widget in view.query("Panel"):
                if widget.display and widget.region.height:
                    for y in range(widget.content_size.height):
                        text = widget.render_line(y).text
                        assert text.isascii(), (stage, widget, text)
            await pilot.press("escape")


async def test_no_size_of_the_trace_is_an_error():
    session = paused_behind(Stage.OPTIMIZE)
    _, running = open_app(session)
    async with running as pilot:
        await pilot.press("t")
        for number, size in enumerate(
            [(60, 15), (61, 16), (300, 100), (80, 24), (10, 5), (110, 38)]
        ):
            await pilot.resize_terminal(*size)
            await pilot.press(str(number + 1), "enter" if number % 2 else "down")
            await settle(pilot)


@given(st.floats())
def test_numbers_in_formulas_take_seven_cells(value):
    assert len(signed(value)) == 7


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.03123, "+0.0312"),
        (-15.5174, "-15.517"),
        (9.99996, "+10.000"),
        (0.0, "+0.0000"),
        (-2.7e-5, "-2.7e-5"),
        (math.nan, "      -"),
    ],
)
def test_numbers_in_formulas_keep_what_fits(value, text):
    assert signed(value) == text


def test_the_formulas_of_a_step_hold_its_own_numbers():
    def floats(*values):
        return np.asarray(values, np.float32)

    numbers = TargetsNumbers(
        rewards=floats(1.0, 2.0),
        values=floats(0.5, 0.25),
        dones=np.array([True, False]),
        deltas=floats(0.5, 1.95),
        raw=floats(0.5, 1.95),
        advantages=floats(-0.7, 0.7),
        returns=floats(1.0, 2.2),
        last_value=0.25,
        gamma=0.8,
        lam=0.5,
        mean=1.225,
        std=1.025,
    )
    first = [plain(line) for line in targets_numbers(numbers, TraceRequest(step=0), 80).lines]
    assert first[0] == "δ_0 = +1.0000 + 0.800×0×+0.2500 - (+0.5000) = +0.5000"
    assert first[1] == "A_0 = +0.5000 + 0.400×0×+1.9500 = +0.5000"
    assert first[2] == "R_0 = +0.5000 + (+0.5000) = +1.0000"
    assert first[3] == "A'_0 = (+0.5000 - (+1.2250)) / +1.0250 = -0.7000"
    assert "chain cut" in first[5]
    last = [plain(line) for line in targets_numbers(numbers, TraceRequest(step=1), 80).lines]
    assert last[0] == "δ_1 = +2.0000 + 0.800×1×+0.2500 - (+0.2500) = +1.9500"
    assert last[1] == "A_1 = +1.9500 + 0.400×1×+0.0000 = +1.9500"


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_tabs_fit_and_do_not_move_with_the_mark(width):
    lines = [
        plain(tab_texts(stage, Stage.STORE, [Verdict.HOLDS] * 7, width, Charset.BRAILLE))
        for stage in Stage
    ]
    assert all(len(line) <= width for line in lines)
    if width >= 80:
        assert len({line.index("fresh") for line in lines}) == 1
        assert all("3>store" in line for line in lines)
        assert all(line.count("[") == line.count("]") == 1 for line in lines)


def test_the_table_keeps_the_chosen_tensor_when_a_new_answer_comes():
    table = TensorTable()
    table.state.stage = Stage.STORE
    session = paused_behind(Stage.STORE)
    table._snapshot = session.publish(trace=answer(TraceRequest(Stage.STORE), Stage.STORE))
    table.state.chosen[Stage.STORE] = "rollout.values"
    assert table.chosen().name == "rollout.values"
    table.state.chosen[Stage.STORE] = "gone"
    assert table.chosen() is table.tensors()[0]
