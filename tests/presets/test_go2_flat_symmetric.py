"""The Go2 that learns left and right from each other."""

import pytest
import torch

from presets.build import Device, build_env
from presets.loader import load
from presets.problems import PresetError
from trainer.loop import Trainer


@pytest.fixture(scope="module")
def trainer():
    small = ["env.num_envs=8", "trainer.seed=3", "trainer.num_steps_per_env=6"]
    preset = load("go2_flat_symmetric", small).preset
    trainer = Trainer(build_env(preset, Device("cpu")), preset.trainer)
    yield trainer
    trainer.env.close()


def test_it_learns_and_its_policy_becomes_more_like_its_mirror_image(trainer):
    losses = []
    for _ in range(6):
        trainer.iterate()
        losses.append(trainer.metrics()["Loss/symmetry"])
    assert 0 < losses[-1] < losses[0]


def test_a_mirror_image_has_the_ratio_of_no_sample_before_the_first_step(trainer):
    trainer.iterate()
    first = trainer.results[0]
    assert len(first.ratio) == trainer.rollout.num_samples // trainer.config.num_mini_batches
    torch.testing.assert_close(first.ratio, torch.ones_like(first.ratio), atol=1e-5, rtol=0)


def test_it_is_go2_flat_in_all_else():
    symmetric, flat = (load(name).preset for name in ("go2_flat_symmetric", "go2_flat"))
    assert symmetric.env == flat.env
    assert symmetric.trainer.model_copy(update={"symmetry": None}) == flat.trainer


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        ("cartpole", [], "--set trainer.symmetry: the robot cartpole has no left and right"),
        ("cartpole_direct", [], "--set trainer.symmetry: the task cartpole_direct has no left"),
        (
            "go2_flat",
            ["env.observations.policy.joint_pos_rel.joints=FL_.*"],
            "policy.joint_pos_rel: FL_hip_joint is among its parts, its twin FR_hip_joint is not",
        ),
    ],
)
def test_what_has_no_mirror_image_is_refused_at_load(name, settings, told):
    with pytest.raises(PresetError) as refused:
        load(name, ["trainer.symmetry.use_mirror_loss=true", *settings])
    assert told in refused.value.messages[0]
