"""How often the dashboard is drawn."""

import pytest

from tui import frames, pace
from tui.frames import NUMBERS_INTERVAL, SHARE_OF_A_CORE, Frame, Frames


class Clocks:
    """The time of day, and the processor time that drawing has taken."""

    def __init__(self):
        self.now = 100.0
        self.processor = 5.0

    def monotonic(self):
        return self.now

    def thread_time(self):
        return self.processor


@pytest.fixture
def clocks(monkeypatch):
    clocks = Clocks()
    monkeypatch.setattr(frames, "time", clocks)
    monkeypatch.setattr(pace, "time", clocks)
    return clocks


def looks(clocks, plan, seconds, cost, is_awaited=False):
    """Look four times a second at a run that always shows something new."""
    drawn = []
    for _ in range(round(4 * seconds)):
        clocks.now += 0.25
        frame = plan.next(round(4 * clocks.now), is_awaited=is_awaited)
        clocks.processor += cost[frame]
        drawn.append(frame)
    return drawn


def test_drawing_that_takes_long_is_done_less_often_and_keeps_to_its_share(clocks):
    begin = clocks.processor
    cost = {Frame.NONE: 0.0002, Frame.MOVING: 0.008, Frame.WHOLE: 0.014}
    drawn = looks(clocks, Frames(), 60, cost)
    assert (clocks.processor - begin) / 60 == pytest.approx(SHARE_OF_A_CORE, rel=0.1)
    assert 100 < drawn.count(Frame.NONE) < 160


def test_however_long_it_takes_something_new_is_drawn_about_once_a_second(clocks):
    cost = {Frame.NONE: 0.0002, Frame.MOVING: 0.2, Frame.WHOLE: 0.4}
    drawn = looks(clocks, Frames(), 60, cost)
    assert 40 <= 240 - drawn.count(Frame.NONE) <= 60


def test_what_is_cheap_moves_at_every_look_and_numbers_change_once_a_second(clocks):
    cost = {Frame.NONE: 0.0, Frame.MOVING: 0.003, Frame.WHOLE: 0.006}
    drawn = looks(clocks, Frames(), 60, cost)
    assert drawn.count(Frame.NONE) == 0
    assert drawn.count(Frame.WHOLE) == pytest.approx(60 / NUMBERS_INTERVAL, abs=1)


def test_what_a_person_waits_for_is_drawn_whole_and_at_once(clocks):
    cost = dict.fromkeys(Frame, 0.5)
    assert set(looks(clocks, Frames(), 10, cost, is_awaited=True)) == {Frame.WHOLE}


def test_nothing_is_drawn_twice_but_numbers_that_were_left_out_are_drawn_in_the_end(clocks):
    plan = Frames()
    assert plan.next(1, is_awaited=False) is Frame.WHOLE
    clocks.now += 0.25
    assert plan.next(2, is_awaited=False) is Frame.MOVING
    clocks.now += 0.25
    assert plan.next(2, is_awaited=False) is Frame.NONE
    clocks.now += NUMBERS_INTERVAL
    assert plan.next(2, is_awaited=False) is Frame.WHOLE
    clocks.now += NUMBERS_INTERVAL
    assert plan.next(2, is_awaited=False) is Frame.NONE
