import json
import math

from trainer.playing import Episode
from tui.play.table import as_json, as_table, summarize

EPISODES = [
    Episode(0, 40.0, 1000, False, {"base_velocity/error_vel_xy": 0.1}),
    Episode(1, 20.0, 500, True, {"base_velocity/error_vel_xy": 0.3}),
]
ABOUT = {"preset": "go2_flat", "checkpoint": "model_1300.pt"}


def test_numbers_are_summed_up():
    assert summarize([1.0, 3.0]) == (2.0, 1.0, 1.0, 3.0)
    assert summarize([5.0]) == (5.0, 0.0, 5.0, 5.0)
    assert all(math.isnan(number) for number in summarize([1.0, math.nan]))


def test_the_table_names_what_was_played_and_sums_up_every_number():
    lines = as_table(ABOUT, EPISODES, 0.02).splitlines()
    assert lines[0].split() == ["preset", "go2_flat"]
    assert lines[1].split() == ["checkpoint", "model_1300.pt"]
    assert lines[3].split() == ["mean", "std", "min", "max"]
    assert lines[4].split() == ["return", "30.00", "10.00", "20.00", "40.00"]
    assert lines[5].split() == ["length_s", "15.00", "5.000", "10.00", "20.00"]
    assert lines[6].split() == [
        "base_velocity/error_vel_xy",
        "0.2000",
        "0.1000",
        "0.1000",
        "0.3000",
    ]
    assert lines[7].split(maxsplit=1) == ["falls", "1 of 2 episodes (50 %)"]


def test_json_holds_the_sums_and_every_episode():
    read = json.loads(as_json(ABOUT, EPISODES, 0.02))
    assert read["preset"] == "go2_flat"
    assert read["return"] == {"mean": 30.0, "std": 10.0, "min": 20.0, "max": 40.0}
    assert (read["falls"], read["fall_rate"]) == (1, 0.5)
    assert read["each"][1] == {
        "world": 1,
        "return": 20.0,
        "length": 500,
        "fell": True,
        "base_velocity/error_vel_xy": 0.3,
    }


def test_json_stays_json_where_a_number_is_not_finite():
    broken = [Episode(0, math.nan, 3, True, {"error": math.inf})]
    read = json.loads(as_json({}, broken, 0.02), parse_constant=lambda name: 1 / 0)
    assert read["return"]["mean"] is None
    assert read["each"][0]["error"] is None
