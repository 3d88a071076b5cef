from types import SimpleNamespace

import pytest
import torch

from sim.controller import describe_controller
from sim.robots import ROBOTS
from sim.terms.actions import JointPositionAction
from tests.sim.builders import preset_config, preset_env
from tests.sim.test_pose import rough_env

PER_ACTION = (
    "joint_names",
    "action_kind",
    "action_scale",
    "action_offset",
    "default_joint_pos",
    "stiffness",
    "damping",
    "effort_limit",
)


@pytest.mark.parametrize("name", ["go2_flat", "franka_reach", "cartpole", "cartpole_direct"])
def test_every_preset_tells_a_controller_one_number_for_each_action(name):
    env = preset_env(name)
    told = describe_controller(env, ["policy"])
    for key in PER_ACTION:
        assert len(told[key]) == env.num_actions, key
        assert None not in told[key]
    assert tuple(told["joint_names"]) == env.action_names
    assert sum(part["size"] for part in told["observations"]) == env.observe()["policy"].shape[1]
    assert told["control_dt"] == pytest.approx(env.step_dt)
    assert told["control_dt"] == pytest.approx(told["physics_dt"] * told["decimation"])
    assert told["quaternion_order"] == "wxyz"


def test_gains_are_those_of_the_motors():
    told = describe_controller(preset_env("franka_reach"), ["policy"])
    assert told["stiffness"] == [80.0] * 7
    assert told["effort_limit"] == [87.0] * 4 + [12.0] * 3
    told = describe_controller(preset_env("go2_flat"), ["policy"])
    assert (told["stiffness"], told["damping"]) == ([25.0] * 12, [0.5] * 12)
    told = describe_controller(preset_env("cartpole_direct"), ["policy"])
    assert told["action_kind"] == ["effort"]
    assert told["action_scale"] == [100.0]
    assert told["stiffness"] == [0.0]


def test_targets_are_the_offset_plus_the_scaled_action():
    """The formula that the metadata state is the one that the worlds compute with."""
    env = preset_env("go2_flat")
    told = describe_controller(env, ["policy"])
    action = torch.randn(4, 12, generator=torch.Generator().manual_seed(0))
    env.actions.process(action)
    target = torch.tensor(told["action_offset"]) + torch.tensor(told["action_scale"]) * action
    torch.testing.assert_close(env.actions.terms["joint_pos"].target, target)
    assert told["action_offset"] == told["default_joint_pos"]


def test_an_action_moves_a_joint_from_its_default():
    default = torch.tensor([0.1, 0.8, -1.5, -0.1, 0.8, -1.5])
    names = tuple(f"joint_{i}" for i in range(6))
    robot = SimpleNamespace(
        name="six",
        joint_names=names,
        actuated_joint_ids=list(range(6)),
        default_joint_pos=default.repeat(2, 1),
    )
    env = SimpleNamespace(
        num_envs=2, device=torch.device("cpu"), scene=SimpleNamespace(robot=robot)
    )
    term = JointPositionAction(env, scale=0.25)
    term.process(torch.tensor([[1.0, 0, 0, 0, 0, -1.0]]).repeat(2, 1))
    wanted = [0.35, 0.8, -1.5, -0.1, 0.8, -1.75]
    assert term.target[0].tolist() == pytest.approx(wanted)
    columns = zip(term.columns(), [1, 0, 0, 0, 0, -1], strict=True)
    by_formula = [column.offset + column.scale * action for column, action in columns]
    assert by_formula == pytest.approx(wanted)


def test_an_observation_can_be_built_from_what_is_told():
    """Each part by its name, order, clip and scale, all unlike, as another program would."""
    groups = preset_config("go2_flat").model_dump()["observations"]
    policy = {
        name: {**term, "noise": None, "scale": 0.5 + i, "clip": (-0.4 - i / 10, 0.6)}
        for i, (name, term) in enumerate(groups["policy"].items())
    }
    env = preset_env("go2_flat", observations={"policy": policy})
    for action in torch.randn(5, 4, 12, generator=torch.Generator().manual_seed(1)):
        env.step(action)
    told = describe_controller(env, ["policy"])
    robot = env.scene.robot
    default = torch.tensor(told["observed_default_joint_pos"])
    measured = {
        "base_lin_vel": robot.root_lin_vel_b,
        "base_ang_vel": robot.root_ang_vel_b,
        "projected_gravity": robot.projected_gravity_b,
        "velocity_commands": env.commands.value("base_velocity"),
        "joint_pos_rel": robot.joint_pos - default,
        "joint_vel_rel": robot.joint_vel,
        "last_action": env.actions.action,
    }
    built = torch.empty(4, sum(part["size"] for part in told["observations"]))
    for part in told["observations"]:
        value = measured[part["name"]].clamp(*part["clip"]) * part["scale"]
        built[:, part["start"] : part["start"] + part["size"]] = value
    torch.testing.assert_close(built, env.observe()["policy"], rtol=0, atol=0)
    assert told["observed_joint_names"] == list(ROBOTS["go2"].joint_names)


def test_a_height_scan_brings_its_grid_along():
    told = describe_controller(rough_env(), ["policy"])
    scan = told["observations"][-1]
    assert (scan["name"], scan["start"], scan["size"]) == ("height_scan", 48, 187)
    assert scan["clip"] == [-1.0, 1.0]
    assert scan["params"]["resolution"] == 0.1
    assert "grid" in scan["meaning"]


def test_groups_follow_each_other_in_the_policys_order():
    groups = preset_config("go2_flat").model_dump()["observations"]
    env = preset_env("go2_flat", observations={**groups, "more": {"base_pos_z": {}}})
    told = describe_controller(env, ["more", "policy"])
    first, second = told["observations"][:2]
    assert (first["group"], first["name"], first["start"]) == ("more", "base_pos_z", 0)
    assert (second["group"], second["start"]) == ("policy", 1)
