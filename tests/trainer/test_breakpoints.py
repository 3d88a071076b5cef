"""Each breakpoint names its cause and the number, at the iteration where it happens."""

import math

from trainer.breakpoints import Breakpoints, parse


def hits(text, *rows, faults=()):
    """The causes found, iteration by iteration, with one breakpoint armed."""
    looker, one = Breakpoints(), parse(text)
    return [
        [hit.why for hit in looker.check([one], number, row, faults)]
        for number, row in enumerate(rows, start=1)
    ]


def test_a_metric_beyond_its_limit():
    above = hits("kl > 0.05", {"Loss/kl_mean": 0.05}, {"Loss/kl_mean": 0.0612}, {})
    assert above == [[], ["Loss/kl_mean 0.0612 above 0.05"], []]
    below = hits("Loss/entropy < 2", {"Loss/entropy": 2.0}, {"Loss/entropy": 1.5})
    assert below == [[], ["Loss/entropy 1.5 below 2"]]


def test_an_iteration_that_is_reached():
    assert hits("iteration 2", {}, {}) == [[], ["iteration 2 is done"]]


def test_a_reward_that_falls_from_the_best_of_the_last_iterations():
    rows = [{"Train/mean_reward": value} for value in (10.0, 9.0, 7.9, 7.0)]
    found = hits("reward drop > 20%", *rows)
    assert found[:2] == [[], []]
    assert found[2] == ["reward 7.9 is 21% below 10, the best of the last 3 iterations"]
    assert hits("reward drop > 20% in 2", *rows) == [[], [], [], []]  # never so much in two


def test_a_negative_reward_falls_by_shares_of_its_size():
    rows = [{"Train/mean_reward": value} for value in (-1.0, -1.1, -1.3)]
    assert [bool(found) for found in hits("drop 20%", *rows)] == [False, False, True]


def test_an_iteration_without_finished_episodes_is_no_drop():
    assert hits("reward drop > 20%", {"Train/mean_reward": 10.0}, {}) == [[], []]


def test_numbers_that_are_not_finite_and_worlds_that_went_bad():
    healthy = {"Loss/value": 0.1, "Episode_Reward/x": math.nan}
    assert hits("nan", healthy, {"Loss/value": math.inf}) == [[], ["Loss/value is inf"]]
    assert hits("nan", healthy, faults=("world 3 was reset",)) == [["world 3 was reset"]]
