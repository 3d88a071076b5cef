"""How time runs, in a preset's own numbers."""

from presets.loader import load
from presets.time_scales import time_scales


def test_the_three_scales_and_what_they_change_are_told_in_numbers():
    lines = time_scales(load("franka_reach").preset.env)
    scales = [line.split("  ")[0] for line in lines if not line.startswith(" ")]
    assert scales == [
        "physics_dt = 0.008333 s",
        "decimation = 4",
        "step_dt = 0.03333 s",
        "episode = 360 steps",
    ]
    assert lines[-2].endswith("at most: 12 s")
    # each is followed by what another value would do
    assert [line.split()[0] for line in lines[1::2]] == ["smaller", "smaller", "smaller", "longer"]


def test_a_shorter_tick_makes_shorter_steps_and_more_of_them():
    lines = time_scales(load("go2_flat", ["env.physics_dt=0.0025"]).preset.env)
    assert "step_dt = 0.01 s" in lines[4]
    assert "episode = 2000 steps" in lines[6]
