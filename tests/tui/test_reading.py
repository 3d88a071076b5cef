"""Reading the dashboard: one lens over all charts, rows that open as curves, a filter."""

import time
from dataclasses import replace

import pytest
from textual.widgets import ContentSwitcher

from tests.tui.fake_session import FakeSession
from trainer.stages import Stage
from tui.app import DashboardApp
from tui.panels import CurvePanel, LearningRatePanel, Panel, RolloutPanel
from tui.screens.dashboard import is_shown
from tui.screens.reading import FilterLine


class Session(FakeSession):
    def start(self):
        pass

    def join(self, timeout=None):
        return True


def open_app(size=(200, 50)):
    app = DashboardApp(Session(), fps=50)
    return app, app.run_test(size=size)


def curves(app):
    return [curve for curve in app.screen.query(CurvePanel) if is_shown(curve)]


def text_of(panel):
    return "\n".join(panel.render_line(y).text for y in range(panel.content_size.height))


def view(app):
    return app.screen.query_one(ContentSwitcher).current


async def test_smoothing_and_zoom_apply_to_all_charts_at_once():
    app, running = open_app()
    async with running as pilot:
        await pilot.press("plus", "right_square_bracket", "right_square_bracket")
        await pilot.press("right_square_bracket", "right_square_bracket")
        await pilot.pause()
        for curve in curves(app):
            assert str(curve.border_title).endswith("last 200 · smoothed 0.6")
            assert "111" in text_of(curve).splitlines()[-1]
        await pilot.press("3")
        await pilot.pause()
        rate = app.screen.query_one("#update-rate", LearningRatePanel)
        assert any(line.split()[:1] == ["111"] for line in text_of(rate).splitlines())
        await pilot.press("minus", *["left_square_bracket"] * 9)
        await pilot.pause()
        assert app.screen.lens.words() == ""


async def test_the_cursor_reads_the_same_iteration_in_all_charts():
    app, running = open_app()
    async with running as pilot:
        app.screen.query_one("#overview-curve").focus()
        await pilot.press("left", "left", "left")
        await pilot.pause()
        at = app.screen.lens.cursor
        assert at < 311
        for curve in curves(app):
            assert str(curve.border_subtitle).startswith(f"at {at}: ")
            assert "▲" in text_of(curve)
        wanted = app.session.history.curve("Train/mean_reward").mean[at]
        assert f"{wanted:.2f}" in str(app.screen.query_one("#overview-curve").border_subtitle)
        await pilot.press("end")
        await pilot.pause()
        assert "▲" not in text_of(curves(app)[1])


async def test_a_row_opens_as_a_curve_and_escape_leads_back():
    app, running = open_app()
    async with running as pilot:
        await pilot.press("4", "tab", "down")
        await pilot.pause()
        chosen = app.screen.query_one("#rewards-curve", CurvePanel)
        assert chosen.tag == "Episode_Reward/track_ang_vel_z_exp"
        await pilot.press("enter")
        await pilot.pause()
        chart = app.screen.query_one("#curve-chart", CurvePanel)
        assert (view(app), chart.tag) == ("curve", "Episode_Reward/track_ang_vel_z_exp")
        assert chart.has_focus
        assert app.screen.query_one("#curve-metrics").chosen == chart.tag
        await pilot.press("up")
        await pilot.pause()
        assert app.screen.query_one("#curve-metrics").chosen == chart.tag
        assert chart.tag != "Episode_Reward/track_ang_vel_z_exp"
        await pilot.press("escape")
        assert view(app) == "rewards"


async def test_signs_of_health_open_too():
    app, running = open_app()
    async with running as pilot:
        app.screen.query_one("#overview-health").focus()
        await pilot.press("down", "enter")
        await pilot.pause()
        assert app.screen.query_one("#curve-chart", CurvePanel).tag == "Loss/kl_max"


async def test_a_filter_acts_while_it_is_typed_and_escape_drops_it():
    app, running = open_app()
    async with running as pilot:
        await pilot.press("4", "slash", *"^.*vel")
        await pilot.pause()
        terms = app.screen.query_one("#rewards-terms")
        assert "ang_vel_xy_l2" in text_of(terms)
        assert "dof_acc" not in text_of(terms)
        assert "4 of 11 rows" in str(terms.border_subtitle)
        assert view(app) == "rewards"  # what is typed is no command
        await pilot.press("escape")
        await pilot.pause()
        assert "dof_acc" in text_of(terms)
        assert not app.screen.query_one(FilterLine).display
        assert app.session.commands == []


async def test_a_kept_filter_goes_to_the_table_and_escape_drops_it_in_the_end():
    app, running = open_app()
    async with running as pilot:
        await pilot.press("4", "slash", *"acc", "enter")
        await pilot.pause()
        terms = app.screen.query_one("#rewards-terms")
        assert terms.has_focus
        assert "track_lin" not in text_of(terms)
        await pilot.press("escape", "escape")
        await pilot.pause()
        assert "track_lin" in text_of(terms)


async def test_nothing_found_says_so():
    app, running = open_app()
    async with running as pilot:
        await pilot.press("7", "slash", *"zebra")
        await pilot.pause()
        assert "no event holds 'zebra'" in text_of(app.screen.query_one("#log-events"))


def rollout_title(app):
    return str(app.screen.query_one("#overview-rollout", RolloutPanel).border_title)


TITLES = [
    "reward r",
    "value V",
    "advantage A",
    "TD error δ",
    "episode ends, share of worlds",
    "action norm |a|",
    "log density log π(a)",
]


