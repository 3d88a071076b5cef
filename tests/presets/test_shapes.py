"""Widths known before anything is built are those of the built worlds."""

import pytest

from presets.build import Device, build_env
from presets.loader import load
from presets.shapes import num_actions, observation_widths

WHOLE = ["cartpole", "cartpole_direct", "franka_reach", "go2_flat", "go2_rough_asymmetric"]


@pytest.mark.parametrize("name", WHOLE)
def test_widths_are_those_of_the_built_worlds(name):
    preset = load(name, ["env.num_envs=4", "trainer.seed=1"]).preset
    env = build_env(preset, Device("cpu"))
    try:
        assert num_actions(preset.env) == env.num_actions
        built = {group: dict(terms) for group, terms in env.observation_terms.items()}
        assert observation_widths(preset.env) == built
    finally:
        env.close()


def test_a_height_scan_has_a_point_at_both_ends_of_each_side():
    widths = observation_widths(load("go2_rough").preset.env)["policy"]
    assert widths["height_scan"] == 17 * 11  # 1.6 m x 1.0 m, a point every 0.1 m
    assert sum(widths.values()) == 48 + 187
