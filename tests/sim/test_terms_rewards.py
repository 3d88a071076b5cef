"""Every reward term against the same formula in float64 numpy, on random states."""

import math

import mujoco
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sim.catalog import names
from sim.terms import rewards
from tests.sim.builders import preset_env
from tests.sim.random_world import N, random_env

JOINTS = torch.tensor([0, 3])
FEET = slice(1, 4)


def beyond(x):
    limits = x.soft_joint_pos_limits
    return np.maximum(limits[:, 0] - x.joint_pos, 0) + np.maximum(x.joint_pos - limits[:, 1], 0)


def deviation(x):
    return np.abs(x.joint_pos - x.default_joint_pos).sum(1)


def planar_speed(x):
    return np.sqrt((x.command[:, :2] ** 2).sum(1))


def largest_force(x):
    return np.sqrt((x.forces**2).sum(-1)).max(1)


def wrapped_square(x):
    difference = x.joint_pos - 0.5
    return np.arctan2(np.sin(difference), np.cos(difference)) ** 2


def distance(x):
    wanted = x.root_pos_w.copy()
    for world, pose in enumerate(x.pose):
        turned = np.zeros(3)
        mujoco.mju_rotVecQuat(turned, pose[:3], x.root_quat_w[world])
        wanted[world] += turned
    return np.sqrt(((x.body_pos_w[:, 2] - wanted) ** 2).sum(1))


def angle(x):
    """Twice the arc cosine of the quaternions' product: q and -q are one orientation."""
    angles = []
    for world, pose in enumerate(x.pose):
        wanted = np.zeros(4)
        mujoco.mju_mulQuat(wanted, x.root_quat_w[world], pose[3:])
        angles.append(2 * np.arccos(min(1.0, abs(wanted @ x.body_quat_w[world, 2]))))
    return np.array(angles)


CASES = {
    "is_alive": ({}, lambda x: 1.0 - x.terminated),
    "is_terminated": ({}, lambda x: 1.0 * x.terminated),
    "track_lin_vel_xy_exp": (
        {"std": 0.5},
        lambda x: np.exp(-((x.command - x.root_lin_vel_b)[:, :2] ** 2).sum(1) / 0.25),
    ),
    "track_ang_vel_z_exp": (
        {"std": 0.5},
        lambda x: np.exp(-((x.command[:, 2] - x.root_ang_vel_b[:, 2]) ** 2) / 0.25),
    ),
    "lin_vel_z_l2": ({}, lambda x: x.root_lin_vel_b[:, 2] ** 2),
    "ang_vel_xy_l2": ({}, lambda x: (x.root_ang_vel_b[:, :2] ** 2).sum(1)),
    "flat_orientation_l2": ({}, lambda x: (x.projected_gravity_b[:, :2] ** 2).sum(1)),
    "base_height_l2": (
        {"target_height": 0.3},
        lambda x: (x.root_pos_w[:, 2] - x.env_origins[:, 2] - 0.3) ** 2,
    ),
    "dof_torques_l2": ({}, lambda x: (x.applied_torque**2).sum(1)),
    "joint_vel_l2": ({"joints": JOINTS}, lambda x: (x.joint_vel[:, [0, 3]] ** 2).sum(1)),
    "dof_vel_l1": ({"joints": JOINTS}, lambda x: np.abs(x.joint_vel[:, [0, 3]]).sum(1)),
    "dof_acc_l2": ({}, lambda x: (x.joint_acc**2).sum(1)),
    "dof_pos_limits": ({}, lambda x: beyond(x).sum(1)),
    "joint_pos_target_l2": ({"target": 0.5}, lambda x: wrapped_square(x).sum(1)),
    "joint_deviation_l1": ({}, deviation),
    "stand_still": (
        {"threshold": 0.2},
        lambda x: deviation(x) * (planar_speed(x) <= 0.2),
    ),
    "position_command_error": ({"body": 2}, lambda x: distance(x)),
    "position_command_error_tanh": (
        {"body": 2, "std": 0.5},
        lambda x: 1 - np.tanh(distance(x) / 0.5),
    ),
    "orientation_command_error": ({"body": 2}, lambda x: angle(x)),
    "action_l2": ({}, lambda x: (x.action**2).sum(1)),
    "action_rate_l2": ({}, lambda x: ((x.action - x.previous_action) ** 2).sum(1)),
    "feet_air_time": (
        {"bodies": FEET, "threshold": 0.5},
        lambda x: (
            (
                ((x.last_air_time - 0.5) * ((x.contact_ticks > 0) & (x.contact_ticks <= 4)))[:, 1:4]
            ).sum(1)
            * (planar_speed(x) > 0.1)
        ),
    ),
    "undesired_contacts": (
        {"bodies": FEET, "threshold": 2.0},
        lambda x: (largest_force(x)[:, 1:4] > 2.0).sum(1),
    ),
    "contact_forces": (
        {"bodies": FEET, "threshold": 2.0},
        lambda x: np.maximum(largest_force(x)[:, 1:4] - 2.0, 0).sum(1),
    ),
}


