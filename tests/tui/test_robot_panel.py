import time

import pytest

from tests.tui.fake_session import FakeSession
from tests.tui.poses import arm, beam, walker
from tests.tui.test_panels import Stage1, shown
from trainer.pose import Choice, RobotRequest
from tui.app import DashboardApp
from tui.draw.spans import Charset
from tui.panels import RobotPanel
from tui.panels import robot as module

POSES = {"walker": walker, "arm": arm, "beam": beam}


def session_with(pose):
    session = FakeSession()
    session.publish(robot=pose)
    return session


@pytest.mark.parametrize("name", POSES)
@pytest.mark.parametrize("size", [(40, 8), (78, 18), (118, 30), (198, 44)])
async def test_the_views_and_numbers_fit_their_room(name, size):
    text = "\n".join(await shown(RobotPanel, session_with(POSES[name]()), size))
    assert "world 3 of 512" in text
    if size[0] > 70:
        assert "episode" in text
    assert any("\u2800" < character <= "\u28ff" for character in text)


async def test_in_ascii_it_is_ascii():
    text = "".join(await shown(RobotPanel, session_with(walker()), (100, 20), Charset.ASCII))
    assert text.isascii()


async def test_it_is_drawn_in_a_few_milliseconds():
    app = Stage1(RobotPanel)
    session = session_with(walker())
    async with app.run_test(size=(198, 44)) as pilot:
        app.panel.show(session.snapshot(), session)
        await pilot.pause()
        times = []
        for _ in range(15):
            began = time.perf_counter()
            app.panel._draw_lines(190, 42)
            times.append(time.perf_counter() - began)
    assert min(times) < 8e-3


async def test_keys_choose_the_world():
    app = Stage1(RobotPanel)
    session = session_with(walker(world=3))
    async with app.run_test(size=(100, 30)) as pilot:
        app.panel.show(session.snapshot(), session)
        app.panel.enter(session)
        assert session.robot_requests == [RobotRequest(Choice.WORST)]
        app.panel.show(session.snapshot(), session)
        for key, request in (
            ("W", RobotRequest(Choice.BEST)),
            ("w", RobotRequest(Choice.WORST)),
            ("n", RobotRequest(Choice.CHOSEN, 1)),  # behind world 0, which the fake answers with
            ("n", RobotRequest(Choice.CHOSEN, 2)),
            ("f", RobotRequest(Choice.CHOSEN, 2)),
            ("left_curly_bracket", RobotRequest(Choice.CHOSEN, 1)),
        ):
            await pilot.press(key)
            assert session.robot_requests[-1] == request, key
            app.panel.show(session.snapshot(), session)
        app.panel.leave(session)
        assert session.robot_requests[-1] is None


async def test_it_asks_again_where_nothing_comes(monkeypatch):
    monkeypatch.setattr(module, "ASK_AGAIN", 0.0)
    app = Stage1(RobotPanel)
    session = FakeSession()
    async with app.run_test():
        app.panel.enter(session)
        session.publish(robot=None)  # another viewer has left
        app.panel.show(session.snapshot(), session)
        assert len(session.robot_requests) == 2
        app.panel.leave(session)
        session.publish(robot=None)
        app.panel.show(session.snapshot(), session)
        assert session.robot_requests[-1] is None
        assert "no picture" in "".join(
            strip.text for strip in app.screen._compositor.render_strips()
        )


async def test_the_dashboard_looks_while_the_view_is_open_and_no_longer():
    session = FakeSession()
    session.start = lambda: None
    session.join = lambda timeout=None: True
    app = DashboardApp(session)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        assert session.robot_requests == []
        await pilot.press("r")
        await pilot.pause(0.5)
        assert session.robot_requests == [RobotRequest(Choice.WORST)]
        text = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
        assert "[r Robot]" in text
        assert "forward" in text
        await pilot.press("1")
        await pilot.pause(0.2)
        assert session.robot_requests[-1] is None
        await pilot.press("r", "escape")
        await pilot.pause(0.2)
        assert session.robot_requests[-2:] == [RobotRequest(Choice.WORST), None]
        assert app.screen.view == "overview"
