"""What holds for every preset that comes with the program."""

import pytest
import torch

from presets.build import Device, build_env
from presets.files import OURS
from presets.loader import load

SHIPPED = sorted(path.stem for path in OURS.glob("*.toml"))


def test_these_are_shipped():
    assert {"cartpole", "cartpole_direct", "franka_reach", "go2_flat", "go2_rough"} <= set(SHIPPED)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", SHIPPED)
def test_each_is_valid_and_says_what_it_trains(name, device):
    assert load(name, device=device).preset.description


@pytest.mark.parametrize("name", SHIPPED)
def test_where_nothing_falls_every_episode_ends_as_a_time_out(name, monkeypatch):
    preset = load(name, ["env.num_envs=4", "trainer.seed=1"]).preset
    env = build_env(preset, Device("cpu"))
    # physics that leaves every world where it is
    monkeypatch.setattr(env.scene, "tick", lambda last: None)
    env.episode_length[:] = env.max_episode_length - 3
    rest = torch.zeros(4, env.num_actions)
    for _ in range(2):
        feedback = env.step(rest)
        assert not (feedback.terminated | feedback.time_outs).any()
    feedback = env.step(rest)
    for flags, expected in ((feedback.terminated, False), (feedback.time_outs, True)):
        assert flags.dtype == torch.bool
        assert flags.tolist() == [expected] * 4
    assert env.episode_length.tolist() == [0] * 4
    env.close()
