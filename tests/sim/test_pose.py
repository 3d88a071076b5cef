import dataclasses

import numpy as np
import pytest
import torch

from sim.pose import GROUND_REACH, GROUND_STEP, ground_about
from sim.terrain.generator import TerrainMap
from tests.sim.builders import preset_env
from trainer.pose import RobotPose, pose_of

SMALL_TERRAIN = {"num_rows": 2, "num_cols": 6, "border_width": 2.0}


def rough_env():
    from tests.sim.builders import preset_config

    terrain = preset_config("go2_rough").terrain.model_copy(update=SMALL_TERRAIN)
    return preset_env("go2_rough", terrain=terrain.model_dump())


@pytest.mark.parametrize("name", ["go2_flat", "franka_reach", "cartpole", "cartpole_direct"])
def test_every_robot_can_be_described_with_finite_numbers(name):
    env = preset_env(name)
    for world in range(env.num_envs):
        pose = pose_of(env, world)
        assert isinstance(pose, RobotPose)
        assert pose.world == world
        for field in dataclasses.fields(pose):
            value = getattr(pose, field.name)
            if isinstance(value, np.ndarray):
                assert np.isfinite(value).all(), field.name
        assert len(pose.lines)
        assert (pose.view[0] < pose.view[1]).all()


def test_a_pole_is_a_line_from_its_hinge_at_its_angle():
    env = preset_env("cartpole")
    ids = torch.arange(4)
    state = torch.tensor([[0.5, 0.3]]).repeat(4, 1)
    env.scene.robot.write_joint_state(ids, state, torch.zeros(4, 2))
    pose = pose_of(env, 1)
    # a capsule of 1 m with round ends of 0.02 m, hinged at its lower middle on a rail at 2 m
    tip = [0.5 + 1.02 * np.sin(0.3), 0.0, 2.0 + 1.02 * np.cos(0.3)]
    ends = pose.lines.reshape(-1, 3)
    assert np.abs(ends - tip).max(axis=1).min() < 1e-5
    assert pose.is_fixed
    assert pose.floor is None
    rail = pose.scenery.reshape(-1, 3)
    assert rail[:, 0].min() < -4.0
    assert rail[:, 0].max() > 4.0


def test_a_go2_has_a_body_a_head_and_four_feet_on_the_floor():
    env = preset_env("go2_flat")
    for _ in range(30):
        env.step(torch.zeros(4, 12))
    pose = pose_of(env, 0)
    # 12 edges of the body, the neck, and of every leg the hip, the thigh and the calf
    assert pose.lines.shape == (12 + 1 + 4 * 3, 2, 3)
    assert pose.balls.shape == (5, 4)
    assert pose.contact_names == ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
    assert pose.contacts.all()
    np.testing.assert_allclose(pose.contact_points[:, 2], 0.022, atol=0.01)  # a foot's radius
    assert pose.floor == 0.0
    assert pose.ground is None
    assert pose.touching == ()
    np.testing.assert_allclose(pose.position, env.scene.robot.root_pos_w[0].numpy())
    body = env.scene.robot.body_pos_w[0, env.scene.robot.body_ids("RR_foot")[0]].numpy()
    np.testing.assert_allclose(pose.contact_points[3], body, atol=1e-6)
    assert pose.seconds == pytest.approx(30 * 0.02)
    assert pose.limit == 20.0


def test_what_is_told_stands_beside_what_is_done():
    env = preset_env("go2_flat")
    env.steer(2, (0.5, -0.25, 0.75))
    pose = pose_of(env, 2)
    assert [entry.label for entry in pose.quantities] == ["forward", "left", "turn"]
    assert [entry.told for entry in pose.quantities] == [0.5, -0.25, 0.75]
    robot = env.scene.robot
    real = [*robot.root_lin_vel_b[2, :2].tolist(), float(robot.root_ang_vel_b[2, 2])]
    assert [entry.real for entry in pose.quantities] == pytest.approx(real)
    np.testing.assert_allclose(pose.told_velocity, [0.5, -0.25, 0.75])
    np.testing.assert_allclose(pose.velocity, real, rtol=1e-6)
    assert [(entry.low, entry.high) for entry in pose.quantities] == [(-1.0, 1.0)] * 3
    assert pose.target is None


