"""The allowances of bytes that a terminal gets, and of a core that drawing gets."""

from tui import pace
from tui.pace import BYTES_PER_CELL, Pace


def test_what_is_spent_keeps_to_the_rate(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(pace.time, "monotonic", lambda: now[0])
    rate = BYTES_PER_CELL * 80 * 24
    budget = Pace(rate)
    sent = 0
    for _ in range(600):  # a minute in looks of a tenth of a second, 2 kB wanted at each
        now[0] += 0.1
        if budget.allows:
            budget.spend(2000)
            sent += 2000
    assert 0.95 < sent / 60 / rate < 1.1


def test_one_large_frame_brings_a_second_of_silence_at_most(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(pace.time, "monotonic", lambda: now[0])
    budget = Pace(4800.0)
    assert budget.allows
    budget.spend(10**9)
    assert not budget.allows
    now[0] += 1.01
    assert budget.allows
