import os
from dataclasses import replace

import numpy as np
import pytest

from tests.tui.poses import arm, beam, walker
from tui.draw.spans import Charset
from tui.play.app import PlayApp, exit_code
from tui.play.performance import Frame, Last


class FakePerformance:
    """Keeps a record of its cues, and shows what it is given."""

    def __init__(self, pose, **changes):
        self.frame = Frame(
            seq=1, is_ready=True, pose=pose, num_worlds=4, reward=0.031, total=12.3, pace=0.98
        )
        self.frame = replace(self.frame, **changes)
        self.cues = []

    def __getattr__(self, name):
        return lambda *arguments: self.cues.append((name, *arguments))

    def show(self, **changes):
        self.frame = replace(self.frame, seq=self.frame.seq + 1, **changes)


def app_of(performance, charset=Charset.BRAILLE):
    app = PlayApp(performance, ("go2_flat", "2026-01-01_00-00-00", "model_1300.pt"))
    app.charset = charset
    return app


async def settled(pilot):
    pilot.app._look()
    await pilot.pause(0.1)
    await pilot.pause(0.1)


def text(app):
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


@pytest.mark.parametrize(
    ("size", "charset"),
    [
        *(((size), Charset.BRAILLE) for size in [(80, 24), (120, 40), (200, 50), (60, 15)]),
        ((80, 24), Charset.ASCII),
    ],
)
@pytest.mark.parametrize("pose", [walker(), arm(), beam()], ids=["walker", "arm", "beam"])
async def test_every_size_shows_the_robot_and_its_numbers(pose, size, charset):
    performance = FakePerformance(pose, last=Last(40.4, 20.0, fell=False))
    app = app_of(performance, charset)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        seen = text(app)
        assert "go2_flat" in seen
        assert "PLAYS" in seen
        assert "from the right" in seen
        from_above = size[1] > 15 and (pose.told_velocity is not None or pose.target is not None)
        assert ("from above" in seen) is from_above
        assert "reward" in seen
        if pose.quantities:
            assert "told by the env" in seen
            assert pose.quantities[0].label in seen
        if charset is Charset.ASCII:
            assert seen.isascii()
        else:
            assert any("\u2800" < character <= "\u28ff" for character in seen)


async def test_larger_terminals_show_the_last_seconds():
    performance = FakePerformance(walker())
    app = app_of(performance)
    async with app.run_test(size=(120, 40)) as pilot:
        for k in range(5):
            performance.show(seconds=k * 0.1)
            await settled(pilot)
        seen = text(app)
        assert "told and real" in seen
        assert "forward m/s" in seen
        assert "last 10 s" in seen


async def test_keys_give_cues():
    cues = {
        "space": ("toggle_pause",),
        "up": ("steer", 0, 1),
        "down": ("steer", 0, -1),
        "left": ("steer", 2, 1),
        "right": ("steer", 2, -1),
        "a": ("steer", 1, 1),
        "d": ("steer", 1, -1),
        "0": ("stand",),
        "c": ("redraw_command",),
        "n": ("turn_to", 1),
        "N": ("turn_to", -1),
        "r": ("restart",),
        "plus": ("change_speed", 1),
        "equals_sign": ("change_speed", 1),
        "minus": ("change_speed", -1),
    }
    performance = FakePerformance(walker())
    async with app_of(performance).run_test() as pilot:
        await settled(pilot)
        for key, cue in cues.items():
            performance.cues.clear()
            await pilot.press(key)
            assert performance.cues == [cue], key


async def test_arrows_move_a_target_as_the_view_shows_it():
    performance = FakePerformance(arm())
    async with app_of(performance).run_test() as pilot:
        await settled(pilot)
        performance.cues.clear()
        await pilot.press("up", "right", "a")
        assert performance.cues == [("steer", 2, 1), ("steer", 0, 1), ("steer", 1, 1)]


async def test_keys_that_mean_nothing_do_nothing():
    performance = FakePerformance(beam(), num_worlds=1)
    async with app_of(performance).run_test() as pilot:
        await settled(pilot)
        performance.cues.clear()
        await pilot.press("up", "a", "0", "c", "n", "full_stop")
        assert performance.cues == []
        footer = text(pilot.app).splitlines()[-1]
        assert "Pause" in footer
        assert "Steer" not in footer


async def test_a_step_is_for_paused_play_alone():
    performance = FakePerformance(walker())
    async with app_of(performance).run_test() as pilot:
        performance.show(is_paused=True)
        await settled(pilot)
        assert "PAUSED" in text(pilot.app)
        performance.cues.clear()
        await pilot.press("full_stop")
        assert performance.cues == [("step_once",)]


async def test_help_explains_keys_and_picture_and_closes():
    performance = FakePerformance(walker())
    async with app_of(performance).run_test(size=(100, 60)) as pilot:
        await settled(pilot)
        await pilot.press("question_mark")
        await pilot.pause(0.1)
        seen = text(pilot.app)
        assert "The picture" in seen
        assert "Arrows: forward" in seen
        assert "Pause, and go on" in seen
        await pilot.press("q")
        await pilot.pause(0.1)
        assert "from the right" in text(pilot.app)


async def test_worlds_without_a_picture_are_played_with_numbers():
    performance = FakePerformance(None)
    async with app_of(performance).run_test() as pilot:
        await settled(pilot)
        seen = text(pilot.app)
        assert "no picture of its worlds" in seen
        assert "+12.30 so far" in seen


async def test_the_header_says_how_fast_it_goes_and_gives_way_in_order():
    performance = FakePerformance(walker(), speed=0.5, pace=0.4321, world=2)
    async with app_of(performance).run_test(size=(60, 20)) as pilot:
        await settled(pilot)
        head = text(pilot.app).splitlines()[0]
        assert "world 3/4" in head
        assert "x0.5 (x0.432)" in head
        assert "model_1300.pt" not in head


@pytest.mark.parametrize(("trace", "code"), [("", 2), ("Traceback ...", 1)])
async def test_a_failure_ends_it_with_its_exit_code(trace, code):
    performance = FakePerformance(walker(), failure="no such thing", traceback=trace)
    assert exit_code(performance.frame) == code
    app = app_of(performance)
    async with app.run_test() as pilot:
        app._look()
        await pilot.pause(0.1)
    assert app.return_value == code


def test_near_its_terminal_more_may_be_sent_than_over_ssh(monkeypatch):
    for name in ("SSH_CONNECTION", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    near = app_of(FakePerformance(walker())).bytes_per_cell
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22")
    assert app_of(FakePerformance(walker())).bytes_per_cell < near
    assert "SSH_CONNECTION" in os.environ


async def test_the_way_is_forgotten_where_another_episode_begins():
    performance = FakePerformance(walker())
    app = app_of(performance)
    async with app.run_test() as pilot:
        await settled(pilot)
        top = app.screen.query_one("#top")
        for k in range(5):
            position = np.array([2.0 + 0.1 * k, 1.0, 0.3], np.float32)
            performance.show(pose=walker(position=position, seconds=6.0 + k))
            await settled(pilot)
        assert len(top.trail) == 5
        performance.show(pose=walker(seconds=0.1))
        await settled(pilot)
        assert len(top.trail) == 1
