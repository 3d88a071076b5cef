"""The rough task with a memory."""

import pytest
import torch

from presets.build import Device, build_env
from presets.loader import load
from presets.problems import PresetError
from trainer.loop import Trainer

SMALL = [
    "env.num_envs=8",
    "trainer.seed=1",
    "trainer.num_steps_per_env=4",
    "trainer.num_mini_batches=2",
    "trainer.num_learning_epochs=1",
    "env.terrain.num_rows=3",
    "env.terrain.num_cols=6",
    "trainer.actor.rnn_hidden_dim=8",
    "trainer.critic.rnn_hidden_dim=6",
]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_it_is_go2_rough_but_for_the_networks(device):
    rough, ours = (load(name, device=device).preset for name in ("go2_rough", "go2_rough_gru"))
    assert ours.env == rough.env
    same = {
        "actor": rough.trainer.actor,
        "critic": rough.trainer.critic,
        "num_mini_batches": rough.trainer.num_mini_batches,
    }
    assert ours.trainer.model_copy(update=same) == rough.trainer
    assert ours.trainer.actor.rnn_type == ours.trainer.critic.rnn_type == "gru"
    assert ours.trainer.num_mini_batches == 4
    assert ours.trainer.recurrent
    assert not rough.trainer.recurrent


def test_one_iteration_trains_the_memories():
    preset = load("go2_rough_gru", SMALL).preset
    env = build_env(preset, Device("cpu"))
    trainer = Trainer(env, preset.trainer)
    assert [state.shape for state in trainer.actor_hidden] == [(1, 8, 8)]
    assert [state.shape for state in trainer.critic_hidden] == [(1, 8, 6)]
    before = [network.rnn.rnn.weight_hh_l0.clone() for network in (trainer.actor, trainer.critic)]
    trainer.iterate()
    for weight, network in zip(before, (trainer.actor, trainer.critic), strict=True):
        assert not torch.equal(weight, network.rnn.rnn.weight_hh_l0)
    assert trainer.results[0].ratio.tolist() == pytest.approx([1.0] * 16, abs=1e-5)
    env.close()


def test_worlds_that_would_be_left_out_are_refused_with_the_nearest_counts():
    with pytest.raises(PresetError) as refused:
        load("go2_rough_gru", ["env.num_envs=6", "trainer.num_mini_batches=4"])
    assert (
        "trainer.num_mini_batches = 4: 6 worlds (env.num_envs) do not divide by 4, and a recurrent "
        "network learns from whole worlds; nearest: 3 or 6"
    ) in refused.value.messages[0]


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ('trainer.actor.rnn_type="gruu"', "did you mean gru?"),
        ("trainer.actor.rnn_hiden_dim=8", "did you mean trainer.actor.rnn_hidden_dim?"),
        ("trainer.actor.rnn_num_layers=0", "must be at least 1"),
        ("trainer.actor.init_std=0.001", None),
        ("trainer.actor.std_range=[0.1, 0.05]", "std_range [0.1, 0.05] must rise"),
        ("trainer.actor.std_range=[0.1, 0.5]", "init_std 1 lies outside std_range [0.1, 0.5]"),
        ("trainer.actor.min_std=0.1", "did you mean trainer.actor.std_range?"),
        ('trainer.optimizer="adamax"', "did you mean adam"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_is_allowed(setting, sentence):
    if sentence is None:
        load("go2_rough_gru", [setting])
        return
    with pytest.raises(PresetError) as refused:
        load("go2_rough_gru", [setting])
    assert sentence in refused.value.messages[0]
