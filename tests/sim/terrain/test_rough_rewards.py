"""The rewards and endings of the rough task, term by term, against the engine's state in float64.

Nothing of the tested formulas is used: base velocities, motors, contacts and times in the air are
worked out here from the positions, velocities and forces of every physics tick.
"""

import math

import numpy as np
import pytest
import torch

from tests.sim.terrain.test_rough_env import rough_env

DT, DECIMATION = 0.005, 4
STEP = DT * DECIMATION

WEIGHTS = {
    "track_lin_vel_xy_exp": 1.5,
    "track_ang_vel_z_exp": 0.75,
    "lin_vel_z_l2": -2.0,
    "ang_vel_xy_l2": -0.05,
    "dof_torques_l2": -2e-4,
    "dof_acc_l2": -2.5e-7,
    "action_rate_l2": -0.01,
    "feet_air_time": 0.01,
    "dof_pos_limits": 0.0,
}


def turned_back(quat, vector):
    """A world vector in the frame of a unit quaternion wxyz, by the sandwich product."""
    w, x, y, z = quat
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return rotation.T @ vector


def motor_torque(target, position, velocity):
    """A motor of 25 N m/rad and 0.5 N m s/rad, 23.5 N m, without torque at 30 rad/s."""
    wanted = 25.0 * (target - position) - 0.5 * velocity
    speed = min(max(velocity, -60.0), 60.0)
    highest = min(23.5 * (1 - speed / 30.0), 23.5)
    lowest = max(23.5 * (-1 - speed / 30.0), -23.5)
    return min(max(wanted, lowest), highest)


class Witness:
    """Looks over an env's shoulder: notes every tick, and what the rewards of a step must be."""

    def __init__(self, env):
        self.env, self.model = env, env.scene.physics.model
        n = env.num_envs
        joints = [self.model.joint(name) for name in env.scene.robot.joint_names]
        self.q = [int(joint.qposadr[0]) for joint in joints]
        self.v = [int(joint.dofadr[0]) for joint in joints]
        self.default = self.model.key_qpos[0, self.q]
        names = env.scene.contacts.body_names
        first = int(self.model.sensor(names[0]).adr[0])
        self.force_columns = {
            name: slice(first + 3 * k, first + 3 * k + 3) for k, name in enumerate(names)
        }
        self.feet = [name for name in names if name.endswith("_foot")]
        self.air = np.zeros((n, 4), int)
        self.ground = np.zeros((n, 4), int)
        self.last_air = np.zeros((n, 4), int)
        self.action_before = np.zeros((n, 12))
        self.base_forces = []
        self.tick, env.scene.physics.tick = env.scene.physics.tick, self._tick
        self.rewards, env._get_rewards = env._get_rewards, self._get_rewards

    def _tick(self, last):
        physics = self.env.scene.physics
        self.before = physics.qpos.numpy().copy(), physics.qvel.numpy().copy()
        self.tick(last)
        forces = physics.sensordata.numpy()
        for k, foot in enumerate(self.feet):
            held = np.linalg.norm(forces[:, self.force_columns[foot]], axis=1) > 1.0
            for world, touches in enumerate(held):
                if touches:
                    if self.air[world, k]:
                        self.last_air[world, k] = self.air[world, k]
                    self.ground[world, k] += 1
                    self.air[world, k] = 0
                else:
                    self.air[world, k] += 1
                    self.ground[world, k] = 0
        self.base_forces.append(np.linalg.norm(forces[:, self.force_columns["base"]], axis=1))

    def _get_rewards(self):
        physics = self.env.scene.physics
        qpos, qvel = physics.qpos.numpy().copy(), physics.qvel.numpy().copy()
        command = self.env.commands.value("base_velocity").double().numpy().copy()
        centre = physics.present_field("body_ipos")[:, self.model.body("base").id].numpy()
        self.expected = [
            self._terms(w, qpos[w], qvel[w], command[w], centre[w])
            for w in range(self.env.num_envs)
        ]
        self.fell = np.max(self.base_forces[-DECIMATION:], axis=0) > 1.0
        return self.rewards()

    def _terms(self, world, qpos, qvel, command, centre):
        linear = turned_back(qpos[3:7], qvel[:3]) + np.cross(qvel[3:6], centre)
        turning = qvel[3:6]
        qpos_before, qvel_before = self.before[0][world], self.before[1][world]
        target = self.default + 0.25 * self.action[world]
        torques = [
            motor_torque(target[j], qpos_before[self.q[j]], qvel_before[self.v[j]])
            for j in range(12)
        ]
        acceleration = (qvel[self.v] - qvel_before[self.v]) / DT
        landed = [
            self.last_air[world, k] * DT - 0.5
            for k in range(4)
            if 0 < self.ground[world, k] <= DECIMATION and self.last_air[world, k]
        ]
        moving = math.hypot(command[0], command[1]) > 0.1
        return {
            "track_lin_vel_xy_exp": math.exp(-np.sum((command[:2] - linear[:2]) ** 2) / 0.25),
            "track_ang_vel_z_exp": math.exp(-((command[2] - turning[2]) ** 2) / 0.25),
            "lin_vel_z_l2": linear[2] ** 2,
            "ang_vel_xy_l2": turning[0] ** 2 + turning[1] ** 2,
            "dof_torques_l2": np.sum(np.square(torques)),
            "dof_acc_l2": np.sum(acceleration**2),
            "action_rate_l2": np.sum((self.action[world] - self.action_before[world]) ** 2),
            "feet_air_time": sum(landed) * moving,
            "dof_pos_limits": 0.0,
        }

    def step(self, action):
        """Step the env; forget what the finished worlds' episodes left."""
        self.action = action.double().numpy()
        feedback = self.env.step(action)
        self.action_before = self.action.copy()
        over = (feedback.terminated | feedback.time_outs).numpy()
        for kept in (self.air, self.ground, self.last_air, self.action_before):
            kept[over] = 0
        return feedback


