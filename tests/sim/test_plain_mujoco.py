"""One policy in our worlds and in a plain loop around `mj_step`, each by its own observations."""

import math

import mujoco
import numpy as np
import pytest
import torch
from torch import nn

from sim.controller import describe_controller
from sim.robots import ROBOTS
from tests.sim.builders import preset_config, preset_env

STEPS = 100
HEIGHT_TOLERANCE = 1e-6
"""m"""
JOINT_TOLERANCE = 1e-5
"""rad"""


def quiet_go2():
    """A Go2 on flat ground as its file describes it; nothing is drawn but its first state."""
    config = preset_config("go2_flat").model_dump()
    terms = config["observations"]["policy"].items()
    policy = {name: {**term, "noise": None} for name, term in terms}
    events = {name: event for name, event in config["events"].items() if event["mode"] == "reset"}
    return preset_env("go2_flat", num_envs=1, observations={"policy": policy}, events=events)


def small_policy():
    """Moves every joint by some tenths of its action scale, as the observation goes."""
    torch.manual_seed(4)
    policy = nn.Sequential(nn.Linear(48, 32), nn.ELU(), nn.Linear(32, 12), nn.Tanh())
    with torch.no_grad():
        policy[2].weight.mul_(0.3)
        policy[2].bias.zero_()
    return policy


class PlainLoop:
    """What a controller in another program does, by nothing but the metadata of an export."""

    def __init__(self, env, policy):
        self.told = describe_controller(env, ["policy"])
        self.model = env.scene.physics.model
        self.data = mujoco.MjData(self.model)
        self.policy = policy
        self.action = np.zeros(12)
        names = self.told["joint_names"]
        joints = [self.model.joint(name) for name in names]
        self.qpos = [int(joint.qposadr[0]) for joint in joints]
        self.qvel = [int(joint.dofadr[0]) for joint in joints]
        motors = [self.model.actuator(i) for i in range(self.model.nu)]
        driven = [self.model.joint(int(motor.trnid[0])).name for motor in motors]
        self.ctrl = [driven.index(name) for name in names]
        self.base = self.model.body(ROBOTS["go2"].base)
        for name in ("action_offset", "action_scale", "stiffness", "damping", "default_joint_pos"):
            setattr(self, name, np.array(self.told[name]))

    def begin(self, qpos, qvel):
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = qpos, qvel
        self.action[:] = 0.0

    def observe(self, command):
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, self.data.qpos[3:7])
        rotation = rotation.reshape(3, 3)
        spin = self.data.qvel[3:6]
        measured = {
            "base_lin_vel": rotation.T @ self.data.qvel[:3] + np.cross(spin, self.base.ipos),
            "base_ang_vel": spin,
            "projected_gravity": rotation.T @ [0.0, 0.0, -1.0],
            "velocity_commands": command,
            "joint_pos_rel": self.data.qpos[self.qpos] - self.default_joint_pos,
            "joint_vel_rel": self.data.qvel[self.qvel],
            "last_action": self.action,
        }
        return np.concatenate(
            [measured[part["name"]] * part["scale"] for part in self.told["observations"]]
        )

    def step(self, command):
        with torch.no_grad():
            obs = torch.tensor(self.observe(command), dtype=torch.float32)
            self.action = self.policy(obs).double().numpy()
        target = self.action_offset + self.action_scale * self.action
        motor = ROBOTS["go2"].actuator
        for _ in range(self.told["decimation"]):
            error = target - self.data.qpos[self.qpos]
            speed = self.data.qvel[self.qvel]
            line = motor.saturation_effort * (1 - speed / motor.velocity_limit)
            other = -motor.saturation_effort * (1 + speed / motor.velocity_limit)
            torque = self.stiffness * error - self.damping * speed
            limit = np.array(self.told["effort_limit"])
            torque = np.clip(torque, np.maximum(other, -limit), np.minimum(line, limit))
            self.data.ctrl[self.ctrl] = torque
            mujoco.mj_step(self.model, self.data)


def drift(env, plain, policy):
    """Largest differences over 100 steps: of the base's height, and of each joint by its name."""
    plain.begin(env.scene.physics.qpos[0].numpy(), env.scene.physics.qvel[0].numpy())
    heights, joints, moved = [], [], []
    for _ in range(STEPS):
        command = env.commands.value("base_velocity")[0].double().numpy()
        plain.step(command)
        with torch.no_grad():
            feedback = env.step(policy(env.observe()["policy"]))
        assert not (feedback.terminated | feedback.time_outs).any(), "it fell: nothing to compare"
        ours = env.scene.physics.qpos[0].numpy()
        heights.append(abs(ours[2] - plain.data.qpos[2]))
        moved.append(ours[plain.qpos])
        joints.append(np.abs(ours[plain.qpos] - plain.data.qpos[plain.qpos]))
    assert np.ptp(moved, axis=0).min() > 0.01, "a joint stood still"
    worst = np.max(joints, axis=0)
    return max(heights), dict(zip(plain.told["joint_names"], worst.tolist(), strict=True))


def test_100_control_steps_are_those_of_plain_mujoco_and_again_after_a_reset():
    env, policy = quiet_go2(), small_policy()
    plain = PlainLoop(env, policy)
    runs = [drift(env, plain, policy)]
    env.episode_length.fill_(env.max_episode_length - 1)
    assert env.step(torch.zeros(1, 12)).time_outs.all()  # and resets
    runs.append(drift(env, plain, policy))
    env.close()
    for run, (height, joints) in zip(("first", "after a reset"), runs, strict=True):
        joint = max(joints, key=joints.get)
        told = f"{run}: height {height:.1e} m, worst joint {joint} {joints[joint]:.1e} rad"
        assert math.isfinite(height), told
        assert height == pytest.approx(0.0, abs=HEIGHT_TOLERANCE), told
        assert joints[joint] == pytest.approx(0.0, abs=JOINT_TOLERANCE), told
