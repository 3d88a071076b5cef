"""Every observation term against the same formula in float64 numpy, and the noise over it."""

import numpy as np
import pytest
import torch

from sim.catalog import names
from sim.env import make_env
from sim.terms import observations
from tests.sim.builders import preset_config, preset_env
from tests.sim.random_world import random_env

JOINTS = torch.tensor([0, 3])

CASES = {
    "base_pos_z": ({}, lambda x: (x.root_pos_w - x.env_origins)[:, 2:]),
    "base_lin_vel": ({}, lambda x: x.root_lin_vel_b),
    "base_ang_vel": ({}, lambda x: x.root_ang_vel_b),
    "projected_gravity": ({}, lambda x: x.projected_gravity_b),
    "generated_commands": ({}, lambda x: x.command),
    "velocity_commands": ({}, lambda x: x.command),
    "joint_pos_rel": (
        {"joints": JOINTS},
        lambda x: (x.joint_pos - x.default_joint_pos)[:, [0, 3]],
    ),
    "joint_vel_rel": ({}, lambda x: x.joint_vel),
    "joint_effort": ({}, lambda x: x.applied_torque),
    "feet_contact": ({"bodies": slice(1, 4)}, lambda x: 1.0 * (x.contact_ticks[:, 1:4] > 0)),
    "last_action": ({}, lambda x: x.action),
}


def test_every_observation_term_is_tested():
    elsewhere = {"remaining_time", "height_scan", "body_mass_rel"}
    assert set(names("observations")) <= {*CASES, *elsewhere}


@pytest.mark.parametrize("name", CASES)
def test_it_equals_the_formula(name):
    params, formula = CASES[name]
    env = random_env(3)
    value = getattr(observations, name)(env, **params)
    expected = formula(env.exact)
    assert value.shape == expected.shape
    assert value.dtype == torch.float32
    np.testing.assert_allclose(value.numpy(), expected, rtol=1e-6, atol=1e-6)


def test_a_heavier_body_is_told_by_its_share():
    event = {"term": "randomize_rigid_body_mass", "mode": "startup", "bodies": "base"}
    config = preset_config(
        observations={"policy": {"body_mass_rel": {"bodies": ["base", "FL_hip"]}}},
        events={"mass": {**event, "scale_range": (1.25, 1.25)}},
    )
    env = make_env(config, "cpu", 0)
    seen = env.observe()["policy"]
    assert seen.dtype == torch.float32
    expected = torch.tensor([0.25, 0.0]).expand(env.num_envs, 2)
    torch.testing.assert_close(seen, expected, atol=1e-6, rtol=0)
    env.close()


def test_mass_that_does_not_differ_between_worlds_is_told_to_each():
    config = preset_config(
        observations={"policy": {"body_mass_rel": {"bodies": "base"}}}, events={}
    )
    env = make_env(config, "cpu", 0)
    assert env.observe()["policy"].tolist() == [[0.0]] * env.num_envs
    env.close()


def test_remaining_time_runs_from_one_to_zero():
    env = random_env(0)
    env.episode_length = torch.tensor([0, 250, 1000])
    assert observations.remaining_time(env).tolist() == [[1.0], [0.75], [0.0]]


@pytest.fixture(scope="module")
def walker():
    env = preset_env(num_envs=64)
    yield env
    env.close()


NOISE = [0.1] * 3 + [0.2] * 3 + [0.05] * 3 + [0.0] * 3 + [0.01] * 12 + [1.5] * 12 + [0.0] * 12


def test_the_go2_observes_48_numbers_in_isaac_labs_order(walker):
    assert walker.observation_terms == {
        "policy": (
            ("base_lin_vel", 3),
            ("base_ang_vel", 3),
            ("projected_gravity", 3),
            ("velocity_commands", 3),
            ("joint_pos_rel", 12),
            ("joint_vel_rel", 12),
            ("last_action", 12),
        )
    }
    assert walker.observe()["policy"].shape == (64, 48)


def test_noise_is_redrawn_within_its_bounds_and_fills_them(walker):
    clean = torch.cat(
        [getattr(observations, name)(walker) for name, _ in walker.observation_terms["policy"]],
        dim=1,
    )
    bound = torch.tensor(NOISE)
    rows = [walker.observe()["policy"] for _ in range(40)]
    noise = torch.stack(rows) - clean
    assert (noise.abs() <= bound + 1e-6).all()
    quiet = bound == 0
    assert (noise[:, :, quiet] == 0).all()
    share = noise[:, :, ~quiet] / bound[~quiet]
    assert share.amax() > 0.99
    assert share.amin() < -0.99
    # uniform on [-1, 1]: mean 0, variance 1/3, over 2,560 draws a column
    assert share.mean(dim=(0, 1)).abs().amax() < 0.06
    assert (share.var(dim=(0, 1)) - 1 / 3).abs().amax() < 0.03
    assert rows[0].data_ptr() != rows[1].data_ptr()


def test_clip_follows_noise_and_scale_is_last():
    entry = {"term": "base_pos_z", "noise": (5.0, 5.0), "clip": (-2.0, 2.0), "scale": 3.0}
    config = preset_config(observations={"policy": {"a": entry, "last_action": {}}})
    env = make_env(config, "cpu", 0)
    assert env.observe()["policy"][0].tolist() == [6.0] + [0.0] * 12
    env.close()


def test_the_action_is_seen_as_the_policy_drew_it(walker):
    actions = torch.full((64, 12), -3.5)
    walker.step(actions)
    torch.testing.assert_close(walker.observe()["policy"][:, 36:], actions, rtol=0, atol=0)