async def test_the_rollout_goes_through_its_quantities_and_back():
    app, running = open_app()
    full = Session(stage=Stage.FRESH, step=24).snapshot()
    app._first_session.publish(boundary=full)
    async with running as pilot:
        seen = []
        for _ in range(8):
            await pilot.pause()
            seen.append(rollout_title(app))
            await pilot.press("v")
        assert seen == [f"rollout · {title}" for title in [*TITLES, TITLES[0]]]
        await pilot.press("V", "V")
        await pilot.pause()
        assert rollout_title(app) == f"rollout · {TITLES[-1]}"


async def test_quantities_that_are_not_known_are_passed_over():
    app, running = open_app()
    view = app._first_session.snapshot().rollout
    nothing = dict.fromkeys(("td_error", "action_norm", "log_prob", "terminated", "time_out"))
    app._first_session.publish(rollout=replace(view, **nothing))
    async with running as pilot:
        seen = []
        for _ in range(4):
            await pilot.pause()
            seen.append(rollout_title(app).removeprefix("rollout · "))
            await pilot.press("v")
        assert seen == ["reward r", "value V", TITLES[4], "reward r"]
        assert "+ ended in" in text_of(app.screen.query_one("#overview-rollout"))


async def test_a_focused_chart_is_zoomed_and_changes_its_axis():
    app, running = open_app()
    async with running as pilot:
        chart = app.screen.query_one("#overview-curve")
        chart.focus()
        await pilot.press("z", "y")
        await pilot.pause()
        assert app.screen.maximized is chart
        assert "log" in str(chart.border_title)
        await pilot.press("escape")
        assert app.screen.maximized is None


async def test_a_picture_of_200_by_50_takes_less_than_a_frame():
    app, running = open_app()
    async with running as pilot:
        await pilot.pause()
        costs = []
        for _ in range(12):
            app.session.tick()  # a stage further: what a look finds most of the time
            start = time.thread_time()
            app.screen.show(app.session.snapshot())
            costs.append(time.thread_time() - start)
        assert min(costs) < 0.03  # 7 ms on a busy machine


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_page_of_all_metrics_fits(size):
    app, running = open_app(size)
    async with running as pilot:
        await pilot.press("g")
        await pilot.pause()
        chart = app.screen.query_one("#curve-chart")
        assert app.screen.region.contains_region(chart.region)
        assert is_shown(app.screen.query_one("#curve-metrics")) is (size[0] >= 110)


async def test_the_last_episodes_have_a_view_and_it_leads_back():
    app, running = open_app((80, 24))
    async with running as pilot:
        await pilot.press("3", "h")
        assert view(app) == "episodes"
        await pilot.press("h")
        assert view(app) == "update"
        await pilot.press("h", "r")
        assert view(app) == "robot"
        await pilot.press("escape")
        assert view(app) == "update"


async def test_marks_are_read_by_the_cursor_which_goes_from_one_to_the_next():
    app, running = open_app((120, 40))
    async with running as pilot:
        await pilot.press("g")
        await pilot.pause()
        chart = app.screen.query_one("#curve-chart")

        async def reading(key):
            await pilot.press(key)
            await pilot.pause()
            return str(chart.border_subtitle)

        assert "at 300: " in await reading("ctrl+left")
        assert "◆ 300: model_300.pt saved" in str(chart.border_subtitle)
        assert "! 270: explained variance" in await reading("ctrl+left")
        assert "◆ 250: model_250.pt" in await reading("ctrl+left")
        assert "! 270: explained variance" in await reading("ctrl+right")
        assert len(str(chart.border_subtitle)) <= chart.content_size.width


async def test_a_mark_appears_with_its_event():
    app, running = open_app((120, 40))
    async with running as pilot:
        await pilot.pause()
        chart = app.screen.query_one("#overview-curve")
        axis = text_of(chart).splitlines()[-2]
        assert "»" not in axis
        text = "model_200.pt loaded, goes on after 200 iterations"
        app.session.events.add("checkpoint", text, 201)
        app.session.events.add("edit", "refused: no such value", 150)
        app.session.publish()
        await pilot.pause(0.1)
        axis_now = text_of(chart).splitlines()[-2]
        assert axis_now.count("»") == 1
        assert axis_now.replace("»", "─").count("■") == axis.count("■")


async def test_the_focused_panel_is_explained_first():
    app, running = open_app((80, 24))
    async with running as pilot:
        app.screen.query_one("#overview-health").focus()
        await pilot.press("question_mark")
        for _ in range(100):  # a busy machine lays the help out later
            await pilot.pause(0.05)
            seen = [strip.text for strip in app.screen._compositor.render_strips()]
            if "Health" in seen[1]:
                break
        assert "Health" in seen[1]
        assert any("far off or not finite" in line for line in seen)


@pytest.mark.parametrize("keys", ["1", "2", "3", "4", "5", "6", "7", "g"])
@pytest.mark.parametrize("size", [(60, 15), (70, 24), (79, 45)])
async def test_below_80_columns_there_is_one_column(size, keys):
    app, running = open_app(size)
    async with running as pilot:
        await pilot.press(keys)
        await pilot.pause(0.05)
        view = app.screen.query_one(ContentSwitcher).visible_content
        shown = [panel for panel in view.query(Panel) if is_shown(panel)]
        assert shown
        for panel in shown:
            assert panel.region.width == size[0], panel
            assert panel.region.height >= 1, panel
            assert app.screen.region.contains_region(panel.region), panel
