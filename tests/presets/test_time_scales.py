"""How time runs, in a preset's own numbers."""

import pytest

from presets.loader import load
from presets.problems import PresetError
from presets.time_scales import time_scales


def test_the_three_scales_and_what_they_change_are_told_in_numbers():
    lines = time_scales(load("franka_reach").preset.env)
    scales = [line.split("  ")[0] for line in lines if not line.startswith(" ")]
    assert scales == [
        "physics_dt = 0.008333 s",
        "decimation = 4",
        "step_dt = 0.03333 s",
        "render interval: none",
        "episode = 360 steps",
    ]
    assert lines[-2].endswith("at most: 12 s")
    # each is followed by what another value would do
    changes = [line.split()[0] for line in lines[1::2]]
    assert changes == ["smaller", "smaller", "smaller", "drawn", "longer"]


def test_a_shorter_tick_makes_shorter_steps_and_more_of_them():
    lines = time_scales(load("go2_flat", ["env.physics_dt=0.0025"]).preset.env)
    assert "step_dt = 0.01 s" in lines[4]
    assert "episode = 2000 steps" in lines[8]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("env.physics_dt=1.0", "--set env.physics_dt=1.0: physics_dt = 1 s is no physics tick"),
        ("env.physics_dt=1e-7", "allowed are 1e-05 to 0.05 s"),
        ("env.decimation=1000", "once in 5 s (physics_dt 0.005 s): allowed is up to 1 s"),
        ("env.episode_length_s=0.01", "shorter than one env step, which has 0.02 s"),
        ("env.episode_length_s=1e300", "more than 1,000,000,000 env steps of 0.02 s"),
    ],
)
def test_time_scales_that_no_robot_has_are_refused_in_a_sentence(setting, said):
    with pytest.raises(PresetError) as refused:
        load("go2_flat", [setting])
    assert said in str(refused.value)
    assert len(refused.value.messages) == 1


@pytest.mark.parametrize(
    "settings",
    [
        ["env.physics_dt=0.02", "env.decimation=1"],
        ["env.physics_dt=0.001", "env.decimation=20"],
        ["env.episode_length_s=0.02"],
    ],
)
def test_unusual_time_scales_are_a_persons_own_choice(settings):
    assert load("go2_flat", settings).preset.env.max_episode_length >= 1
