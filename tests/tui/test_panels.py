from __future__ import annotations

import math
import re
import time
from dataclasses import replace
from functools import cache
from types import MappingProxyType

import numpy as np
import pytest
from textual.app import App
from textual.css.query import NoMatches

from tests.tui.fake_session import FakeSession, metrics_at, run_info
from trainer.stages import Stage
from trainer.telemetry import Command, EpisodesView, History, RunState, Snapshot
from trainer.trace import InvariantState, TraceRequest, Verdict
from tui import panels
from tui.draw.spans import Charset, plain
from tui.panels.health import signs
from tui.panels.timing import time_scales

PANELS = [
    panel
    for name in panels.__all__
    if (panel := getattr(panels, name))
    not in (panels.Panel, panels.ScrollingPanel, panels.TagTable)
]


class Stage1(App):
    """An app that holds one panel."""

    def __init__(self, panel_class, charset=Charset.BRAILLE):
        super().__init__()
        self.panel_class = panel_class
        self.charset = charset

    def compose(self):
        yield self.panel_class(id="panel")

    def on_mount(self):
        self.panel.styles.height = "100%"
        self.panel.focus()

    @property
    def panel(self):
        return self.query_one("#panel")


async def shown(panel_class, session, size=(100, 20), charset=Charset.BRAILLE):
    """Return what a panel shows of a session, border and all, as lines of text."""
    app = Stage1(panel_class, charset)
    async with app.run_test(size=size) as pilot:
        app.panel.show(session.snapshot(), session)
        await pilot.pause()
        return [strip.text for strip in app.screen._compositor.render_strips()]


@cache
def sessions():
    """Sessions in every state, some of them broken."""
    info = run_info()
    nan = float("nan")
    broken = FakeSession()
    broken.publish(
        metrics=MappingProxyType(dict.fromkeys(metrics_at(1), nan)),
        eta=math.inf,
        stage_seconds=(nan,) * 7,
        steps_per_second=math.inf,
        rollout=replace(broken.snapshot().rollout, reward=np.full((24, 64), np.inf, np.float32)),
        update=replace(
            broken.snapshot().update,
            kl=np.full(20, nan, np.float32),
            learning_rate=np.zeros(20, np.float32),
            ratio_last=np.zeros(41, np.int64),
            action_std=np.full(12, nan, np.float32),
        ),
    )
    broken.history.append(312, dict.fromkeys(metrics_at(1), nan))
    starting = FakeSession(completed=0)
    starting.publish(state=RunState.STARTING, info=None, rollout=None, progress="building worlds")
    failed = FakeSession()
    failed.fail()
    return {
        "running": FakeSession(),
        "fresh": FakeSession(completed=0, step=0),
        "starting": starting,
        "paused": FakeSession(paused=True, stage=Stage.TARGETS, step=24),
        "optimizing": FakeSession(stage=Stage.OPTIMIZE, step=24, epoch=2, mini_batch=1),
        "failed": failed,
        "broken": broken,
        "one world": FakeSession(
            info=replace(info, num_envs=1, num_steps_per_env=1, desired_kl=None)
        ),
    }


@pytest.mark.parametrize("panel_class", PANELS)
async def test_a_panel_shows_any_session_at_any_size(panel_class):
    app = Stage1(panel_class)
    async with app.run_test(size=(120, 40)) as pilot:
        for width, height in [
            (200, 50),
            (80, 24),
            (30, 8),
            (20, 5),
            (9, 3),
            (3, 3),
            (2, 1),
            (1, 1),
        ]:
            await pilot.resize_terminal(width, height)
            for session in sessions().values():
                app.panel.show(session.snapshot(), session)
                app.panel.border_title  # noqa: B018 - the titles must be readable as markup
                room = app.panel.content_size
                for y in range(room.height):
                    assert app.panel.render_line(y).cell_length == room.width


@pytest.mark.parametrize("panel_class", PANELS)
async def test_in_ascii_no_other_character_is_shown(panel_class):
    for session in sessions().values():
        for line in await shown(panel_class, session, (110, 24), Charset.ASCII):
            assert line.isascii(), line


