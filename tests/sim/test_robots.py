"""The robots' figures against the makers' and the tasks' numbers."""

import math
import subprocess
import sys

import mujoco
import numpy as np
import pytest
import torch

from sim.config import EnvConfig
from sim.robots import ROBOTS, find_robot
from sim.scene import Scene

LEGS = ("FL", "FR", "RL", "RR")


@pytest.fixture(scope="module")
def go2():
    return mujoco.MjModel.from_xml_path(str(find_robot("go2").mjcf))


def test_go2_weighs_what_its_parts_weigh(go2):
    assert go2.body_mass.sum() == pytest.approx(6.921 + 4 * (0.678 + 1.152 + 0.241352), abs=1e-9)


def test_go2_legs_mirror_the_front_left_one(go2):
    def inertia(name):
        """About the body's own axes, with the place of the centre of mass."""
        body = go2.body(name)
        rotation = np.zeros(9)
        mujoco.mju_quat2Mat(rotation, body.iquat)
        rotation = rotation.reshape(3, 3)
        return rotation @ np.diag(body.inertia) @ rotation.T, body.ipos

    for part, mirrors_x in (("hip", True), ("thigh", False), ("calf", False)):
        tensor, centre = inertia(f"FL_{part}")
        for leg in LEGS:
            sign = np.array(
                [-1.0 if leg[0] == "R" and mirrors_x else 1, -1.0 if leg[1] == "R" else 1, 1]
            )
            twin, twin_centre = inertia(f"{leg}_{part}")
            np.testing.assert_allclose(twin, tensor * np.outer(sign, sign), atol=2e-8)
            np.testing.assert_allclose(twin_centre, centre * sign, atol=1e-12)
    for leg in LEGS:
        x, y = (0.1934 if leg[0] == "F" else -0.1934), (0.0465 if leg[1] == "L" else -0.0465)
        np.testing.assert_allclose(go2.body(f"{leg}_hip").pos, [x, y, 0])


def test_go2_joint_ranges_are_the_makers(go2):
    for leg in LEGS:
        front = leg[0] == "F"
        assert go2.joint(f"{leg}_hip_joint").range.tolist() == [-1.0472, 1.0472]
        assert go2.joint(f"{leg}_thigh_joint").range.tolist() == (
            [-1.5708, 3.4907] if front else [-0.5236, 4.5379]
        )
        assert go2.joint(f"{leg}_calf_joint").range.tolist() == [-2.7227, -0.83776]
    assert go2.dof_armature[6:].tolist() == [0.01] * 12


def test_go2_joints_and_motors_are_in_the_policys_order(go2):
    order = [f"{leg}_{part}_joint" for part in ("hip", "thigh", "calf") for leg in LEGS]
    assert list(find_robot("go2").joint_names) == order
    assert [go2.joint(go2.actuator_trnid[i, 0]).name for i in range(go2.nu)] == order


def test_only_robot_against_floor_collides_with_the_friction_of_the_robots_part(go2):
    data = mujoco.MjData(go2)
    mujoco.mj_resetDataKeyframe(go2, data, 0)
    data.qpos[2] = 0.0  # everything in the floor
    mujoco.mj_forward(go2, data)
    floor = go2.geom("floor").id
    seen = set()
    for contact in data.contact:
        assert floor in contact.geom
        name = go2.geom(max(contact.geom)).name
        assert contact.dim == 3
        assert contact.friction[0] == (0.8 if name.endswith("foot") else 0.6)
        seen.add(name)
    assert {"base", "FL_foot", "RR_calf", "FR_thigh", "RL_hip", "head_upper"} <= seen


def test_go2_soft_limits_leave_nine_tenths_of_the_range():
    scene = Scene(EnvConfig(robot="go2", num_envs=1), "cpu", torch.Generator())
    middle, half = (-2.7227 - 0.83776) / 2, 0.9 * (2.7227 - 0.83776) / 2
    torch.testing.assert_close(
        scene.robot.soft_joint_pos_limits[8], torch.tensor([middle - half, middle + half])
    )
    assert scene.robot.joint_pos_limits[2].tolist() == pytest.approx([-1.0472, 1.0472])
    assert scene.robot.default_joint_pos[0].tolist() == pytest.approx(
        [0.1, -0.1, 0.1, -0.1, 0.8, 0.8, 1.0, 1.0, -1.5, -1.5, -1.5, -1.5]
    )
    assert scene.robot.root_pos_w[0, 2] == pytest.approx(0.4)


def test_go2_legs_reach_as_far_as_their_lengths_say(go2):
    data = mujoco.MjData(go2)
    mujoco.mj_resetDataKeyframe(go2, data, 0)
    mujoco.mj_forward(go2, data)
    down = 0.213 * math.cos(0.8) + (0.213 * math.cos(0.7) + 0.002 * math.sin(0.7))
    # the hip's turn by 0.1 rad shortens the leg and lowers its offset of 0.0955 m
    expected = 0.4 + 0.0955 * math.sin(0.1) - down * math.cos(0.1)
    assert data.body("FL_foot").xpos[2] == pytest.approx(expected, abs=1e-6)


def test_cartpole_is_a_cart_and_a_pole_within_the_tasks_bounds():
    model = mujoco.MjModel.from_xml_path(str(find_robot("cartpole").mjcf))
    assert (model.nq, model.nv, model.nu) == (2, 2, 1)
    assert model.body("cart").mass[0] == 1.0
    assert model.body("pole").mass[0] == 0.5
    assert model.body("pole").ipos.tolist() == [0, 0, 0.5]
    assert model.joint("slider_to_cart").range[1] > 3
    assert model.joint("slider_to_cart").damping[0] == 10.0


def test_an_unknown_robot_is_answered_with_the_nearest_name():
    with pytest.raises(ValueError, match=r"no robot is called 'go22'.*did you mean 'go2'"):
        find_robot("go22")


def test_describing_robots_needs_neither_torch_nor_mujoco():
    code = "import sys, sim.robots; print({'torch', 'mujoco', 'warp'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
    assert set(ROBOTS) == {"go2", "cartpole", "franka"}
