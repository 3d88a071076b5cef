import pytest
import torch

from tests.sim.builders import preset_env
from trainer.pose import Posing, Steerable


def still(env):
    env.step(torch.zeros(env.num_envs, env.num_actions))


def test_envs_of_managers_can_be_steered_and_drawn():
    env = preset_env("go2_flat")
    assert isinstance(env, Steerable)
    assert isinstance(env, Posing)
    assert isinstance(preset_env("cartpole_direct"), Posing)


def test_a_steered_robot_follows_no_heading_and_does_not_stand():
    env = preset_env("go2_flat")
    command = env.commands.terms["base_velocity"]
    command.is_heading.fill_(True)
    command.is_standing.fill_(True)
    env.steer(1, (0.6, 0.0, -0.4))
    still(env)
    assert command.value[1].tolist() == pytest.approx([0.6, 0.0, -0.4])
    assert command.value[0].tolist() == [0.0, 0.0, 0.0]  # the others stand as they did


def test_held_commands_are_not_drawn_anew_within_an_episode():
    env = preset_env("go2_flat")
    command = env.commands.terms["base_velocity"]
    command.is_heading.zero_()
    command.time_left.fill_(0.03)  # one more step
    env.hold_commands()
    before = command.value.clone()
    for _ in range(5):
        still(env)
    assert torch.equal(command.value, before)
    env.redraw_commands(2)
    changed = (command.value != before).any(dim=1)
    assert changed.tolist() == [False, False, True, False]


def test_metrics_of_running_episodes_are_those_that_the_log_means():
    env = preset_env("go2_flat")
    for _ in range(5):
        still(env)
    running = env.episode_metrics()
    name = "base_velocity/error_vel_xy"
    assert running[name].shape == (4,)
    env.episode_length[1] = env.max_episode_length - 1
    log = env.step(torch.zeros(4, 12)).log
    assert float(log[f"Metrics/{name}"]) == pytest.approx(float(running[name][1]), rel=1e-6)


def test_a_target_pose_is_steered_by_its_position_alone():
    env = preset_env("franka_reach")
    turn = env.commands.value("ee_pose")[0, 3:].tolist()
    env.steer(0, (0.4, -0.1, 0.2))
    assert env.commands.value("ee_pose")[0].tolist() == pytest.approx([0.4, -0.1, 0.2, *turn])