@pytest.mark.parametrize("panel_class", PANELS)
async def test_an_unchanged_snapshot_is_not_drawn_again(panel_class, monkeypatch):
    session = FakeSession()
    app = Stage1(panel_class)
    async with app.run_test(size=(100, 30)) as pilot:
        app.panel.show(session.snapshot(), session)
        await pilot.pause()
        drawn = []
        monkeypatch.setattr(app.panel, "draw", lambda *size: drawn.append(size) or [])
        app.panel.show(session.snapshot(), session)
        app.panel.show(replace(session.snapshot(), seq=99), session)
        await pilot.pause()
        assert drawn == []


@pytest.mark.parametrize("panel_class", PANELS)
async def test_a_panel_draws_in_less_than_three_milliseconds(panel_class):
    session = FakeSession(paused=True, stage=Stage.TARGETS, step=24)
    app = Stage1(panel_class)
    async with app.run_test(size=(68, 16)) as pilot:
        app.panel.show(session.snapshot(), session)
        await pilot.pause()
        width, height = app.panel.content_size
        times = []
        for _ in range(15):
            start = time.perf_counter()
            app.panel._lines = app.panel._draw_lines(width, height)
            for y in range(height):
                app.panel.render_line(y)
            times.append(time.perf_counter() - start)
        assert min(times) < 3e-3


@pytest.mark.parametrize("panel_class", PANELS)
def test_every_panel_explains_itself(panel_class):
    assert panel_class.HELP.startswith("## ")
    assert "Healthy" in panel_class.HELP or "healthy" in panel_class.HELP


async def test_only_changed_lines_are_repainted(monkeypatch):
    session = FakeSession()
    app = Stage1(panels.EventsPanel)
    async with app.run_test(size=(80, 20)) as pilot:
        app.panel.show(session.snapshot(), session)
        await pilot.pause()
        app.panel._events[0] = app.panel._events[0]._replace(text="model_301.pt saved")
        regions = []
        monkeypatch.setattr(app.panel, "refresh", lambda *args, **_: regions.append(args))
        app.panel.redraw()
        assert [[(r.y, r.height) for r in args] for args in regions] == [[(0, 1)]]


async def test_a_line_that_changes_is_seen_to_change():
    session = FakeSession()
    app = Stage1(panels.TimingPanel)
    async with app.run_test(size=(80, 40)) as pilot:
        app.panel.show(session.snapshot(), session)
        await pilot.pause()
        for seconds in (1.0, 2.0):
            session.publish(stage_seconds=(0.5, seconds, 0.0, 0.25, 0.0, 0.25, 0.0))
            app.panel.show(session.snapshot(), session)
            await pilot.pause()
        text = [strip.text for strip in app.screen._compositor.render_strips()]
        assert text[1].split()[1:4] == ["iteration", "3.00", "s"]
        assert text[2].split()[1:4] == ["collect", "2.50", "s"]


# --- stage strip ------------------------------------------------------------------------------


async def test_the_present_stage_stands_in_marks():
    text = await shown(panels.StageStrip, FakeSession(stage=Stage.OPTIMIZE), (80, 3))
    assert text[0].split() == [
        "1", "observe", "2", "act_step", "3", "store", "4", "targets", "5", "sample",
        ">6", "optimize<", "7", "fresh",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [78, 80, 120, 200])
async def test_a_stages_tick_stands_beside_its_name_and_no_name_moves(width):
    states = tuple(
        InvariantState("one", stage, "it holds", "by a look", Verdict.HOLDS) for stage in Stage
    )
    lines = []
    for stage in (Stage.OPTIMIZE, Stage.FRESH):
        session = FakeSession(stage=stage)
        session.publish(invariants=states)
        lines.append((await shown(panels.StageStrip, session, (width, 3)))[0])
    for line in lines:
        assert line.count("✓") == len(Stage)
        for stage in Stage:
            assert re.search(rf"{stage.value} {stage.label}[ <]?✓", line), line
    assert [lines[0].index(stage.label) for stage in Stage] == [
        lines[1].index(stage.label) for stage in Stage
    ]


