"""Left and right exchanged: by names, on rows of numbers, and in the physics itself."""

import re

import mujoco
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sim.config import EnvConfig
from sim.env import make_env
from sim.robots import ROBOTS
from sim.symmetry import NoMirrorError, check_symmetry, reflect
from sim.terrain.generator import TerrainMap
from tests.sim.builders import preset_config, preset_env

FLIP = torch.tensor([1.0, -1.0, 1.0])
"""A vector in the mirror."""
TURN = torch.tensor([-1.0, 1.0, -1.0])
"""A turning rate in the mirror."""


def quiet(name, **changes):
    """A shipped task without randomisation and noise, two worlds."""
    config = preset_config(name, num_envs=2, events={}, curriculum={}, **changes)
    groups = {
        group: {name: {**terms[name].model_dump(), "noise": None} for name in terms}
        for group, terms in config.observations.items()
    }
    return EnvConfig.model_validate({**config.model_dump(), "observations": groups})


def test_signs_and_twins_are_those_of_the_model():
    robot = ROBOTS["go2"]
    model = mujoco.MjModel.from_xml_path(str(robot.mjcf))
    for name in robot.joint_names:
        joint, twin = model.joint(name), model.joint(robot.sides.twin(name))
        # an axis turns like a rate: its x and z change sign in the mirror
        mirrored = joint.axis * [-1, 1, -1]
        np.testing.assert_array_equal(mirrored, robot.sides.joint_sign(name) * twin.axis)
        here = model.body(joint.bodyid[0])
        there = model.body(twin.bodyid[0])
        assert there.name == robot.sides.twin(here.name)
        np.testing.assert_allclose(there.pos, here.pos * [1, -1, 1])
    key = dict(zip(robot.joint_names, default_pose(model, robot.joint_names), strict=True))
    for name in robot.joint_names:
        assert key[robot.sides.twin(name)] == robot.sides.joint_sign(name) * key[name]


def default_pose(model, names):
    return [model.key_qpos[0][model.joint(name).qposadr[0]] for name in names]


def test_a_velocity_to_the_left_is_one_to_the_right_in_the_mirror():
    reflection = reflect(preset_config("go2_flat")).observations["policy"]
    row = np.arange(1.0, 49.0)
    mirrored = row[list(reflection.source)] * reflection.sign
    assert mirrored[:12].tolist() == [1, -2, 3, -4, 5, -6, 7, -8, 9, 10, -11, -12]
    # joint positions: FL FR RL RR hips, then thighs, then calves
    assert mirrored[12:24].tolist() == [-14, -13, -16, -15, 18, 17, 20, 19, 22, 21, 24, 23]


def test_the_scan_exchanges_its_rows_from_right_to_left():
    reflection = reflect(preset_config("go2_rough")).observations["policy"]
    scan = np.array(reflection.source[48:]).reshape(11, 17) - 48
    assert scan[:, 0].tolist() == [170 - 17 * i for i in range(11)]
    assert scan[0].tolist() == list(range(170, 187))
    assert set(reflection.sign[48:]) == {1.0}


@pytest.fixture(scope="module", params=["go2_flat", "go2_rough"])
def real_env(request):
    env = preset_env(request.param)
    yield env
    env.close()


@given(seed=st.integers(0, 2**31))
def test_mirroring_twice_gives_back_every_bit(real_env, seed):
    generator = torch.Generator().manual_seed(seed)
    mirror = real_env.mirror()
    observations = {
        group: torch.randn(3, sum(width for _, width in terms), generator=generator)
        for group, terms in real_env.observation_terms.items()
    }
    once = mirror.observations(observations)
    assert not torch.equal(once["policy"], observations["policy"])
    assert torch.equal(mirror.observations(once)["policy"], observations["policy"])
    actions = torch.randn(2, 3, 12, generator=generator)
    assert torch.equal(mirror.actions(mirror.actions(actions)), actions)


def put_mirrored(env, generator):
    """World 0 in a random state near the default one, world 1 in its mirror image."""
    robot, ids = env.scene.robot, torch.tensor([0, 1])
    draw = lambda *shape: 2 * torch.rand(*shape, generator=generator) - 1  # noqa: E731
    position, roll_pitch_yaw = 0.3 * draw(3) * torch.tensor([1.0, 1, 0]), 0.3 * draw(3)
    quat = torch.cat((torch.ones(1), roll_pitch_yaw / 2))
    quat /= quat.norm()
    start = robot.default_root_state[0, :3] + position
    pose = torch.stack((start, start * FLIP)) + env.scene.env_origins
    robot.write_root_pose(
        ids, pose, torch.stack((quat, quat * torch.tensor([1.0, -1.0, 1.0, -1.0])))
    )
    linear, angular = 0.5 * draw(3), draw(3)
    robot.write_root_velocity(
        ids, torch.stack((linear, linear * FLIP)), torch.stack((angular, angular * TURN))
    )
    mirror = env.mirror()
    joints, rates = 0.2 * draw(12), 2 * draw(12)
    both = torch.stack((joints, mirror.actions(joints)))
    robot.write_joint_state(
        ids, robot.default_joint_pos + both, torch.stack((rates, mirror.actions(rates)))
    )
    env.scene.commit(ids)
    command = env.commands.terms["base_velocity"]
    command.is_heading[:] = False
    command.is_standing[:] = False
    command.value[0] = draw(3)
    command.value[1] = command.value[0] * torch.tensor([1.0, -1.0, -1.0])
    return draw