def test_a_target_stands_where_the_arm_is_told_to_go():
    env = preset_env("franka_reach")
    env.steer(0, (0.5, 0.1, 0.3))
    pose = pose_of(env, 0)
    np.testing.assert_allclose(pose.target[0], [0.5, 0.1, 0.3], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(pose.target[1:] - pose.target[0], axis=1), 0.1, 1e-5)
    # the hand is told to point down: its z axis leads down
    np.testing.assert_allclose(pose.target[3] - pose.target[0], [0, 0, -0.1], atol=1e-6)
    hand = env.scene.robot.body_pos_w[0, env.scene.robot.body_ids("panda_hand")[0]]
    assert [entry.real for entry in pose.quantities] == pytest.approx(hand.tolist(), abs=1e-6)


def test_looking_changes_nothing():
    watched, alone = (preset_env("go2_flat", seed=3) for _ in range(2))
    actions = torch.randn(20, 4, 12, generator=torch.Generator().manual_seed(0))
    for action in actions:
        watched.pose(1)
        watched.step(action)
        watched.pose(3)
        alone.step(action)
    for name in ("qpos", "qvel", "sensordata"):
        assert torch.equal(getattr(watched.scene.physics, name), getattr(alone.scene.physics, name))
    assert torch.equal(watched.observe()["policy"], alone.observe()["policy"])


def test_rough_ground_is_described_about_the_robot():
    env = rough_env()
    pose = pose_of(env, 3)
    side = round(2 * GROUND_REACH / GROUND_STEP) + 1
    assert pose.ground.shape == (side, side)
    assert pose.floor is None
    assert pose.place.startswith(env.scene.terrain.map.names[int(env.scene.terrain.kinds[3])])
    below = float(pose.position[2] - pose.ground[side // 2, side // 2])
    assert 0.2 < below < 0.6  # a Go2 stands about 0.4 m above the ground


def a_map(heights):
    heights = np.asarray(heights, np.float32)
    none = np.zeros((0, 0))
    return TerrainMap(heights, 0.1, none, none.astype(int), (), 8.0)


def test_ground_turns_with_the_heading():
    y, x = np.meshgrid(np.arange(-5.0, 5.01, 0.1), np.arange(-5.0, 5.01, 0.1), indexing="ij")
    slope = a_map(0.1 * x + 0.02 * y)  # rises along x and a little to the left
    here = np.zeros(3, np.float32)
    ahead = ground_about(slope, here, 0.0)
    middle = len(ahead) // 2
    assert ahead[middle, middle] == pytest.approx(0.0, abs=1e-6)
    assert ahead[middle, -1] == pytest.approx(0.1 * GROUND_REACH, abs=1e-5)
    assert ahead[-1, middle] == pytest.approx(0.02 * GROUND_REACH, abs=1e-5)
    turned = ground_about(slope, here, np.pi / 2)  # looks to the left: ahead is y
    assert turned[middle, -1] == pytest.approx(0.02 * GROUND_REACH, abs=1e-5)
    assert turned[-1, middle] == pytest.approx(-0.1 * GROUND_REACH, abs=1e-5)


def test_beyond_the_edge_of_the_ground_nothing_is_known():
    flat = a_map(np.zeros((101, 101)))  # from -5 to 5 m
    heights = ground_about(flat, np.array([4.0, 0.0, 0.0], np.float32), 0.0)
    assert np.isfinite(heights[:, : heights.shape[1] // 2 + 1]).all()
    assert np.isnan(heights[:, -1]).all()
