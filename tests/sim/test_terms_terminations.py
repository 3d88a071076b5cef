"""Every termination term against hand values or float64 numpy."""

import math

import numpy as np
import pytest
import torch

from sim.catalog import names
from sim.terms import rewards, terminations
from tests.sim.builders import preset_env
from tests.sim.random_world import N, random_env

CASES = {
    "time_out": ({}, None),
    "illegal_contact": (
        {"bodies": slice(1, 3), "threshold": 2.5},
        lambda x: (np.sqrt((x.forces**2).sum(-1))[:, :, 1:3] > 2.5).any((1, 2)),
    ),
    "bad_orientation": (
        {"limit_angle": 2.0},
        lambda x: -x.projected_gravity_b[:, 2] < math.cos(2.0),
    ),
    "root_height_below_minimum": (
        {"minimum_height": 0.2},
        lambda x: x.root_pos_w[:, 2] - x.env_origins[:, 2] < 0.2,
    ),
    "joint_pos_out_of_limit": (
        {"joints": slice(0, 1)},
        lambda x: (
            (x.joint_pos[:, 0] < x.soft_joint_pos_limits[0, 0])
            | (x.joint_pos[:, 0] > x.soft_joint_pos_limits[0, 1])
        ),
    ),
    "joint_pos_out_of_manual_limit": (
        {"bounds": (-3.0, 3.0)},
        lambda x: (np.abs(x.joint_pos) > 3.0).any(1),
    ),
}


def test_every_termination_term_has_a_case():
    assert set(CASES) == set(names("terminations"))


@pytest.mark.parametrize("name", [name for name in CASES if name != "time_out"])
def test_it_equals_the_formula(name):
    params, formula = CASES[name]
    values = [getattr(terminations, name)(random_env(seed), **params) for seed in range(8)]
    expected = [formula(random_env(seed).exact) for seed in range(8)]
    for value, right in zip(values, expected, strict=True):
        assert value.shape == (N,)
        assert value.dtype == torch.bool
        assert value.tolist() == right.tolist()
    assert 0 < np.stack(expected).mean() < 1


def test_the_time_limit_is_reached_at_its_last_step():
    env = random_env(0)
    env.episode_length = torch.tensor([0, 999, 1000, 1001])
    assert terminations.time_out(env).tolist() == [False, False, True, True]


def test_tilt_is_measured_from_upright():
    env = random_env(0)
    tilt = torch.tensor([0.0, 0.99, 1.01, math.pi])
    env.scene.robot.projected_gravity_b = torch.stack(
        (torch.sin(tilt), torch.zeros(4), -torch.cos(tilt)), dim=1
    )
    assert terminations.bad_orientation(env, 1.0).tolist() == [False, False, True, True]


@pytest.mark.parametrize("tick", range(4))
def test_a_contact_within_the_step_is_seen_at_its_end(tick):
    env = preset_env(num_envs=2)
    contacts = env.scene.contacts
    column = contacts.body_names.index("base")
    env.scene.physics.sensordata.zero_()
    for now in range(4):
        env.scene.physics.sensordata[1, 3 * column + 2] = -20.0 if now == tick else 0.0
        contacts.record()
    bodies = slice(column, column + 1)
    assert terminations.illegal_contact(env, bodies, 1.0).tolist() == [False, True]
    assert rewards.undesired_contacts(env, bodies, 1.0).tolist() == [0.0, 1.0]
    env.close()