async def test_stages_show_share_and_time():
    text = await shown(panels.StageStrip, FakeSession(), (80, 3))
    assert text[1].split()[:4] == ["2%", "19ms", "63%", "573ms"]


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (FakeSession(), "collect t 17/24"),
        (
            FakeSession(stage=Stage.OPTIMIZE, step=24, epoch=2, mini_batch=1),
            "learn epoch 3/5 mini-batch 2/4",
        ),
        (FakeSession(paused=True), "paused behind act_step · next store"),
        (FakeSession(paused=True, stage=Stage.STORE), "paused behind store · next observe"),
        (FakeSession(paused=True, stage=Stage.STORE, step=24), "next targets"),
        (
            FakeSession(paused=True, stage=Stage.OPTIMIZE, step=24, epoch=2, mini_batch=1),
            "next optimize",
        ),
        (
            FakeSession(paused=True, stage=Stage.OPTIMIZE, step=24, epoch=4, mini_batch=3),
            "next fresh",
        ),
        (FakeSession(paused=True, stage=Stage.FRESH, step=0), "behind fresh · next observe"),
    ],
)
async def test_the_strip_says_what_goes_on(session, words):
    text = await shown(panels.StageStrip, session, (100, 3))
    assert words in " ".join(text[2].split())


async def test_a_pending_pause_is_shown():
    session = FakeSession()
    session.command(Command.PAUSE)
    assert "pauses at the next boundary" in (await shown(panels.StageStrip, session, (80, 3)))[2]


# --- header -----------------------------------------------------------------------------------


async def test_the_header_keeps_the_state_when_it_is_narrow():
    for width, words in [
        (14, ["RUNNING"]),
        (40, ["it", "312/1500", "RUNNING"]),
        (80, ["go2_flat", "cpu", "RUNNING", "13.5k", "ETA", "00:18:03"]),
        (200, ["2026-09-21_14-13-20_fake", "seed", "42", "elapsed", "3.8M"]),
    ]:
        text = (await shown(panels.Header, FakeSession(), (width, 2)))[0].split()
        assert [word for word in words if word not in text] == []


async def test_a_run_that_is_over_tells_no_end_to_come_and_no_rollout_to_come():
    session = FakeSession()
    session.publish(state=RunState.FINISHED, rollout=None)
    assert "ETA" not in (await shown(panels.Header, session, (200, 2)))[0]
    assert "no rollout was kept" in "".join(await shown(panels.RolloutPanel, session, (60, 8)))


# --- notes ------------------------------------------------------------------------------------


async def test_all_notes_are_folded_in_full():
    text = await shown(panels.NotesPanel, FakeSession(), (60, 8))
    assert [line[2:-2].rstrip() for line in text[1:5]] == [
        "· no GPU (no NVIDIA driver): 512 worlds; go2_flat runs",
        "  its CPU table",
        "· seed 42 was drawn; give it again to repeat this run",
        "",
    ]


# --- rollout ----------------------------------------------------------------------------------


async def test_the_rollout_fills_to_its_cursor():
    text = await shown(panels.RolloutPanel, FakeSession(), (76, 18))
    body = [line[2:-2].rstrip() for line in text[1:-1]]
    assert body[8].startswith("17> ▀▀")
    assert body[9].strip() == "·" * 64
    assert body[10] == "20  " + "·" * 64
    assert "T 24 × N 512 = B 12,288" in text[-1]
    assert body[12].startswith("t 17/24 ━")
    assert any("x" in line for line in body[:8])
    assert any("o" in line for line in body[:8])
    assert body[13].startswith("-0.0224 ▀▀▀▀▀▀▀▀▀▀▀▀ +0.0436  mean +0.0187")
    assert body[14] == "x terminated    8  o time-out    7  a bin is 8 worlds"


async def test_rows_of_the_last_rollout_are_not_shown_in_this_one():
    session = FakeSession()
    view = session.snapshot().rollout
    old = replace(
        view, reward=np.ones((24, 64), np.float32), done=np.ones((24, 64), bool), filled=0
    )
    session.publish(rollout=old)
    text = await shown(panels.RolloutPanel, session, (76, 18))
    assert "·" * 64 in text[1]
    assert any("x terminated    0  o time-out    0" in line for line in text)


# --- episodes ---------------------------------------------------------------------------------


def with_episodes(returns, lengths, **changes):
    session = FakeSession()
    view = EpisodesView(np.asarray(returns, np.float32), np.asarray(lengths, np.float32))
    ended = replace(session.snapshot(), episodes=view)
    session.publish(boundary=ended, **changes)
    return session