def test_every_reward_term_has_a_case():
    assert set(CASES) == set(names("rewards"))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(5))
def test_it_equals_the_formula(name, seed):
    params, formula = CASES[name]
    env = random_env(seed)
    value = getattr(rewards, name)(env, **params)
    assert value.shape == (N,)
    assert value.dtype == torch.float32
    np.testing.assert_allclose(value.numpy(), formula(env.exact), rtol=2e-5, atol=2e-6)


@given(st.floats(-50, 50), st.floats(0.1, 2.0))
def test_tracking_is_one_at_the_command_and_at_most_one(velocity, std):
    env = random_env(0)
    env.scene.robot.root_lin_vel_b[:, :2] = env.commands.value("")[:, :2]
    assert rewards.track_lin_vel_xy_exp(env, std).tolist() == [1.0] * N
    env.scene.robot.root_lin_vel_b[:, 0] = velocity
    assert (rewards.track_lin_vel_xy_exp(env, std) <= 1.0).all()


@given(st.integers(-20, 20))
def test_a_joint_target_does_not_see_whole_turns(turns):
    env = random_env(0)
    before = rewards.joint_pos_target_l2(env, target=0.0)
    env.scene.robot.joint_pos += turns * 2 * math.pi
    torch.testing.assert_close(
        rewards.joint_pos_target_l2(env, target=0.0), before, rtol=0, atol=1e-3
    )


@pytest.fixture(scope="module")
def walker():
    env = preset_env(num_envs=1)
    yield env
    env.close()


def air_time_rewards(env, steps, foot, command):
    """The reward of each env step in which the foot is on the ground or not, as told."""
    contacts = env.scene.contacts
    contacts.reset(env.all_ids)
    env.commands.terms["base_velocity"].value[:] = torch.tensor(command)
    feet = slice(contacts.body_names.index(foot), contacts.body_names.index(foot) + 1)
    column = torch.zeros(1, len(contacts.body_names), dtype=torch.bool)
    values = []
    for ticks in steps:
        for on_ground in ticks:
            column[:, feet] = on_ground
            contacts.count(column)
        values.append(rewards.feet_air_time(env, bodies=feet, threshold=0.5).item())
    return values


def test_air_time_pays_once_at_touch_down(walker):
    ground, air = [True] * 4, [False] * 4
    steps = [ground] * 2 + [air] * 30 + [ground] * 3
    values = air_time_rewards(walker, steps, "FL_foot", [1.0, 0.0, 0.0])
    assert values[32] == pytest.approx(0.10, abs=1e-6)
    assert [value for i, value in enumerate(values) if i != 32] == [0.0] * 34


def test_air_time_pays_nothing_for_standing(walker):
    ground, air = [True] * 4, [False] * 4
    steps = [ground] * 2 + [air] * 30 + [ground] * 3
    assert not any(air_time_rewards(walker, steps, "FL_foot", [0.1, 0.0, 1.0]))


@pytest.mark.parametrize("first_tick", range(4))
def test_no_touch_down_is_missed_however_long_the_episode(walker, first_tick):
    touch_down = [False] * first_tick + [True] * (4 - first_tick)
    steps = [[False] * 4, touch_down] * 2000
    values = air_time_rewards(walker, steps, "FR_foot", [1.0, 0.0, 0.0])
    assert sum(value != 0.0 for value in values) == 2000