@pytest.fixture(scope="module")
def history():
    """An env, and of each of its steps what was expected, what it gave, and how it ended."""
    env = rough_env(12, seed=4, noise=True)
    draw = torch.Generator().manual_seed(5)
    env.episode_length[:3] = env.max_episode_length - 20
    witness, steps = Witness(env), []
    for k in range(70):
        # small moves for a while, then large ones, so that feet land and robots fall
        action = (0.5 if k < 30 else 1.5) * torch.randn(12, 12, generator=draw)
        age = env.episode_length.clone()
        feedback = witness.step(action)
        values = env.rewards.step_values.double().numpy().copy()
        steps.append((witness.expected, values, feedback, witness.fell.copy(), age + 1))
    yield env, steps
    env.close()


def test_the_weights_are_those_of_the_task(history):
    env, _ = history
    assert dict(env.reward_terms) == WEIGHTS


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_term_is_its_weight_times_its_formula_times_the_step(history, name):
    env, steps = history
    row = list(env.reward_terms).index(name)
    expected = np.array([[terms[name] for terms in step[0]] for step in steps])
    expected *= WEIGHTS[name] * STEP
    given = np.array([step[1][row] for step in steps])
    scale = np.abs(expected).max()
    np.testing.assert_allclose(given, expected, rtol=2e-4, atol=2e-5 * scale + 1e-12)
    if WEIGHTS[name]:
        assert (np.abs(expected) > 0).sum() >= 10, "the case hardly occurred"


def test_the_reward_is_the_sum_of_the_terms(history):
    for _, values, feedback, _, _ in history[1]:
        np.testing.assert_allclose(feedback.reward.numpy(), values.sum(0), rtol=1e-5, atol=1e-6)


def test_an_episode_ends_by_a_touch_of_the_base_or_after_its_time_and_never_by_both(history):
    env, steps = history
    falls = overs = 0
    for _, _, feedback, fell, age in steps:
        over = age.numpy() >= env.max_episode_length
        np.testing.assert_array_equal(feedback.terminated.numpy(), fell)
        np.testing.assert_array_equal(feedback.time_outs.numpy(), over & ~fell)
        falls, overs = falls + fell.sum(), overs + (over & ~fell).sum()
    assert falls > 0
    assert overs > 0
