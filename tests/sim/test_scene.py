"""The worlds as a whole: exact against a plain loop, current after ticks and resets, isolated."""

import mujoco
import numpy as np
import pytest
import torch

from sim.config import EnvConfig
from sim.robots import find_robot
from sim.scene import Scene, flat_origins

READINGS = [
    "root_pos_w",
    "root_quat_w",
    "root_lin_vel_w",
    "root_ang_vel_w",
    "root_lin_vel_b",
    "root_ang_vel_b",
    "projected_gravity_b",
    "heading_w",
    "joint_pos",
    "joint_vel",
    "joint_acc",
    "applied_torque",
    "body_pos_w",
]


def make(num_envs, robot="go2", **settings):
    config = EnvConfig(robot=robot, num_envs=num_envs, **settings)
    return Scene(config, "cpu", torch.Generator().manual_seed(0))


def step(scene, decimation=4):
    for k in range(decimation):
        scene.tick(last=k == decimation - 1)
    scene.update()


def wander(scene, steps, seed=0):
    generator = torch.Generator().manual_seed(seed)
    default = scene.robot.default_joint_pos
    for _ in range(steps):
        noise = torch.rand(default.shape, generator=generator) - 0.5
        scene.robot.set_joint_position_target(default + noise)
        step(scene)


def readings(scene):
    found = {name: getattr(scene.robot, name).clone() for name in READINGS}
    return found | {"forces": scene.contacts.net_forces_history.clone()}


def test_worlds_with_motors_move_as_a_plain_loop_of_mj_step():
    n, ticks = 3, 52
    scene = make(n)
    rng = np.random.default_rng(1)
    model = scene.physics.model
    order = [model.joint(name).id for name in scene.robot.joint_names]
    q_at, v_at = model.jnt_qposadr[order], model.jnt_dofadr[order]
    singles = []
    for world in range(n):
        data = mujoco.MjData(model)
        data.qpos[:] = scene.physics.qpos[world].numpy()
        singles.append(data)
    default = scene.robot.default_joint_pos.numpy()
    for k in range(ticks):
        if k % 4 == 0:
            target = (default + rng.uniform(-1, 1, default.shape)).astype(np.float32)
            scene.robot.set_joint_position_target(torch.from_numpy(target))
        scene.tick(last=k % 4 == 3)
        for world, data in enumerate(singles):
            q, v = data.qpos[q_at], data.qvel[v_at]
            tau = 25.0 * (target[world].astype(float) - q) - 0.5 * v
            speed = np.clip(v, -60, 60)
            top = np.minimum(23.5 * (1 - speed / 30), 23.5)
            bottom = np.maximum(23.5 * (-1 - speed / 30), -23.5)
            data.ctrl[:] = np.clip(tau, bottom, top)
            before = v.copy()
            mujoco.mj_step(model, data)
    scene.update()
    for world, data in enumerate(singles):
        np.testing.assert_allclose(scene.physics.qpos[world], data.qpos, atol=1e-9)
        np.testing.assert_allclose(scene.robot.applied_torque[world], data.ctrl, atol=1e-5)
        np.testing.assert_allclose(scene.robot.joint_pos[world], data.qpos[q_at], atol=1e-6)
    acc = (singles[-1].qvel[v_at] - before) / 0.005
    np.testing.assert_allclose(scene.robot.joint_acc[-1], acc, rtol=1e-4, atol=1e-2)


def test_a_go2_stands_under_its_default_targets():
    scene = make(2)
    for _ in range(100):  # 2 s
        step(scene)
    robot = scene.robot
    assert 0.22 < robot.root_pos_w[0, 2].item() < 0.34
    assert robot.projected_gravity_b[0, 2].item() < -0.99
    assert robot.root_lin_vel_w.abs().max() < 0.02
    touching = scene.contacts.current_contact_time[0] > 0
    names = scene.contacts.body_names
    assert [names[i] for i in touching.nonzero()[:, 0]] == [
        f"{x}_foot" for x in ("FL", "FR", "RL", "RR")
    ]
    weight = scene.contacts.net_forces_history[0, 0, :, 2].sum().item()
    assert weight == pytest.approx(15.206408 * 9.81, rel=0.01)


