"""What the curriculum panel shows of levels, weights and ranges."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from tests.tui.fake_session import FakeSession, metrics_at, run_info
from tests.tui.test_panels import shown
from trainer.telemetry import RunState
from tui.draw.spans import Charset
from tui.panels import CurriculumPanel, CurvePanel, MetricsPanel

KINDS = {"pyramid_stairs": [60, 30, 10, 0, 0], "boxes": [0, 0, 5, 10, 5]}


def levels(scale=1.0):
    """Metrics of a terrain curriculum."""
    metrics = {
        "Curriculum/terrain_levels": 0.9,
        "Curriculum/terrain_levels/reached_top": 0.125,
    }
    for kind, worlds in KINDS.items():
        metrics[f"Curriculum/terrain_levels/{kind}"] = 1.0
        metrics |= {
            f"Curriculum/terrain_levels/{kind}/level_{k}": scale * n for k, n in enumerate(worlds)
        }
    moves = {"promotions": 14.0, "demotions": 3.0}
    return metrics | {f"Curriculum/terrain_levels/{name}": n for name, n in moves.items()}


def session_with(extra, **changes):
    ranges = MappingProxyType({"base_velocity": {"lin_vel_x": (-1.0, 1.0), "roll": (0.0, 0.0)}})
    session = FakeSession(info=run_info(command_ranges=ranges, **changes))
    for iteration in range(312, 330):
        session.history.append(iteration, extra)
    session.publish(metrics=MappingProxyType({**metrics_at(1), **extra}))
    return session


async def text_of(session, size=(100, 20), panel=CurriculumPanel, **kwargs):
    return "\n".join(await shown(panel, session, size, **kwargs))


@pytest.mark.parametrize("size", [(80, 14), (120, 24), (200, 40)])
async def test_every_number_of_a_terrain_curriculum_is_there_at_any_size(size):
    text = await text_of(session_with(levels()), size)
    for word in ("mean level", "0.9", "of 0 to 4", "reached the top", "12%", "promotions", "14"):
        assert word in text, word
    assert "demotions" in text
    line = next(line for line in text.splitlines() if "pyramid_stairs" in line)
    assert "0.500" in line  # (30 + 20) / 100
    assert "100" in line
    assert "lin_vel_x -1 to 1" in text
    assert "roll 0 " in text


async def test_a_taller_panel_has_taller_bars_with_their_worlds_below():
    low = await text_of(session_with(levels()), (100, 12))
    high = await text_of(session_with(levels()), (100, 30))
    assert "▆▆▆" in low
    assert high.count("█") > low.count("█")
    assert "60" in high
    assert "60" not in low


async def test_a_wide_panel_draws_the_mean_level_over_the_run():
    assert "terrain_levels over the run" in await text_of(session_with(levels()), (200, 40))
    assert "over the run" not in await text_of(session_with(levels()), (100, 12))


async def test_what_is_not_finite_neither_fails_nor_hides():
    text = await text_of(session_with(levels(scale=float("nan"))), (100, 20))
    assert "nan" in text
    assert "?" in text


async def test_the_weights_of_a_reward_curriculum_are_those_in_force():
    weights = {"Curriculum/action_rate": -0.005, "Curriculum/joint_vel": -0.001}
    rewards = MappingProxyType({"action_rate": -1e-4, "joint_vel": -1e-4})
    text = await text_of(session_with(weights, reward_terms=rewards))
    line = next(line for line in text.splitlines() if "action_rate" in line)
    assert "-0.0050" in line
    assert "weight in force" in line
    assert "ground" not in text


async def test_what_another_curriculum_reports_is_listed_under_its_name():
    text = await text_of(session_with({"Curriculum/mine": 2.0, "Curriculum/mine/width": 0.25}))
    assert "mine/width" in text
    assert "0.2500" in text


async def test_a_run_without_curriculum_says_so_and_keeps_its_ranges():
    text = await text_of(session_with({}))
    assert "n/a" in text
    assert "no curriculum" in text
    assert "lin_vel_x -1 to 1" in text


async def test_before_the_first_numbers_it_says_what_is_waited_for():
    starting = FakeSession(completed=0)
    starting.publish(state=RunState.STARTING, info=None, metrics=MappingProxyType({}))
    assert "no iteration done yet" in await text_of(starting)
    early = FakeSession()
    early.publish(metrics=MappingProxyType({"Loss/value": 1.0}))
    assert "no episode has ended yet" in await text_of(early)


async def test_in_ascii_no_other_character_is_shown():
    for size in ((80, 14), (120, 30), (200, 40)):
        text = await text_of(session_with(levels()), size, charset=Charset.ASCII)
        assert text.isascii()


async def test_other_panels_leave_the_bars_of_histograms_out():
    session = session_with(levels())
    text = await text_of(session, (100, 40), MetricsPanel)
    assert "terrain_levels" in text
    assert "promotions" in text
    assert "level_0" not in text
    assert "pyramid_stairs" not in text
    assert text.index("error_vel_xy") < text.index("terrain_levels")
    curve = CurvePanel()
    curve._session, curve.redraw = session, lambda: None
    seen = set()
    for _ in session.history.tags:
        curve.action_cycle(1)
        seen.add(curve.tag)
    assert "Curriculum/terrain_levels" in seen
    assert not any("level_0" in tag for tag in seen)


def test_the_help_says_that_the_mean_saturates():
    assert "saturates" in CurriculumPanel.HELP
    assert "random" in CurriculumPanel.HELP


def test_a_run_may_be_described_without_ranges():
    assert replace(run_info(), seed=1).command_ranges == {}


async def test_without_a_curriculum_the_room_shows_how_commands_are_followed():
    session = session_with({})
    for size, charts in (((116, 20), 2), ((196, 30), 2), ((76, 20), 1), ((76, 9), 0)):
        text = await text_of(session, size)
        assert "this run has no curriculum" in text
        assert text.count("over the run") == charts, size


async def test_a_metrics_name_is_whole_before_its_trend_is_shown():
    names = ("base_velocity/error_vel_xy", "base_velocity/error_vel_yaw")
    session = session_with({f"Metrics/{name}": 0.5 for name in names})
    narrow = await text_of(session, (43, 6), MetricsPanel)
    wide = await text_of(session, (68, 6), MetricsPanel)
    for name in names:
        assert f"{name} " in narrow
        assert f"{name} " in wide
    assert "trend" not in narrow
    assert "trend" in wide
