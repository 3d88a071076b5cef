"""The critic of this preset sees exactly what the policy's noise hides."""

import pytest
import torch

from presets.build import Device, build_env
from presets.loader import load
from presets.problems import PresetError
from sim.env import make_env
from trainer.loop import Trainer

SMALL = [
    "env.num_envs=8",
    "trainer.seed=1",
    "trainer.num_steps_per_env=4",
    "trainer.num_mini_batches=2",
    "trainer.num_learning_epochs=1",
    "env.terrain.num_rows=3",
    "env.terrain.num_cols=6",
    "trainer.actor.hidden_dims=[8]",
    "trainer.critic.hidden_dims=[8]",
]


def test_it_is_go2_rough_but_for_the_critic():
    rough, ours = (load(name).preset for name in ("go2_rough", "go2_rough_asymmetric"))
    assert ours.env.observations["policy"] == rough.env.observations["policy"]
    privileged = ours.env.observations["privileged"]
    assert set(rough.env.observations["policy"]) < set(privileged)
    assert not any(term.noise for term in privileged.values())
    scan = rough.env.observations["policy"]["height_scan"]
    assert privileged["height_scan"] == scan.model_copy(update={"noise": None})
    assert ours.trainer.obs_groups.critic == ("privileged",)


def test_the_critic_sees_the_policys_observations_without_their_noise():
    preset = load("go2_rough_asymmetric", SMALL).preset
    env = build_env(preset, Device("cpu"))
    observed = env.observe()
    columns = {}
    for group, terms in env.observation_terms.items():
        widths = dict(terms)
        parts = observed[group].split(list(widths.values()), dim=1)
        columns[group] = dict(zip(widths, parts, strict=True))
    env.close()
    quiet = preset.env.model_copy(
        update={
            "observations": {
                "policy": {
                    name: term.model_copy(update={"noise": None})
                    for name, term in preset.env.observations["policy"].items()
                }
            }
        }
    )
    twin = make_env(quiet, "cpu", 1)
    twin_row = twin.observe()["policy"]
    exact = torch.cat([columns["privileged"][name] for name in columns["policy"]], dim=1)
    torch.testing.assert_close(exact, twin_row)
    assert not torch.allclose(observed["policy"], exact, atol=1e-2)
    twin.close()


def test_one_iteration_trains_both_networks_and_is_reproducible():
    states = []
    for _ in range(2):
        preset = load("go2_rough_asymmetric", SMALL).preset
        env = build_env(preset, Device("cpu"))
        trainer = Trainer(env, preset.trainer)
        widths = {group: sum(w for _, w in terms) for group, terms in env.observation_terms.items()}
        assert trainer.actor.mlp[0].in_features == widths["policy"] == 235
        assert trainer.critic.mlp[0].in_features == widths["privileged"] == 252
        before = trainer.critic.mlp[0].weight.clone()
        trainer.iterate()
        assert not torch.equal(before, trainer.critic.mlp[0].weight)
        states.append({**trainer.actor.state_dict(), **trainer.critic.state_dict()})
        env.close()
    for name, tensor in states[0].items():
        assert torch.equal(tensor, states[1][name]), name


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            'trainer.obs_groups.critic=["policy", "privlieged"]',
            'trainer.obs_groups.critic=["policy", "privlieged"]: the env has no observation group '
            '"privlieged"; did you mean privileged?',
        ),
        ('trainer.obs_groups.actor=["camera"]', "allowed: policy, privileged"),
        ("trainer.obs_groups.critic=[]", "must have at least 1 entry"),
        ('trainer.obs_groups.critc=["policy"]', "did you mean trainer.obs_groups.critic?"),
        ('trainer.obs_groups.critic="policy"', "must be a list"),
    ],
)
def test_a_wrong_set_is_refused_with_its_key_and_the_nearest_group(setting, sentence):
    with pytest.raises(PresetError) as refused:
        load("go2_rough_asymmetric", [setting])
    assert sentence in refused.value.messages[0]