async def test_lengths_are_spread_from_0_to_the_longest_that_there_can_be():
    session = with_episodes([1.0] * 4, [1000, 1000, 1000, 0])
    text = await shown(panels.LengthHistogramPanel, session, (44, 8))
    body = [line[2:-2] for line in text[1:-1]]
    assert "4 episodes" in body[0]
    assert "median   1000" in body[0]
    assert body[-1].split() == ["0", "1000"]
    assert body[1].rstrip().endswith("█")  # three at the right end
    assert body[1].strip() == "█"
    assert body[-2][0] in "▃▂█▁▄"  # and one at the left


async def test_the_axis_of_returns_has_round_ends():
    session = with_episodes([-1.3, 4.0, 27.2], [1, 2, 3])
    text = await shown(panels.ReturnHistogramPanel, session, (60, 8))
    assert text[-2].strip("│ ").split() == ["-10", "30"]


async def test_episodes_that_cannot_be_shown_are_counted_or_explained():
    nan, inf = float("nan"), float("inf")
    text = await shown(panels.ReturnHistogramPanel, with_episodes([nan, 1.0, inf], [1, 2, 3]))
    assert "1 episode  and 2 not finite" in text[1]
    text = await shown(panels.ReturnHistogramPanel, with_episodes([], []))
    assert "no episode has ended yet" in text[1]
    text = await shown(panels.ReturnHistogramPanel, FakeSession())
    assert "seen when an iteration has ended" in text[1]
    over = FakeSession()
    over.publish(state=RunState.FINISHED)
    text = await shown(panels.ReturnHistogramPanel, over)
    assert "single episodes are not recorded" in text[1]


# --- update -----------------------------------------------------------------------------------


async def test_arrows_show_where_the_rate_moved():
    session = FakeSession()
    update = session.snapshot().update
    rate = np.full(20, 6e-4, np.float32)
    rate[3:] *= 1.5
    rate[10:] /= 1.5
    session.publish(update=replace(update, learning_rate=rate))
    text = await shown(panels.LearningRatePanel, session, (84, 14))
    arrows = next(line for line in text if "  rate ·" in line)
    assert "".join(arrows.split()[2:-1]) == "···↑······↓·········"


async def test_the_kl_stands_between_its_lines():
    text = await shown(panels.LearningRatePanel, FakeSession(), (84, 14))
    assert any("0.02┤" in line and "┄" in line for line in text)
    assert any("0.005┤" in line for line in text)
    assert "1e-5├" in text[-2]


async def test_a_fixed_rate_has_no_lines():
    session = FakeSession(info=run_info(desired_kl=None))
    text = "\n".join(await shown(panels.LearningRatePanel, session, (84, 14)))
    assert "fixed rate" in text
    assert "┤" not in text.split("1e-5")[0]


async def test_the_ratio_has_lines_at_the_clip_and_its_mass_beyond():
    session = FakeSession()
    text = await shown(panels.RatioPanel, session, (84, 14))
    labels = next(line for line in text if "0.8" in line and "1.2" in line)
    assert labels.split()[1:-1] == ["0.5", "0.8", "1", "1.2", "1.5"]
    assert "< 0.8:   4%" in text[-2]
    assert "> 1.2:   7%" in text[-2]
    assert "clip fraction  15%" in text[1]


# --- health -----------------------------------------------------------------------------------


def severities(**metrics):
    snapshot = Snapshot(
        info=run_info(), metrics={k.replace("__", "/"): v for k, v in metrics.items()}
    )
    return {sign.name: sign.severity for sign in signs(snapshot, History())}


def test_a_healthy_run_is_ok():
    session = FakeSession()
    assert {sign.severity for sign in signs(session.snapshot(), session.history)} == {0}


