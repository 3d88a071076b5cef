"""How actions become targets."""

import pytest
import torch

from sim.env import make_env
from tests.sim.builders import preset_config, preset_env


def test_position_targets_are_the_default_pose_plus_the_scaled_action():
    env = preset_env()
    assert env.action_names == env.scene.robot.joint_names
    assert env.num_actions == 12
    actions = torch.randn(4, 12, generator=torch.Generator().manual_seed(0))
    env.step(actions)
    target = env.actions.terms["joint_pos"].target
    torch.testing.assert_close(target, env.scene.robot.default_joint_pos + 0.25 * actions)
    env.close()


def test_two_terms_share_the_columns_of_the_action_in_order():
    env = make_env(
        preset_config(
            actions={
                "calves": {"term": "joint_position", "joints": ".*_calf_joint", "scale": 0.5},
                "rest": {
                    "term": "joint_position",
                    "joints": [".*_hip_joint", ".*_thigh_joint"],
                    "use_default_offset": False,
                },
            }
        ),
        "cpu",
        0,
    )
    names = env.scene.robot.joint_names
    assert env.action_names == (*names[8:], *names[:8])
    env.step(torch.ones(4, 12))
    default = env.scene.robot.default_joint_pos[:, 8:]
    torch.testing.assert_close(env.actions.terms["calves"].target, default + 0.5)
    torch.testing.assert_close(env.actions.terms["rest"].target, torch.ones(4, 8))
    env.close()


def test_a_cart_is_pushed_with_100_newtons_a_unit():
    env = preset_env("cartpole")
    env.step(torch.full((4, 1), -0.5))
    torch.testing.assert_close(
        env.scene.robot.applied_torque, torch.tensor([[-50.0, 0.0]]).expand(4, 2)
    )
    env.close()


def test_a_joint_without_a_motor_cannot_be_driven():
    config = preset_config("cartpole", actions={"a": {"term": "joint_effort"}})
    with pytest.raises(ValueError, match=r"cart_to_pole of the cartpole .* no motor"):
        make_env(config, "cpu", 0)
