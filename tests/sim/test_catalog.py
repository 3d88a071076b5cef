"""What the catalog knows of terms, and what it says against settings that cannot work."""

import importlib
import subprocess
import sys
import time

import pytest

from sim import catalog, signatures
from sim.terms import registry
from tests.sim.builders import preset_config


def test_neither_torch_nor_mujoco_is_imported():
    program = (
        "import sys; from sim import catalog; catalog.names('rewards'); "
        "print([m for m in ('torch', 'mujoco', 'warp') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "[]", run.stderr


def test_it_names_exactly_the_registered_terms():
    for kind in catalog.KINDS:
        module = importlib.import_module(f"sim.terms.{kind}")
        ours = {
            name
            for (of, name), term in registry._terms.items()
            if of == kind and term.__module__ == module.__name__
        }
        assert set(catalog.names(kind)) == ours


def test_every_term_says_what_it_does():
    for kind in catalog.KINDS:
        for name in catalog.names(kind):
            term = catalog.signature(kind, name)
            assert len(term.doc) > 20, name
            assert all(param.annotation != "Any" for param in term.params.values()), name


def test_a_signature_has_parameters_with_annotations_and_defaults():
    term = catalog.signature("rewards", "track_lin_vel_xy_exp")
    assert list(term.params) == ["std", "command_name"]
    assert term.params["std"] == catalog.Param("PositiveFloat", catalog.REQUIRED)
    assert term.params["command_name"] == catalog.Param("CommandName", "base_velocity")
    assert term.doc.startswith("exp(-|error|^2 / std^2)")


def test_a_class_is_described_by_its_constructor():
    params = catalog.signature("commands", "uniform_velocity").params
    assert params["resampling_time"] == catalog.Param("TimeRange", (10.0, 10.0))
    assert "env" not in params
    assert "self" not in params


@pytest.mark.parametrize("name", ["go2_flat", "cartpole"])
def test_the_shipped_presets_have_no_problem(name):
    assert catalog.check_terms(preset_config(name)) == []


def problems(**changes):
    return catalog.check_terms(preset_config(**changes))


def rewards(**terms):
    return {"rewards": {name: {"weight": 1.0, **term} for name, term in terms.items()}}


WRONG = {
    "unknown term": (
        rewards(feet_air_tme={}),
        ("rewards", "feet_air_tme"),
        "not a reward term",
        "feet_air_time",
    ),
    "unknown function": (
        rewards(gait={"term": "feet_air_tme"}),
        ("rewards", "gait", "term"),
        "not a reward term",
        "feet_air_time",
    ),
    "term of another kind": (
        {"terminations": {"lin_vel_z_l2": {}}},
        ("terminations", "lin_vel_z_l2"),
        "not a termination term",
        "time_out",
    ),
    "unknown parameter": (
        rewards(track_ang_vel_z_exp={"std": 0.5, "sdt": 0.5}),
        ("rewards", "track_ang_vel_z_exp", "sdt"),
        "no parameter 'sdt'",
        "std",
    ),
    "missing parameter": (
        rewards(track_ang_vel_z_exp={}),
        ("rewards", "track_ang_vel_z_exp"),
        "needs the parameter 'std'",
        None,
    ),
    "text for a number": (
        rewards(track_ang_vel_z_exp={"std": "wide"}),
        ("rewards", "track_ang_vel_z_exp", "std"),
        "positive number, not 'wide'",
        None,
    ),
    "zero where a positive number is needed": (
        rewards(track_ang_vel_z_exp={"std": 0.0}),
        ("rewards", "track_ang_vel_z_exp", "std"),
        "positive number, not 0.0",
        None,
    ),
    "truth for a number": (
        rewards(base_height_l2={"target_height": True}),
        ("rewards", "base_height_l2", "target_height"),
        "a number, not True",
        None,
    ),
    "range in the wrong order": (
        {"commands": {"base_velocity": {"term": "uniform_velocity", "heading": [1.0, -1.0]}}},
        ("commands", "base_velocity", "heading"),
        "not in the order",
        None,
    ),
    "three numbers for a range": (
        {"commands": {"base_velocity": {"term": "uniform_velocity", "heading": [0, 1, 2]}}},
        ("commands", "base_velocity", "heading"),
        "two numbers",
        None,
    ),
    "unknown axis": (
        {
            "events": {
                "push": {
                    "term": "push_by_setting_velocity",
                    "mode": "reset",
                    "velocity_range": {"vx": [0, 1]},
                }
            }
        },
        ("events", "push", "velocity_range"),
        "no axis 'vx'",
        None,
    ),
    "unknown choice": (
        {
            "events": {
                "mass": {
                    "term": "randomize_rigid_body_mass",
                    "mode": "startup",
                    "bodies": "base",
                    "scale_range": [0.5, 2.0],
                    "distribution": "normal",
                }
            }
        },
        ("events", "mass", "distribution"),
        "uniform, log_uniform",
        "log_uniform",
    ),
    "a scale that could be negative": (
        {
            "events": {
                "mass": {
                    "term": "randomize_rigid_body_mass",
                    "mode": "startup",
                    "bodies": "base",
                    "scale_range": [0.0, 2.0],
                }
            }
        },
        ("events", "mass", "scale_range"),
        "two positive numbers",
        None,
    ),
    "unknown command": (
        rewards(track_ang_vel_z_exp={"std": 0.5, "command_name": "base_speed"}),
        ("rewards", "track_ang_vel_z_exp", "command_name"),
        "no command 'base_speed'",
        "base_velocity",
    ),
    "body that the robot lacks": (
        rewards(undesired_contacts={"bodies": [".*_foot", ".*_wheel"]}),
        ("rewards", "undesired_contacts", "bodies"),
        "'.*_wheel'",
        "FL_foot",
    ),
    "joint that the robot lacks": (
        rewards(joint_vel_l2={"joints": "elbow"}),
        ("rewards", "joint_vel_l2", "joints"),
        "'elbow'",
        "FL_hip_joint",
    ),
    "no pattern": (
        rewards(joint_vel_l2={"joints": "FL_(hip"}),
        ("rewards", "joint_vel_l2", "joints"),
        "is not a pattern",
        None,
    ),
    "time limit that is not called one": (
        {"terminations": {"time_out": {}}},
        ("terminations", "time_out", "time_out"),
        "time_out = true",
        None,
    ),
    "time limit by another key": (
        {"terminations": {"limit": {"term": "time_out"}}},
        ("terminations", "limit", "time_out"),
        "time_out = true",
        None,
    ),
    "terrain curriculum on flat ground": (
        {"curriculum": {"terrain_levels": {"term": "terrain_levels_vel"}}},
        ("curriculum", "terrain_levels"),
        "needs terrain with levels",
        None,
    ),
    "terms of a free base on a fixed one": (
        {
            "robot": "cartpole",
            "actions": {"joint_effort": {}},
            "commands": {},
            "observations": {"policy": {"last_action": {}}},
            "rewards": {},
            "terminations": {},
            "events": {
                "push": {
                    "term": "push_by_setting_velocity",
                    "mode": "reset",
                    "velocity_range": {},
                }
            },
        },
        ("events", "push"),
        "the cartpole is fixed to the ground: 'push_by_setting_velocity' cannot move its base",
        None,
    ),
    "time before now": (
        {"commands": {"base_velocity": {"term": "uniform_velocity", "resampling_time": [-1, 1]}}},
        ("commands", "base_velocity", "resampling_time"),
        "two times of at least 0 s",
        None,
    ),
    "interval of less than nothing": (
        {
            "events": {
                "push": {
                    "term": "push_by_setting_velocity",
                    "mode": "interval",
                    "interval_range_s": [-5.0, -1.0],
                    "velocity_range": {},
                }
            }
        },
        ("events", "push", "interval_range_s"),
        "two times of at least 0 s",
        None,
    ),
    "a group with nothing in it": (
        {"observations": {"policy": {"last_action": {}}, "extra": {}}},
        ("observations", "extra"),
        "the group has no observation in it",
        None,
    ),
    "unknown robot": ({"robot": "go3"}, ("robot",), "no robot 'go3'", "go2"),
    "noise in the wrong order": (
        {"observations": {"policy": {"last_action": {"noise": [1.0, -1.0]}}}},
        ("observations", "policy", "last_action", "noise"),
        "not in the order",
        None,
    ),
    "nothing to act with": ({"actions": {}}, ("actions",), "at least one action", None),
    "nothing to observe": (
        {"observations": {"policy": {}}},
        ("observations",),
        "at least one observation",
        None,
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_it_finds(case):
    changes, path, message, allowed = WRONG[case]
    found = problems(**changes)
    assert len(found) == 1, found
    assert found[0].path == ("env", *path)
    assert message in found[0].message
    if allowed is None:
        assert found[0].allowed == ()
    else:
        assert allowed in found[0].allowed


def test_a_default_that_names_a_missing_command_is_found():
    found = problems(commands={}, observations={"policy": {"last_action": {}}})
    assert {problem.path[2] for problem in found} >= {"track_lin_vel_xy_exp", "feet_air_time"}


def test_all_problems_are_reported_at_once_in_the_order_of_the_settings():
    found = problems(robot="go3", actions={"a": {}}, rewards={"b": {"weight": 1.0}})
    assert [problem.path for problem in found] == [
        ("env", "robot"),
        ("env", "actions", "a"),
        ("env", "rewards", "b"),
    ]


OWN = '''
from sim.terms.parameters import ContactBodies
from sim.terms.registry import reward

@reward
def gait(env, period: float, bodies: ContactBodies = ".*_foot"):
    """A gait of this period, s, [N]."""
    return env.scene.contacts.current_air_time[:, bodies].sum(1) * period

def not_a_term(env):
    return 0
'''


def test_a_persons_own_terms_stand_beside_ours(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    assert "gait" not in catalog.names("rewards")
    assert {"gait", "feet_air_time"} <= set(catalog.names("rewards", [path]))
    assert "not_a_term" not in catalog.names("rewards", [path])
    assert catalog.signature("rewards", "gait", [path]).params["period"].annotation == "float"
    config = preset_config(rewards={"gait": {"weight": 1.0}})
    assert "needs the parameter 'period'" in catalog.check_terms(config, [path])[0].message


def test_an_env_runs_with_a_persons_own_terms(tmp_path):
    from sim.env import make_env

    path = tmp_path / "mine.py"
    path.write_text(OWN)
    config = preset_config(rewards={"gait": {"weight": 1.0, "period": 2.0}})
    env = make_env(config, "cpu", 0, [path])
    import torch

    for _ in range(3):
        reward = env.step(torch.zeros(4, 12)).reward
    feet = [i for i, name in enumerate(env.scene.contacts.body_names) if name.endswith("_foot")]
    air = env.scene.contacts.current_air_time[:, feet].sum(1)
    torch.testing.assert_close(reward, air * 2.0 * 0.02)
    env.close()


def test_an_env_is_not_built_from_settings_with_a_problem():
    from sim.env import make_env

    with pytest.raises(ValueError, match=r"env\.robot: there is no robot 'go3'"):
        make_env(preset_config(robot="go3"), "cpu", 0)


def test_reading_and_checking_is_cheap():
    config = preset_config()
    spent = []
    for _ in range(3):
        signatures.read_terms.cache_clear()
        catalog.robot_parts.cache_clear()
        start = time.process_time()
        catalog.check_terms(config)
        spent.append(time.process_time() - start)
    assert min(spent) < 0.03