@pytest.mark.parametrize(
    ("metrics", "name", "severity"),
    [
        ({"Loss__kl_mean": 0.03}, "KL mean", 1),
        ({"Loss__kl_mean": 0.06}, "KL mean", 2),
        ({"Loss__learning_rate": 1e-5}, "rate", 1),
        ({"Loss__learning_rate": 1e-2}, "rate", 1),
        ({"Loss__clip_fraction": 0.4}, "clip frac", 1),
        ({"Loss__explained_variance": 0.2}, "expl. var", 1),
        ({"Loss__explained_variance": -0.2}, "expl. var", 2),
        ({"Loss__entropy": -3.0}, "entropy", 0),
        ({"Loss__entropy": math.nan}, "entropy", 2),
        ({"Policy__min_std": 0.03, "Policy__mean_std": 0.5}, "σ min", 1),
        ({"Policy__min_std": 0.005, "Policy__mean_std": 0.5}, "σ min", 2),
        ({"Policy__min_std": 0.5, "Policy__mean_std": 3.0}, "σ max", 1),
        ({"Loss__actor_grad_norm": 7.0}, "|g| actor", 1),
        ({"Loss__critic_grad_norm": math.inf}, "|g| critic", 2),
        ({"Train__mean_reward": math.nan}, "non-finite", 2),
    ],
)
def test_a_sign_off_its_range_is_marked(metrics, name, severity):
    assert severities(**metrics)[name] == severity


async def test_signs_that_are_off_come_first_where_room_is_short():
    session = FakeSession()
    session.publish(metrics=MappingProxyType({**metrics_at(311), "Loss/surrogate": 5.0}))
    text = await shown(panels.HealthPanel, session, (40, 6))
    assert text[1].split()[1:3] == ["!!", "surrogate"]
    assert "1 off" in text[-1]


async def test_the_smallest_std_of_any_action_is_shown():
    session = FakeSession()
    std = np.full(12, 0.5, np.float32)
    std[7] = 1e-6
    session.publish(update=replace(session.snapshot().update, action_std=std))
    text = await shown(panels.HealthPanel, session, (80, 20))
    assert next(line for line in text if "σ min" in line).split()[1:5] == [
        "!!",
        "σ",
        "min",
        "1.0e-6",
    ]


# --- rewards, episodes, curves ----------------------------------------------------------------


async def test_reward_terms_state_their_unit_and_episode_sum():
    session = FakeSession()
    metrics = {"Episode_Reward/track_lin_vel_xy_exp": 1.5, "Episode_Reward/lin_vel_z_l2": -0.25}
    session.history.append(312, metrics)
    session.publish(metrics=MappingProxyType(metrics))
    text = await shown(panels.RewardTermsPanel, session, (120, 14))
    assert "per second of the 20 s limit" in text[-1]
    track = next(line for line in text if "track_lin" in line).split()
    assert (track[-2], "+1.500" in track, "1.5" in track) == ("+30.00", True, True)
    total = next(line for line in text if "total" in line).split()
    assert total[-2] == "+25.00"


async def test_the_unit_stays_when_rows_do_not_fit():
    text = await shown(panels.RewardTermsPanel, FakeSession(), (50, 9))
    assert "6 below · per second of the 20 s limit" in text[-1]


async def test_reward_terms_sort_by_size():
    session = FakeSession()
    app = Stage1(panels.RewardTermsPanel)
    async with app.run_test(size=(100, 20)) as pilot:
        app.panel.show(session.snapshot(), session)
        names = [plain(line).split()[0] for line in app.panel._lines[1:4]]
        assert names == ["track_lin_vel_xy_exp", "track_ang_vel_z_exp", "dof_torques_l2"]
        await pilot.press("o")
        names = [plain(line).split()[0] for line in app.panel._lines[1:4]]
        assert names == ["track_lin_vel_xy_exp", "track_ang_vel_z_exp", "lin_vel_z_l2"]


async def test_a_term_without_a_new_value_stays_and_is_marked():
    session = FakeSession()
    session.history.append(312, {"Train/mean_reward": 1.0})
    session.publish(completed_iterations=313)
    text = await shown(panels.RewardTermsPanel, session, (100, 20))
    assert any("~track_lin_vel_xy_exp" in line for line in text)


async def test_terminations_are_shares_of_a_whole():
    session = FakeSession()
    session.publish(
        metrics=MappingProxyType(
            {"Episode_Termination/time_out": 0.3, "Episode_Termination/base_contact": 0.1}
        )
    )
    text = await shown(panels.TerminationsPanel, session, (60, 6))
    assert text[1].split()[1:3] == ["time_out", "75%"]
    assert text[2].split()[1:3] == ["base_contact", "25%"]


