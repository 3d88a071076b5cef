"""Events: what they write, in which ranges, into which worlds, and when."""

import math

import pytest
import torch

from sim.rotations import quat_rotate
from sim.terms import events
from tests.sim.builders import preset_env
from tests.sim.recorded import recorded_env

N = 512


@pytest.fixture(scope="module")
def walker():
    env = preset_env(num_envs=N)
    yield env
    env.close()


def fills(values, low, high):
    """All values are within the limits, and they come near both."""
    margin = 0.05 * (high - low) + 1e-6
    inside = values.amin() >= low - 1e-5 and values.amax() <= high + 1e-5
    return bool(inside and values.amin() <= low + margin and values.amax() >= high - margin)


def test_a_reset_places_the_base_in_the_ranges_of_the_task(walker):
    robot = walker.scene.robot
    walker.scene.reset(walker.all_ids)
    walker.events.apply_reset(walker.all_ids)
    walker.scene.commit(walker.all_ids)
    offset = robot.root_pos_w - walker.scene.env_origins
    assert fills(offset[:, 0], -0.5, 0.5)
    assert fills(offset[:, 1], -0.5, 0.5)
    torch.testing.assert_close(offset[:, 2], torch.full((N,), 0.4))
    assert fills(robot.heading_w, -3.14, 3.14)
    upright = torch.tensor([0.0, 0.0, -1.0]).expand(N, 3)
    torch.testing.assert_close(robot.projected_gravity_b, upright, rtol=0, atol=1e-5)
    for axis in range(3):
        assert fills(robot.root_lin_vel_w[:, axis], -0.5, 0.5)
        assert fills(robot.root_ang_vel_w[:, axis], -0.5, 0.5)


def test_a_reset_scales_the_joints_within_their_soft_limits(walker):
    robot = walker.scene.robot
    walker.events.apply_reset(walker.all_ids)
    walker.scene.commit(walker.all_ids)
    limits = robot.soft_joint_pos_limits
    assert (robot.joint_pos >= limits[:, 0] - 1e-6).all()
    assert (robot.joint_pos <= limits[:, 1] + 1e-6).all()
    hip = robot.joint_pos[:, 0] / robot.default_joint_pos[:, 0]
    assert fills(hip, 0.5, 1.5)
    calf = robot.joint_names.index("FL_calf_joint")
    # half the calf's default lies beyond its soft limit, where it is held
    assert robot.joint_pos[:, calf].amax().item() == pytest.approx(limits[calf, 1].item())
    assert (robot.joint_vel == 0).all()


def test_a_reset_turn_is_made_in_the_default_frame(walker):
    robot = walker.scene.robot
    tilted = robot.default_root_state.clone()
    half = math.sqrt(0.5)
    robot.default_root_state[:, 3:7] = torch.tensor([half, half, 0.0, 0.0])  # rolled a quarter
    events.reset_root_state_uniform(walker, walker.all_ids, {"yaw": (0.5, 0.5)}, {})
    walker.scene.commit(walker.all_ids)
    # A turn about the rolled frame's z, which points along the world's -y.
    forward = quat_rotate(robot.root_quat_w[:1], torch.tensor([[1.0, 0.0, 0.0]]))
    expected = torch.tensor([[math.cos(0.5), 0.0, math.sin(0.5)]])
    torch.testing.assert_close(forward, expected, rtol=0, atol=1e-5)
    robot.default_root_state.copy_(tilted)


def test_a_push_adds_to_the_planar_velocity_of_the_chosen_worlds_alone(walker):
    robot = walker.scene.robot
    ids = torch.arange(0, N, 2)
    moving = torch.tensor([[0.7, -0.3, 0.2]]).expand(N, 3)
    robot.write_root_velocity(walker.all_ids, moving, 2 * moving)
    walker.scene.commit(walker.all_ids)
    linear, angular = robot.root_lin_vel_w.clone(), robot.root_ang_vel_w.clone()
    qvel = walker.scene.physics.qvel.clone()
    events.push_by_setting_velocity(walker, ids, {"x": (-0.5, 0.5), "y": (-0.5, 0.5)})
    walker.scene.commit(ids)
    jump = robot.root_lin_vel_w - linear
    assert fills(jump[ids, 0], -0.5, 0.5)
    assert fills(jump[ids, 1], -0.5, 0.5)
    assert jump[:, 2].abs().amax() < 1e-5
    torch.testing.assert_close(robot.root_ang_vel_w, angular, rtol=0, atol=1e-5)
    assert torch.equal(walker.scene.physics.qvel[1::2], qvel[1::2])
    assert torch.equal(robot.root_lin_vel_w[1::2], linear[1::2])