def assert_mirrored(env, atol):
    observations = env.observe()
    mirrored = env.mirror().observations(observations)
    for group, rows in observations.items():
        assert (rows[1] - rows[0]).abs().max() > 1
        torch.testing.assert_close(rows[1], mirrored[group][0], atol=atol, rtol=0.0)


OTHER_KINDS = (
    "pyramid_stairs",
    "pyramid_stairs_inv",
    "boxes",
    "random_rough",
    "hf_pyramid_slope_inv",
)
SLOPE = {
    "size": 8.0,
    "border_width": 1.0,
    "vertical_scale": 1e-5,
    "num_rows": 1,
    "num_cols": 1,
    "sub_terrains": {
        **{kind: {"proportion": 0} for kind in OTHER_KINDS},
        "hf_pyramid_slope": {"proportion": 1.0, "platform_width": 2.0},
    },
}
"""One tile for both worlds, which is the mirror image of itself."""


@pytest.mark.parametrize("name", ["go2_flat", "go2_rough"])
@pytest.mark.parametrize("seed", range(3))
def test_a_mirrored_robot_under_mirrored_actions_is_seen_mirrored(name, seed):
    env = make_env(quiet(name, **({"terrain": SLOPE} if name == "go2_rough" else {})), "cpu", 1)
    generator = torch.Generator().manual_seed(seed)
    draw = put_mirrored(env, generator)
    # cells are cut along one diagonal, which its mirror image is not: some mm at an edge
    assert_mirrored(env, 1e-5 if name == "go2_flat" else 1e-2)
    for _ in range(5):
        action = 0.5 * draw(12)
        feedback = env.step(torch.stack((action, env.mirror().actions(action))))
        assert not feedback.terminated.any()
        # a foot on a height field touches cells that are no mirror images either
        assert_mirrored(env, 2e-2 if name == "go2_flat" else 0.3)
        assert feedback.reward[0] == pytest.approx(feedback.reward[1].item(), abs=1e-3)
    env.close()


def test_a_scan_of_the_mirrored_ground_is_the_mirrored_scan():
    from sim.terrain.height_scan import HeightScanner

    # the same along x, so that the diagonals of the cells do not matter
    profile = np.random.default_rng(0).uniform(0, 0.3, 81).astype(np.float32)
    heights = np.repeat(profile[:, None], 81, axis=1)

    def scanner(heights):
        ground = TerrainMap(heights, 0.1, np.zeros((1, 1, 3)), np.zeros((1, 1)), ("any",), 8.0)
        return HeightScanner(ground, torch.device("cpu"), (1.6, 1.0), 0.1, 0.5, 1.0)

    position = torch.tensor([[0.3, 0.47, 0.4], [-1.0, -0.8, 0.3]])
    yaw = torch.tensor([0.4, -2.0])
    zero = torch.zeros(2)
    turned = torch.stack((torch.cos(yaw / 2), zero, zero, torch.sin(yaw / 2)), dim=1)
    scan = scanner(heights).scan(position, turned)
    mirrored = scanner(heights[::-1].copy()).scan(
        position * FLIP, turned * torch.tensor([1.0, 1.0, 1.0, -1.0])
    )
    source = [
        i - 48 for i in reflect(preset_config("go2_rough")).observations["policy"].source[48:]
    ]
    assert scan.std() > 0.05
    torch.testing.assert_close(mirrored, scan[:, source], atol=1e-5, rtol=0.0)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("cartpole", "robot cartpole"),
        ("cartpole_direct", "task cartpole_direct"),
        ("franka_reach", "robot franka"),
    ],
)
def test_a_robot_without_left_and_right_is_named(name, what):
    (problem,) = check_symmetry(preset_config(name))
    assert problem.path == ("trainer", "symmetry")
    assert f"the {what} has no left and right" in problem.message
    assert "robots that have: go2" in problem.message


def test_a_term_that_sees_one_side_alone_is_named():
    config = preset_config(
        "go2_flat", observations={"policy": {"joint_pos_rel": {"joints": "FL_.*"}}}
    )
    with pytest.raises(NoMirrorError, match=re.escape("its twin FR_hip_joint is not")) as found:
        reflect(config)
    assert found.value.problem.path == ("env", "observations", "policy", "joint_pos_rel")


def test_a_term_nobody_knows_is_named():
    config = preset_config("go2_flat", observations={"policy": {"smell": {}}})
    (problem,) = check_symmetry(config)
    assert problem.path == ("env", "observations", "policy", "smell")
    assert "'smell'" in problem.message


def test_parts_of_the_joints_are_exchanged_among_themselves():
    config = preset_config(
        "go2_flat",
        observations={
            "policy": {
                "joint_vel_rel": {"joints": ".*_hip_joint"},
                "feet_contact": {"bodies": ".*_foot"},
            }
        },
    )
    reflection = reflect(config).observations["policy"]
    assert reflection.source == (1, 0, 3, 2, 5, 4, 7, 6)
    assert reflection.sign == (-1.0,) * 4 + (1.0,) * 4