async def test_command_errors_are_listed():
    text = await shown(panels.MetricsPanel, FakeSession(), (80, 8))
    assert any("base_velocity/error_vel_xy" in line and "0.30" in line for line in text)


async def test_the_curve_goes_through_all_metrics():
    session = FakeSession()
    app = Stage1(panels.CurvePanel)
    async with app.run_test(size=(80, 16)) as pilot:
        app.panel.show(session.snapshot(), session)
        tags = session.history.tags
        at = tags.index("Train/mean_reward")
        await pilot.press("down")
        assert app.panel.tag == tags[(at + 1) % len(tags)]
        await pilot.press("up", "up")
        assert app.panel.tag == tags[at - 1]
        assert "seconds an iteration" in str(app.panel.border_title)
        await pilot.press("y")
        assert "log" in str(app.panel.border_title)


async def test_a_metric_that_went_nan_says_so_in_the_border():
    session = FakeSession()
    session.history.append(312, {"Train/mean_reward": math.nan})
    session.publish(metrics=MappingProxyType({"Train/mean_reward": math.nan}))
    text = await shown(panels.CurvePanel, session, (80, 16))
    assert "nan" in text[-1]
    assert text[-3].rstrip("│ ").endswith("x")


async def test_timing_is_a_tree_of_phases_and_stages():
    text = await shown(panels.TimingPanel, FakeSession(), (70, 14))
    names = [line[2:].split()[0] for line in text[1:4]]
    assert names == ["iteration", "collect", "├"]
    assert any("optimize" in line and "282 ms" in line and "31%" in line for line in text)
    assert sum(int(line.split("%")[0].split()[-1]) for line in text if "collect " in line or "learn " in line) == 100  # fmt: skip # noqa: E501


# --- events, scrolling ------------------------------------------------------------------------


async def test_events_come_newest_first_and_are_kept_once():
    session = FakeSession()
    app = Stage1(panels.EventsPanel)
    async with app.run_test(size=(80, 8)) as pilot:
        for _ in range(3):
            app.panel.show(session.snapshot(), session)
        session.events.add("checkpoint", "model_312.pt\nsaved")
        app.panel.show(session.snapshot(), session)
        await pilot.pause()
        kinds = [plain(line).split()[1] for line in app.panel._lines[:5]]
        assert kinds == ["checkpoint", "checkpoint", "rate", "alert", "break"]
        assert "model_312.pt saved" in plain(app.panel._lines[0])


async def test_rows_that_do_not_fit_scroll():
    session = FakeSession(paused=True, stage=Stage.TARGETS, step=24)
    session.look(TraceRequest(Stage.TARGETS))
    app = Stage1(panels.NumbersPanel)
    async with app.run_test(size=(100, 6)) as pilot:
        app.panel.state.stage = Stage.TARGETS
        app.panel.show(session.snapshot(), session)
        await pilot.pause()
        assert "26 below" in str(app.panel.border_subtitle)
        await pilot.press("down", "down")
        assert "2 above · 24 below" in str(app.panel.border_subtitle)
        await pilot.press("end")
        assert "V(obs_T)" in plain(app.panel._lines[3])
        await pilot.press("up", "home")
        assert plain(app.panel._lines[0]).startswith("δ_23 = ")


async def test_panels_are_found_by_the_id_they_are_given():
    app = Stage1(panels.Header)
    async with app.run_test():
        assert app.query_one("#panel", panels.Header).id == "panel"
        with pytest.raises(NoMatches):
            app.query_one("#other")


@pytest.mark.parametrize(
    ("width", "decimation", "expected"),
    [
        (98, 4, "tick 5 ms × 4 = env step 20 ms · episode 1,000 steps = 20 s"),
        (56, 4, "tick 5 ms × 4 = step 20 ms · 1,000 steps = 20 s"),
        (36, 4, "5 ms × 4 = 20 ms · 1,000 steps"),
        (98, None, "env step 20 ms · episode 1,000 steps = 20 s"),
    ],
)
def test_the_three_time_scales_are_told_in_the_room_there_is(width, decimation, expected):
    assert time_scales(run_info(decimation=decimation), width) == expected
