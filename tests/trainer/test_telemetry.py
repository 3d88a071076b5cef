import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.telemetry import EventLog, History, RunInfo


def test_a_curve_returns_what_was_appended_with_gaps_for_what_was_not():
    history = History(capacity=8)
    history.append(1, {"a": 1.0})
    history.append(2, {"b": 5.0})
    history.append(3, {"a": 3.0, "b": float("nan")})
    curve = history.curve("a")
    assert curve.iteration.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(curve.mean, np.array([1, np.nan, 3], np.float32))
    np.testing.assert_array_equal(history.curve("b").mean, np.array([np.nan, 5, np.nan], "f4"))
    assert history.tags == ("a", "b")
    assert history.curve("never").mean.tolist() != [1]


def test_a_full_history_halves_itself_and_keeps_means_and_spikes():
    history = History(capacity=4)
    for iteration in range(5):
        history.append(iteration, {"a": 100.0 if iteration == 1 else 0.0})
    curve = history.curve("a")
    assert curve.iteration.tolist() == [0, 2, 4]
    assert curve.mean.tolist() == [50.0, 0.0, 0.0]
    assert curve.high.tolist() == [100.0, 0.0, 0.0]
    assert curve.low.tolist() == [0.0, 0.0, 0.0]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300))
def test_a_history_of_any_length_stays_small_and_keeps_its_extremes(values):
    history = History(capacity=16)
    for iteration, value in enumerate(values):
        history.append(iteration, {"a": value})
    curve = history.curve("a")
    assert len(curve.mean) <= 16
    assert np.nanmax(curve.high) == np.float32(max(values))
    assert np.nanmin(curve.low) == np.float32(min(values))
    assert len(history) == len(values)


def test_copies_of_a_curve_do_not_change_later():
    history = History(capacity=4)
    history.append(0, {"a": 1.0})
    before = history.curve("a")
    history.append(1, {"a": 2.0})
    assert before.mean.tolist() == [1.0]


def test_an_odd_capacity_is_refused():
    with pytest.raises(ValueError, match="even"):
        History(capacity=3)


def test_events_are_handed_out_once_and_the_oldest_are_dropped():
    log = EventLog(capacity=3)
    for text in "abcd":
        log.add("start", text)
    count, events = log.since(0)
    assert count == 4
    assert [event.text for event in events] == ["b", "c", "d"]
    log.add("end", "e")
    count, events = log.since(count)
    assert [event.text for event in events] == ["e"]
    assert log.since(count) == (5, [])


def test_run_info_gives_the_article_s_sizes():
    info = RunInfo(
        preset="go2_rough",
        run_dir="",
        seed=42,
        device="cpu",
        num_envs=4096,
        num_steps_per_env=24,
        num_iterations=1500,
        num_mini_batches=4,
        num_learning_epochs=5,
        num_actions=12,
        observation_groups={"policy": 235},
        observation_terms={},
        reward_terms={},
        step_dt=0.02,
        max_episode_length=1000,
        clip_param=0.2,
        desired_kl=0.01,
    )
    assert info.batch_size == 98_304
    assert info.mini_batch_size == 24_576
    assert info.updates_per_iteration == 20
    assert not math.isnan(info.step_dt)