def test_root_velocities_are_those_of_the_centre_of_mass_after_the_last_tick():
    scene = make(3)
    scene.physics.model_field("body_ipos")[:, 1, 0] += torch.tensor([0.05, 0.0, -0.05])
    scene.physics.model_changed()
    wander(scene, 6)
    for world in range(3):
        model = mujoco.MjModel.from_xml_path(str(find_robot("go2").mjcf))
        model.body_ipos[1] = scene.physics.model_field("body_ipos")[world, 1].numpy()
        data = mujoco.MjData(model)
        data.qpos[:] = scene.physics.qpos[world].numpy()
        data.qvel[:] = scene.physics.qvel[world].numpy()
        mujoco.mj_forward(model, data)
        velocity = np.zeros(6)
        for local, turn, move in (
            (0, scene.robot.root_ang_vel_w, scene.robot.root_lin_vel_w),
            (1, scene.robot.root_ang_vel_b, scene.robot.root_lin_vel_b),
        ):
            # of the inertial frame, whose origin is the centre of mass
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, 1, velocity, local)
            linear = velocity[3:]
            turning = velocity[:3]
            if local:  # its axes are the principal ones; turn them into the base's
                to_world = data.ximat[1].reshape(3, 3)
                base = data.xmat[1].reshape(3, 3)
                linear, turning = base.T @ to_world @ linear, base.T @ to_world @ turning
            np.testing.assert_allclose(move[world], linear, atol=1e-5)
            np.testing.assert_allclose(turn[world], turning, atol=1e-5)
        up = data.xmat[1].reshape(3, 3)[2]
        np.testing.assert_allclose(scene.robot.projected_gravity_b[world], -up, atol=1e-6)


def test_what_was_written_is_what_is_read():
    scene = make(3)
    wander(scene, 3)
    ids = torch.tensor([0, 2])
    half = 0.5**0.5
    quat = torch.tensor([[half, 0, 0, half], [half, half, 0, 0]])
    position = torch.tensor([[1.0, 2, 3], [4, 5, 6]])
    linear, angular = torch.tensor([[1.0, 0, 0], [0, 2, 0]]), torch.tensor([[0.0, 0, 3], [1, 2, 3]])
    scene.robot.write_root_pose(ids, position, quat)
    scene.robot.write_root_velocity(ids, linear, angular)
    scene.robot.write_joint_state(ids, scene.robot.default_joint_pos[ids] + 0.1, torch.ones(2, 12))
    before = readings(scene)
    scene.commit(ids)
    for name, value in before.items():
        if name != "body_pos_w":  # all others were current already
            torch.testing.assert_close(readings(scene)[name], value, atol=2e-6, rtol=0)
    robot = scene.robot
    torch.testing.assert_close(robot.root_lin_vel_w[ids], linear)
    torch.testing.assert_close(robot.root_ang_vel_w[ids], angular)
    # facing +y: forward speed in world x is to the right, so -y of the base
    torch.testing.assert_close(
        robot.root_lin_vel_b[0], torch.tensor([0.0, -1, 0]), atol=1e-6, rtol=0
    )
    assert robot.heading_w[0].item() == pytest.approx(np.pi / 2)
    torch.testing.assert_close(
        robot.projected_gravity_b[2], torch.tensor([0.0, -1, 0]), atol=1e-6, rtol=0
    )
    torch.testing.assert_close(robot.body_pos_w[ids, 0], position)


def test_a_reset_shows_the_new_episode_at_once_and_leaves_the_others_alone():
    scene = make(4)
    wander(scene, 40)
    fresh = make(4)
    ids = torch.tensor([2])
    root = scene.robot.default_root_state[ids]
    scene.robot.write_root_pose(ids, scene.robot.root_pos_w[ids] + 5, root[:, 3:7])
    others = [0, 1, 3]
    before, times = readings(scene), scene.contacts.contact_ticks.clone()
    state = scene.physics.qpos.clone(), scene.physics.qvel.clone()
    scene.reset(ids)
    scene.commit(ids)
    for name, value in readings(scene).items():
        assert torch.equal(value[others], before[name][others]), name
        torch.testing.assert_close(value[2], readings(fresh)[name][2], atol=1e-5, rtol=0)
    assert torch.equal(scene.contacts.contact_ticks[others], times[others])
    assert torch.equal(scene.physics.qpos[others], state[0][others])
    assert torch.equal(scene.physics.qvel[others], state[1][others])
    assert not scene.contacts.net_forces_history[2].any()
    torch.testing.assert_close(scene.robot.root_pos_w[2, :2], scene.env_origins[2, :2])
    assert not scene.robot.joint_acc[2].any()


def test_a_reset_makes_no_spike_of_acceleration():
    scene = make(1, robot="cartpole", physics_dt=0.02, decimation=1)
    ids = torch.tensor([0])
    scene.robot.write_joint_state(ids, torch.zeros(1, 2), torch.tensor([[3.0, 0.0]]))
    step(scene, 1)
    assert scene.robot.joint_acc[0, 0] < -10  # the drive brakes
    scene.reset(ids)
    scene.robot.write_joint_state(ids, torch.zeros(1, 2), torch.zeros(1, 2))
    scene.commit(ids)
    assert scene.robot.joint_acc.tolist() == [[0, 0]]
    step(scene, 1)
    assert scene.robot.joint_acc.abs().max() < 1e-3  # not -150