def test_startup_randomises_mass_inertia_centre_and_friction_of_the_go2(walker):
    physics = walker.scene.physics
    base = physics.model.body("base").id
    ratio = physics.present_field("body_mass")[:, base] / physics.model.body_mass[base]
    assert fills(ratio, 0.8, 1.25)
    assert ratio.log().mean().abs() < 0.03  # as likely lighter as heavier
    inertia = physics.present_field("body_inertia")[:, base]
    nominal = torch.tensor(physics.model.body_inertia[base])
    torch.testing.assert_close(inertia, nominal * ratio[:, None])
    centre = physics.present_field("body_ipos")[:, base] - torch.tensor(
        physics.model.body_ipos[base]
    )
    for axis, reach in enumerate((0.05, 0.05, 0.01)):
        assert fills(centre[:, axis], -reach, reach)
    others = [i for i in range(physics.model.nbody) if i != base]
    nominal = torch.tensor(physics.model.body_mass[others]).expand(N, -1)
    assert torch.equal(physics.present_field("body_mass")[:, others], nominal)
    friction = physics.present_field("geom_friction")
    robot_geoms = torch.tensor(physics.model.geom_bodyid != 0)
    assert (friction[:, robot_geoms, 0] - 0.8).abs().amax() < 1e-6
    floor = torch.tensor(physics.model.geom_friction[physics.model.geom_bodyid == 0])
    assert torch.equal(friction[0, ~robot_geoms], floor)


def test_friction_differs_by_world_and_keeps_its_other_numbers():
    env = preset_env(num_envs=64)
    geoms = torch.tensor(env.scene.physics.model.geom_bodyid != 0)
    before = env.scene.physics.present_field("geom_friction").clone()
    events.randomize_rigid_body_material(env, env.all_ids, (0.3, 1.2))
    friction = env.scene.physics.present_field("geom_friction")
    assert fills(friction[:, geoms, 0], 0.3, 1.2)
    assert torch.equal(friction[:, :, 1:], before[:, :, 1:])
    env.close()


@pytest.mark.parametrize(
    ("distribution", "lighter"),
    [("log_uniform", 0.5), ("uniform", 0.9 / 9.9)],  # of 0.1 to 10 below 1
)
def test_mass_is_scaled_by_the_distribution_that_is_named(distribution, lighter):
    env = preset_env(num_envs=N)
    base = env.scene.robot.base_id
    body = slice(base, base + 1)
    events.randomize_rigid_body_mass(env, env.all_ids, body, (0.1, 10.0), distribution)
    mass = env.scene.physics.present_field("body_mass")[:, base + 1]
    assert fills(mass.log10() - math.log10(6.921), -1.0, 1.0) or distribution == "uniform"
    share = (mass < 6.921).double().mean().item()
    assert share == pytest.approx(lighter, abs=5 * math.sqrt(lighter * (1 - lighter) / N))
    env.close()


def test_added_mass_starts_from_the_nominal_mass_and_stays_positive():
    env = preset_env(num_envs=64)
    base = env.scene.robot.base_id
    events.add_rigid_body_mass(env, env.all_ids, slice(base, base + 1), (-1.0, 3.0))
    physics = env.scene.physics
    mass = physics.present_field("body_mass")[:, base + 1]
    assert fills(mass - 6.921, -1.0, 3.0)
    events.add_rigid_body_mass(env, env.all_ids, slice(base, base + 1), (-50.0, -50.0))
    assert (physics.present_field("body_mass")[:, base + 1] == events.MIN_MASS).all()
    env.close()


def test_several_offset_terms_each_place_their_own_joints():
    env = preset_env("cartpole", num_envs=N)
    robot = env.scene.robot
    assert fills(robot.joint_pos[:, 0], -1.0, 1.0)
    assert fills(robot.joint_vel[:, 0], -0.5, 0.5)
    quarter = math.pi / 4
    assert fills(robot.joint_pos[:, 1], -quarter, quarter)
    assert fills(robot.joint_vel[:, 1], -quarter, quarter)
    env.close()


def test_every_full_episode_has_exactly_one_push():
    env = recorded_env(
        num_envs=64,
        rewards={},
        curriculum={},
        events={"recorded_push": {"mode": "interval", "interval_range_s": (10.0, 15.0)}},
    )
    rest = torch.zeros(64, 2)
    env.episode_length[:] = 999
    env.step(rest)
    for _ in range(2):
        env.scene.calls.clear()
        for step in range(1, 1001):
            env.scene.calls.append(step)
            env.step(rest)
        pushed, steps, step = [], [], 0
        for call in env.scene.calls:
            if isinstance(call, int):
                step = call
            elif call.startswith("interval event"):
                ids = [int(i) for i in call.removeprefix("interval event [")[:-1].split(",")]
                pushed += ids
                steps.append(step)
        assert sorted(pushed) == list(range(64))
        assert min(steps) >= 499
        assert max(steps) <= 749
