"""The Franka's figures, its servos, and its reach task over the real physics."""

import math

import mujoco
import numpy as np
import pytest
import torch

from presets.loader import load
from presets.problems import PresetError
from sim.robots import find_robot
from tests.sim.builders import preset_env

# kg and the way to the centre of mass, link by link
MASSES = (0.629769, 4.970684, 0.646926, 3.228604, 3.587895, 1.225946, 1.666555, 0.735522)
WIDE = [-2.8973, 2.8973]
RANGES = [WIDE, [-1.7628, 1.7628], WIDE, [-3.0718, -0.0698], WIDE, [-0.0175, 3.7525], WIDE]


@pytest.fixture(scope="module")
def model():
    return mujoco.MjModel.from_xml_path(str(find_robot("franka").mjcf))


@pytest.fixture
def env():
    env = preset_env("franka_reach")
    yield env
    env.close()


def test_masses_and_inertias_are_the_makers(model):
    for i, mass in enumerate(MASSES):
        assert model.body(f"panda_link{i}").mass[0] == mass
    assert model.body("panda_hand").mass[0] == 0.73
    assert model.body_mass.sum() == pytest.approx(sum(MASSES) + 0.73 + 2 * 0.015)
    # the sum of the principal moments is the trace of the published tensor
    assert model.body("panda_link1").inertia.sum() == pytest.approx(0.70337 + 0.70661 + 0.009117)
    assert model.body("panda_link6").inertia.sum() == pytest.approx(0.001964 + 0.004354 + 0.005433)
    assert model.body("panda_link4").ipos.tolist() == [-0.05317, 0.104419, 0.027454]


def test_joint_ranges_and_armature_are_the_makers_and_the_tasks(model):
    for i, limits in enumerate(RANGES, start=1):
        assert model.joint(f"panda_joint{i}").range.tolist() == limits
    for i in (1, 2):
        assert model.joint(f"panda_finger_joint{i}").range.tolist() == [0.0, 0.04]
    assert model.dof_armature.tolist() == [0.001] * 9
    assert model.opt.gravity[2] == -9.81


def test_servos_stand_in_the_joints_order_with_the_numbers_of_the_law(model):
    robot = find_robot("franka")
    driven = tuple(model.joint(i).name for i in model.actuator_trnid[:, 0])
    assert driven == robot.joint_names
    law = robot.actuator
    assert law.stiffness == (80.0,) * 7 + (2000.0,) * 2
    assert law.damping == (4.0,) * 7 + (100.0,) * 2
    assert law.effort_limit == (87.0,) * 4 + (12.0,) * 3 + (200.0,) * 2
    assert tuple(model.actuator_gainprm[:, 0]) == law.stiffness
    assert tuple(-model.actuator_biasprm[:, 1]) == law.stiffness
    assert tuple(-model.actuator_biasprm[:, 2]) == law.damping
    assert tuple(model.actuator_forcerange[:, 1]) == law.effort_limit
    assert tuple(-model.actuator_forcerange[:, 0]) == law.effort_limit


# Lengths: 0.333 up to the shoulder, 0.316 to the elbow, which stands 0.0825 off; 0.384 to the
# wrist, the same 0.0825 back; 0.088 out and 0.107 along to the hand, 0.1034 more to the tool.
@pytest.mark.parametrize(
    ("angles", "hand"),
    [
        ({}, (0.088, 0, 0.333 + 0.316 + 0.384 - 0.107)),
        (
            {4: -math.pi / 2, 6: math.pi / 2},
            (0.0825 + 0.384 + 0.088, 0, 0.333 + 0.316 + 0.0825 - 0.107),
        ),
        (
            {1: math.pi / 2, 4: -math.pi / 2, 6: math.pi / 2},
            (0, 0.0825 + 0.384 + 0.088, 0.333 + 0.316 + 0.0825 - 0.107),
        ),
    ],
)
def test_the_hand_is_where_the_lengths_put_it_and_points_down(model, angles, hand):
    data = mujoco.MjData(model)
    for joint, angle in angles.items():
        data.joint(f"panda_joint{joint}").qpos = angle
    mujoco.mj_kinematics(model, data)
    np.testing.assert_allclose(data.body("panda_hand").xpos, hand, atol=1e-6)
    np.testing.assert_allclose(data.site("tool").xpos, np.subtract(hand, (0, 0, 0.1034)), atol=1e-6)
    np.testing.assert_allclose(data.body("panda_hand").xmat[6:], [0, 0, -1], atol=1e-6)


def test_the_default_pose_touches_nothing_and_the_folded_starts_graze_the_column_at_most(model):
    data = mujoco.MjData(model)
    draw = np.random.default_rng(0)
    default = model.key_qpos[0]
    deepest = 0.0
    for _ in range(500):
        drawn = default * draw.uniform(0.5, 1.5, 9)
        data.qpos[:] = np.clip(drawn, model.jnt_range[:, 0], model.jnt_range[:, 1])
        mujoco.mj_forward(model, data)
        deepest = min([deepest, *data.contact.dist])
    assert deepest > -0.025
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    assert data.ncon == 0