def test_a_broken_world_is_named_with_its_quantity_and_the_others_are_untouched():
    scene, healthy = make(8), make(8)
    for worlds in (scene, healthy):
        wander(worlds, 3)
    scene.physics.qvel[3, 8] = torch.nan
    step(scene)
    step(healthy)
    bad, names = scene.bad_worlds()
    assert bad.nonzero().tolist() == [[3]]
    assert names == {3: "qvel"}
    others = [0, 1, 2, 4, 5, 6, 7]
    for name, value in readings(scene).items():
        assert torch.equal(value[others], readings(healthy)[name][others]), name
    scene.reset(torch.tensor([3]))
    scene.commit(torch.tensor([3]))
    for _ in range(2):
        step(scene)
        assert not scene.bad_worlds()[0].any()
        assert all(value.isfinite().all() for value in readings(scene).values())


def test_an_absurd_speed_is_a_broken_world():
    scene = make(2)
    scene.physics.qvel[1, 0] = 2000.0
    bad, names = scene.bad_worlds()
    assert bad.tolist() == [False, True]
    assert names == {1: "qvel"}


def test_a_restored_scene_continues_bit_for_bit():
    scene, twin = make(3), make(3)
    wander(scene, 20)
    twin.load_state_dict(scene.state_dict())
    for name, value in readings(scene).items():
        assert torch.equal(value, readings(twin)[name]), name
    for worlds in (scene, twin):
        wander(worlds, 10, seed=4)
    for name, value in readings(scene).items():
        assert torch.equal(value, readings(twin)[name]), name
    assert torch.equal(scene.contacts.last_air_ticks, twin.contacts.last_air_ticks)


def test_patterns_choose_joints_and_bodies_in_the_policys_order():
    robot = make(1).robot
    assert robot.joint_ids("F._thigh_joint") == [4, 5]
    assert [robot.body_names[i] for i in robot.body_ids([".*_foot"])] == [
        f"{leg}_foot" for leg in ("FL", "FR", "RL", "RR")
    ]
    with pytest.raises(ValueError, match=r"no joint matches 'FL_thigh'; near are FL_thigh_joint"):
        robot.joint_ids("FL_thigh")


def test_cartpole_swings_as_its_equation_of_motion_says():
    scene = make(2, robot="cartpole", physics_dt=1 / 120, decimation=2)
    robot = scene.robot
    ids = torch.arange(2)
    robot.write_joint_state(ids, torch.tensor([[0.0, 0.0], [0.0, 0.3]]), torch.zeros(2, 2))
    robot.set_joint_effort_target(torch.tensor([[1.0], [0.0]]), [0])
    scene.commit(ids)
    step(scene, 1)
    # upright pole, effort F: cart mass 1, pole mass 0.5 with half length 0.5 and inertia about its
    # centre close to m L^2 / 12 (a capsule's is a little more): x'' = F / (M + m/4)
    assert robot.joint_acc[0, 0].item() == pytest.approx(1 / 1.125, rel=0.09)
    assert robot.joint_acc[0, 1].item() < 0  # a pole's foot pulled forward falls backward
    assert robot.joint_acc[1, 1].item() > 0  # a leaning pole falls further
    assert robot.applied_torque[0].tolist() == [1.0, 0.0]
    assert robot.actuated_joint_ids == [0]


def test_a_fixed_base_has_a_constant_root_and_refuses_to_be_moved():
    robot = make(2, robot="cartpole").robot
    assert robot.is_fixed_base
    assert robot.root_pos_w[:, 2].tolist() == [2, 2]
    assert not robot.root_lin_vel_b.any()
    with pytest.raises(ValueError, match="cartpole is fixed to the ground"):
        robot.write_root_pose(torch.tensor([0]), torch.zeros(1, 3), torch.ones(1, 4))


def test_worlds_stand_on_a_centred_grid():
    assert flat_origins(4, 2.5)[:, :2].tolist() == [
        [1.25, -1.25],
        [1.25, 1.25],
        [-1.25, -1.25],
        [-1.25, 1.25],
    ]
    assert flat_origins(1, 2.5).tolist() == [[0, 0, 0]]
    assert len({tuple(row) for row in flat_origins(50, 2.5).tolist()}) == 50


def test_an_unknown_robot_is_refused_before_anything_is_built():
    with pytest.raises(ValueError, match="no robot is called 'cartpol'"):
        make(2, robot="cartpol")
