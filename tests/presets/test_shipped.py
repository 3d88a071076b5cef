"""What holds for every preset that comes with the program."""

import pytest
import torch

from presets.build import Device, build_env
from presets.files import OURS
from presets.loader import load
from presets.problems import PresetError
from trainer.loop import Trainer

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


@pytest.mark.parametrize("name", SHIPPED)
def test_where_nothing_is_learnt_the_policy_of_the_rollout_is_reproduced(name):
    settings = ["env.num_envs=4", "trainer.seed=1", "trainer.num_steps_per_env=4"]
    settings += ["trainer.learning_rate=0", "trainer.schedule=fixed", "trainer.num_mini_batches=2"]
    preset = load(name, settings).preset
    env = build_env(preset, Device("cpu"))
    trainer = Trainer(env, preset.trainer)
    weights = {name: p.clone() for name, p in trainer.actor.named_parameters()}
    for _ in range(2):  # the second behind moved statistics
        trainer.iterate()
        assert len(trainer.results) == 2 * preset.trainer.num_learning_epochs
        for result in trainer.results:
            assert result.ratio.mean().item() == pytest.approx(1.0, abs=1e-5)
            assert result.kl == pytest.approx(0.0, abs=1e-6)
            assert result.clip_fraction == 0.0
    for name, parameter in trainer.actor.named_parameters():
        assert torch.equal(parameter, weights[name]), name
    env.close()


def test_a_rate_of_0_does_not_go_with_a_schedule_that_moves_it():
    with pytest.raises(PresetError, match=r"learning_rate 0 lies outside 1e-05 to 0\.01"):
        load("cartpole", ["trainer.learning_rate=0"])
