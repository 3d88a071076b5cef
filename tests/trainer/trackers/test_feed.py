import threading
import time

import pytest

from tests.trainer.test_resume import new
from trainer.progress import IterationRow
from trainer.trackers import feed
from trainer.trackers.choice import Trackers
from trainer.trackers.feed import Feed


class Tracker:
    """Keeps what it is given; calls `on` first, by the name of the call."""

    def __init__(self, **on):
        self.calls = []
        self._on = on

    def _do(self, name, *what):
        self._on.get(name, lambda: None)()
        self.calls.append((name, *what))

    def open(self):
        self._do("open")

    def write(self, row):
        self._do("write", row.iteration)

    def flush(self):
        self._do("flush")

    def close(self, *, failed):
        self._do("close", failed)


def fail():
    raise RuntimeError("no such project")


def rows(count):
    return [IterationRow(number, {}, 0, 0.0, 0.0) for number in range(1, count + 1)]


def test_all_rows_arrive_in_order_and_the_end_is_told():
    told, tracker = [], Tracker()
    fed = Feed("T", tracker, lambda *event: told.append(event))
    for row in rows(50):
        fed.write(row)
    fed.close(failed=True)
    written = [call for call in tracker.calls if call[0] != "flush"]
    assert written == [("open",), *(("write", n) for n in range(1, 51)), ("close", True)]
    assert told == []


@pytest.mark.parametrize("when", ["open", "write", "flush", "close"])
def test_a_tracker_that_fails_is_told_once_and_raises_nothing(when, monkeypatch):
    monkeypatch.setattr(feed, "FLUSH_INTERVAL", 0.0)
    told, tracker = [], Tracker(**{when: fail})
    fed = Feed("T", tracker, lambda *event: told.append(event))
    for row in rows(300):
        fed.write(row)
        time.sleep(0.0001)
    fed.close(failed=False)
    assert told == [("alert", "T: no such project; training goes on without it")]


def test_a_slow_tracker_holds_nobody_up_and_what_it_missed_is_counted():
    told, open_gate = [], threading.Event()
    tracker = Tracker(write=open_gate.wait)
    fed = Feed("T", tracker, lambda *event: told.append(event[1]))
    started = time.monotonic()
    for row in rows(feed.CAPACITY + 101):
        fed.write(row)
    assert time.monotonic() - started < 1.0
    assert 99 <= fed.dropped <= 101  # one or none is being written
    open_gate.set()
    fed.close(failed=False)
    assert told == [
        "T is too slow: iterations are left out there",
        f"T was too slow for {fed.dropped} iterations",
    ]


@pytest.mark.parametrize("waiting", [1, feed.CAPACITY + 10])
def test_the_end_of_a_run_waits_no_longer_than_it_promises(waiting):
    told, never = [], threading.Event()
    fed = Feed("T", Tracker(write=never.wait), lambda *event: told.append(event[1]))
    for row in rows(waiting):
        fed.write(row)
    started = time.monotonic()
    fed.close(failed=False, timeout=0.2)
    assert time.monotonic() - started < 1.0
    assert told[-1] == "T has not finished in 0.2 s; left behind"
    never.set()


def test_a_row_is_flushed_within_the_interval_though_no_other_follows(monkeypatch):
    monkeypatch.setattr(feed, "FLUSH_INTERVAL", 0.05)
    tracker = Tracker()
    fed = Feed("T", tracker, print)
    fed.write(rows(1)[0])
    deadline = time.monotonic() + 5
    while ("flush",) not in tracker.calls and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.2)
    assert tracker.calls.count(("flush",)) == 1
    fed.close(failed=False)


class Fsyncing:
    """A writer that waits for the disk at each of its 40 scalars, until it is let off."""

    def __init__(self):
        self.written, self.let_off = [], threading.Event()

    def open(self):
        pass

    def write(self, row):
        for _ in range(40):
            self.let_off.wait(0.05)
        self.written.append(row.iteration)

    def flush(self):
        pass

    def close(self, *, failed):
        pass


def test_training_is_as_fast_beside_a_writer_of_two_seconds_an_iteration(tmp_path, monkeypatch):
    """D15: 50 ms a scalar, 40 scalars an iteration; what training gives away stays below 3 %."""
    monkeypatch.setattr(feed, "CAPACITY", 3)
    given = []
    hand_on = Trackers.write

    def timed(self, row):
        started = time.perf_counter()
        hand_on(self, row)
        given.append(time.perf_counter() - started)

    monkeypatch.setattr(Trackers, "write", timed)
    writer, iterations = Fsyncing(), 60
    session = new(tmp_path / "run", iterations, logger="none")
    session._trackers._feeds.append(Feed("Slow", writer, session._record))
    session.start()
    while session.snapshot().completed_iterations < iterations:
        assert not session.join(0.01)
    taken = session.snapshot().elapsed
    writer.let_off.set()
    finish_started = time.monotonic()
    assert session.join(20)
    assert time.monotonic() - finish_started < feed.CLOSING_TIME
    assert len(given) == iterations
    assert sum(given) < 0.03 * taken
    dropped = iterations - len(writer.written)
    assert dropped > iterations / 2
    texts = [event.text for event in session.events.since(0)[1]]
    assert f"Slow was too slow for {dropped} iterations" in texts