def test_the_arm_collides_with_the_table_and_with_its_own_upper_arm(model):
    data = mujoco.MjData(model)

    def touching(**angles):
        mujoco.mj_resetDataKeyframe(model, data, 0)
        for joint, angle in angles.items():
            data.joint(f"panda_{joint}").qpos = angle
        mujoco.mj_forward(model, data)
        return {model.geom(geom).name for contact in data.contact for geom in contact.geom}

    assert "table" in touching(joint2=0.9, joint4=-2.2, joint6=3.0)
    assert "column" in touching(joint2=-0.3, joint4=-3.07, joint6=1.4)


def test_a_servos_torque_is_the_hand_written_law(env):
    robot, physics = env.scene.robot, env.scene.physics
    q = torch.tensor([[0.0, -0.5, 0.0, -2.0, 0.0, 2.0, 0.5, 0.02, 0.03]]).repeat(4, 1)
    v = torch.tensor([[1.0, -1.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.1, 0.0]]).repeat(4, 1)
    robot.write_joint_state(env.all_ids, q, v)
    target = q.clone()
    target[:, 0] += 0.5  # 80 x 0.5 - 4 x 1 = 36
    target[:, 2] += 2.0  # 160, held at 87
    target[:, 5] -= 0.3  # -24, held at -12
    target[:, 7] += 0.01  # 2000 x 0.01 - 100 x 0.1 = 10
    robot.set_joint_position_target(target)
    robot.drive()
    assert physics.ctrl[0].tolist() == pytest.approx(target[0].tolist())
    env.scene.physics.tick(last=True)
    robot.measure_acceleration()
    expected = [36.0, 4.0, 87.0, -2.0, 0.0, -12.0, 0.0, 10.0, 0.0]
    assert robot.applied_torque[0].tolist() == pytest.approx(expected, abs=1e-4)
    # the engine's own servos make the same
    data = mujoco.MjData(physics.model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q[0], v[0], target[0]
    mujoco.mj_step(physics.model, data)
    assert data.actuator_force.tolist() == pytest.approx(expected, abs=1e-4)


def test_a_tick_is_mj_step_and_its_damping_implicit(env):
    physics, model = env.scene.physics, env.scene.physics.model
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = physics.qpos[0], physics.qvel[0]
    env.step(torch.full((4, 7), 0.3))
    for _ in range(4):
        data.ctrl[:] = model.key_qpos[0]
        data.ctrl[:7] += 0.5 * 0.3
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(physics.qpos[0], data.qpos, atol=1e-6)
    # A finger of 16 g under 100 N s/m: the explicit law would throw its speed back 52-fold a tick.
    finger = model.joint("panda_finger_joint1").dofadr[0]
    mass, dt = 0.015 + 0.001, 1 / 120
    mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qpos[7], data.ctrl[7], data.qvel[finger] = 0.02, 0.02, 0.1
    model_without_gravity = mujoco.MjModel.from_xml_path(str(find_robot("franka").mjcf))
    model_without_gravity.opt.gravity[:] = 0
    mujoco.mj_step(model_without_gravity, data)
    # the heavy hand moves a little with it, hence the tolerance
    assert data.qvel[finger] == pytest.approx(0.1 / (1 + dt * 100 / mass), abs=0.001)


def test_the_action_moves_the_seven_arm_joints_around_the_default_pose(env):
    assert env.action_names == tuple(f"panda_joint{i}" for i in range(1, 8))
    env.step(torch.full((4, 7), 0.4))
    default = env.scene.robot.default_joint_pos
    expected = default.clone()
    expected[:, :7] += 0.5 * 0.4
    torch.testing.assert_close(env.scene.physics.ctrl.float(), expected)


def test_observation_is_32_wide_and_shows_the_command_and_the_last_action(env):
    assert env.observation_terms["policy"] == (
        ("joint_pos_rel", 9),
        ("joint_vel_rel", 9),
        ("pose_command", 7),
        ("last_action", 7),
    )
    env.step(torch.full((4, 7), 0.3))
    row, robot = env.observe()["policy"], env.scene.robot
    assert row.shape == (4, 32)
    position = robot.joint_pos - robot.default_joint_pos
    torch.testing.assert_close(row[:, :9], position, rtol=0, atol=0.0101)
    torch.testing.assert_close(row[:, 9:18], robot.joint_vel, rtol=0, atol=0.0101)
    assert torch.equal(row[:, 18:25], env.commands.value("ee_pose"))
    assert torch.equal(row[:, 25:], torch.full((4, 7), 0.3))


def test_the_reward_is_that_of_the_hand_against_the_command_in_float64(env):
    draw = torch.Generator().manual_seed(3)
    before = torch.zeros(4, 7)
    for _ in range(5):
        action = torch.randn(4, 7, generator=draw)
        command = env.commands.value("ee_pose").double().numpy().copy()
        reward = env.step(action).reward
        physics, model = env.scene.physics, env.scene.physics.model
        for world in range(4):
            data = mujoco.MjData(model)
            data.qpos[:] = physics.qpos[world]
            mujoco.mj_kinematics(model, data)
            hand = data.body("panda_hand")
            distance = np.linalg.norm(hand.xpos - command[world, :3])
            turn = 2 * math.acos(min(1.0, abs(hand.xquat @ command[world, 3:])))
            act, last = action[world].double().numpy(), before[world].double().numpy()
            speed = physics.qvel[world, :7].numpy()
            expected = (
                -0.2 * distance
                + 0.1 * (1 - math.tanh(distance / 0.1))
                - 0.1 * turn
                - 1e-4 * ((act - last) ** 2).sum()
                - 0.005 * (act**2).sum()
                - 1e-4 * (speed**2).sum()
            ) / 30
            assert reward[world].item() == pytest.approx(expected, abs=2e-6)
        before = action


def quiet(env, monkeypatch):
    """Leave every world where it is, for what does not depend on physics."""
    monkeypatch.setattr(env.scene, "tick", lambda last: None)


def test_the_pose_is_redrawn_at_steps_120_and_241_of_an_episode(env, monkeypatch):
    quiet(env, monkeypatch)
    env.episode_length[:] = 359
    env.step(torch.zeros(4, 7))  # the time-out starts the episode that is counted
    seen, before = [], env.commands.value("ee_pose").clone()
    for step in range(1, 721):
        env.step(torch.zeros(4, 7))
        now = env.commands.value("ee_pose")
        if (now[:, :3] != before[:, :3]).all():
            seen.append(step)
        before = now.clone()
    # 360 is the reset at the time limit, then it starts over
    assert seen == [120, 241, 360, 480, 601, 720]


def test_poses_fill_their_ranges_and_point_down():
    env = preset_env("franka_reach", num_envs=4096)
    pose = env.commands.value("ee_pose")
    low, high = pose[:, :3].amin(0), pose[:, :3].amax(0)
    torch.testing.assert_close(low, torch.tensor([0.35, -0.2, 0.15]), rtol=0, atol=0.002)
    torch.testing.assert_close(high, torch.tensor([0.65, 0.2, 0.5]), rtol=0, atol=0.002)
    w, x, y, z = pose[:, 3:].double().unbind(1)
    downwards = 1 - 2 * (x * x + y * y)
    torch.testing.assert_close(downwards, -torch.ones(4096).double(), rtol=0, atol=1e-5)
    torch.testing.assert_close(w * w + x * x + y * y + z * z, torch.ones(4096).double())
    env.close()


def test_metrics_are_the_last_errors_and_the_share_that_was_once_near(env, monkeypatch):
    quiet(env, monkeypatch)
    term = env.commands.terms["ee_pose"]
    hand = env.scene.robot.body_pos_w[:, env.scene.robot.body_ids("panda_hand")[0]].clone()

    def stand_off(*distances):
        term.value[:, :3] = hand
        term.value[:, 0] += torch.tensor(distances)
        env.step(torch.zeros(4, 7))

    stand_off(0.3, 0.3, 0.3, 0.3)
    stand_off(0.3, 0.04, 0.3, 0.3)  # world 1 is near once
    stand_off(0.1, 0.2, 0.3, 0.4)
    env.episode_length[:] = 359
    log = env.step(torch.zeros(4, 7)).log
    assert log["Metrics/ee_pose/position_error"].item() == pytest.approx(0.25, abs=1e-5)
    assert log["Metrics/ee_pose/success_rate"].item() == 0.25
    assert 0 <= log["Metrics/ee_pose/orientation_error"].item() <= math.pi
    assert not term.reached.any() or (term.measure()[0][term.reached] < 0.05).all()


def test_smoothness_weighs_more_after_4500_steps(env, monkeypatch):
    quiet(env, monkeypatch)
    assert env.reward_terms["action_rate"] == -1e-4
    for counter, action_rate, joint_vel in ((4499, -1e-4, -1e-4), (4500, -0.005, -0.001)):
        # the step adds one: 4500 is not yet more than 4500
        env.common_step_counter = counter
        env.episode_length[:] = 359
        log = env.step(torch.zeros(4, 7)).log
        assert log["Curriculum/action_rate"] == action_rate
        assert log["Curriculum/joint_vel"] == joint_vel
        assert env.reward_terms["action_rate"] == action_rate


def test_a_body_must_be_one_body():
    with pytest.raises(PresetError, match="must match one body, not 2: panda_leftfinger"):
        load("franka_reach", ["env.commands.ee_pose.body=panda_.*finger"])
    with pytest.raises(PresetError, match=r"no body matches .*did you mean panda_hand"):
        load("franka_reach", ["env.commands.ee_pose.body=panda_hnd"])


def test_the_arm_needs_no_ground():
    with pytest.raises(PresetError, match="the franka does not stand on the ground"):
        load("franka_reach", ["env.terrain={}"])


def test_a_state_in_which_a_world_was_broken_breaks_no_world_of_the_env_that_takes_it(env):
    actions = torch.zeros(env.num_envs, env.num_actions)
    env.step(actions)
    env.scene.physics.qvel[1, 0] = float("nan")
    assert env.step(actions).terminated[1]
    state = env.state_dict()
    env.step(actions)
    env.load_state_dict(state)
    assert not env.step(actions).terminated.any()
