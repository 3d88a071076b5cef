"""What the env promises, over real physics: resets, broken worlds, repeats, continuation."""

import io

import pytest
import torch

from sim.physics.base import BrokenWorldError
from tests.sim.builders import preset_env

BASE = {"num_envs": 8}


def actions_of(steps, num_envs, width=12, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(steps, num_envs, width, generator=generator)


def equal(a, b):
    """Whether two nested states are the same, bit for bit."""
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(a == b)


READINGS = (
    "root_pos_w",
    "root_quat_w",
    "root_lin_vel_b",
    "root_ang_vel_b",
    "projected_gravity_b",
    "heading_w",
    "joint_pos",
    "joint_vel",
    "body_pos_w",
)


@pytest.mark.parametrize("name", ["go2_flat", "cartpole"])
def test_the_time_limit_is_a_time_out_in_every_shipped_preset(name):
    env = preset_env(name)
    env.episode_length[:] = env.max_episode_length - 1
    feedback = env.step(torch.zeros(4, env.num_actions))
    for flags, value in ((feedback.terminated, False), (feedback.time_outs, True)):
        assert flags.dtype == torch.bool
        assert flags.tolist() == [value] * 4
    assert feedback.log["Episode_Termination/time_out"] == 1.0
    env.close()


def test_the_first_observation_after_a_reset_comes_from_the_new_state():
    env, twin = preset_env(**BASE), preset_env(**BASE)
    steps = actions_of(6, 8)
    for actions in steps[:5]:
        env.step(actions)
        twin.step(actions)
    env.scene.physics.qpos[2, 0] += 5.0
    env.episode_length[2] = env.max_episode_length - 1
    env.step(steps[5])
    twin.step(steps[5])

    robot = env.scene.robot
    readings = {name: getattr(robot, name).clone() for name in READINGS}
    env.scene.commit(env.all_ids)  # all that is derived, computed anew from the state
    robot.refresh()
    for name in READINGS:
        torch.testing.assert_close(readings[name], getattr(robot, name), rtol=0, atol=1e-5)
    distance = (robot.root_pos_w - env.scene.env_origins)[2, :2].abs()
    assert (distance <= 0.5 + 1e-5).all()
    assert (env.scene.contacts.net_forces_history[2] == 0).all()
    assert env.episode_length[2] == 0

    others = torch.tensor([0, 1, 3, 4, 5, 6, 7])
    for name in READINGS:
        assert torch.equal(readings[name][others], getattr(twin.scene.robot, name)[others])
    for ours, its in ((env.scene.physics, twin.scene.physics),):
        assert torch.equal(ours.qpos[others], its.qpos[others])
        assert torch.equal(ours.qvel[others], its.qvel[others])
    env.close()
    twin.close()


def test_the_acceleration_does_not_see_the_velocity_before_a_reset():
    env = preset_env(**BASE, events={})
    env.step(torch.zeros(8, 12))
    env.scene.physics.qvel[3, 6:] = 3.0
    env.episode_length[3] = env.max_episode_length - 1
    env.step(torch.zeros(8, 12))
    assert (env.scene.robot.joint_vel[3] == 0).all()
    assert (env.scene.robot.joint_acc[3] == 0).all()
    assert (env.scene.robot.joint_acc[0] != 0).any()
    # the next step's acceleration is that of a world that stood still: as in a new env
    fresh = preset_env(**BASE, events={})
    fresh.step(torch.zeros(8, 12))
    env.step(torch.zeros(8, 12))
    torch.testing.assert_close(
        env.scene.robot.joint_acc[3], fresh.scene.robot.joint_acc[3], rtol=1e-3, atol=1e-2
    )
    env.close()
    fresh.close()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e12])
def test_a_world_that_breaks_is_reset_and_leaves_the_others_alone(value):
    env, twin = preset_env(**BASE), preset_env(**BASE)
    steps = actions_of(5, 8)
    for actions in steps[:2]:
        env.step(actions)
        twin.step(actions)
    env.scene.physics.qvel[3, 4] = value
    feedback, expected = env.step(steps[2]), twin.step(steps[2])
    others = torch.tensor([0, 1, 2, 4, 5, 6, 7])
    assert feedback.terminated[3]
    assert not feedback.time_outs[3]
    assert feedback.reward[3] == 0.0
    assert torch.equal(feedback.reward[others], expected.reward[others])
    assert torch.equal(feedback.terminated[others], expected.terminated[others])
    assert env.num_faults == 1
    assert len(feedback.faults) == 1
    assert "world 3" in feedback.faults[0]
    assert all(torch.tensor(float(entry)).isfinite() for entry in feedback.log.values())
    for actions in (None, *steps[3:]):
        if actions is not None:
            feedback = env.step(actions)
            twin.step(actions)
            assert feedback.faults == ()
            assert feedback.reward.isfinite().all()
        assert env.observe()["policy"].isfinite().all()
        assert torch.equal(env.scene.physics.qpos[others], twin.scene.physics.qpos[others])
    assert env.rewards.episode_sums.isfinite().all()
    env.close()
    twin.close()


def test_without_the_guard_a_world_that_breaks_ends_the_step_and_is_named():
    env = preset_env(**BASE, nan_guard=False)
    env.step(torch.zeros(8, 12))
    env.scene.physics.qvel[3, 4] = torch.nan
    with pytest.raises(BrokenWorldError, match=r"world 3 went bad at step 2: its qvel") as caught:
        env.step(torch.zeros(8, 12))
    assert caught.value.broken_worlds == {3: "qvel"}
    assert preset_env(num_envs=1).nan_guard
    assert set(env.physics_state()) == {"qpos", "qvel", "ctrl", "sensordata"}
    assert all(len(tensor) == 8 for tensor in env.physics_state().values())
    env.close()


def run(env, steps):
    """All that a learner sees over some steps, with endings among them."""
    seen = []
    for actions in steps:
        feedback = env.step(actions)
        seen.append((env.observe()["policy"], *feedback[:3], dict(feedback.log)))
    return seen


@pytest.mark.parametrize(("name", "width"), [("go2_flat", 12), ("cartpole", 1)])
def test_one_seed_repeats_bit_for_bit_and_another_does_not(name, width):
    steps = 2.0 * actions_of(60, 8, width)
    envs = [preset_env(name, seed=seed, **BASE) for seed in (5, 5, 6)]
    for env in envs:
        env.episode_length[:4] = env.max_episode_length - torch.tensor([10, 20, 30, 40])
    first, second, other = (run(env, steps) for env in envs)
    assert equal(first, second)
    assert equal(envs[0].state_dict(), envs[1].state_dict())
    assert not torch.equal(first[0][0], other[0][0])
    assert sum(int((step[2] | step[3]).sum()) for step in first) >= 4
    for env in envs:
        env.close()


@pytest.mark.parametrize(("name", "width"), [("go2_flat", 12), ("cartpole", 1)])
def test_a_saved_env_continues_exactly_in_another_one(name, width):
    steps = 2.0 * actions_of(80, 8, width)
    env = preset_env(name, seed=5, **BASE)
    env.episode_length[:4] = env.max_episode_length - torch.tensor([10, 50, 60, 70])
    run(env, steps[:40])
    env.rewards.weights[next(iter(env.rewards.weights))] = 0.25
    file = io.BytesIO()
    torch.save(env.state_dict(), file)
    expected = [env.observe(), run(env, steps[40:])]

    file.seek(0)
    other = preset_env(name, seed=99, **BASE)
    run(other, steps[:3])
    other.load_state_dict(torch.load(file, weights_only=True))
    assert equal([other.observe(), run(other, steps[40:])], expected)
    assert equal(other.state_dict(), env.state_dict())
    env.close()
    other.close()


def test_a_saved_state_does_not_change_with_the_env():
    env = preset_env(**BASE)
    state = env.state_dict()
    before = state["episode_length"].clone(), state["scene"]["robot"]["joint_acc"].clone()
    run(env, actions_of(3, 8))
    assert equal(before, (state["episode_length"], state["scene"]["robot"]["joint_acc"]))
    env.close()


def test_a_state_of_other_worlds_is_refused():
    env, bigger = preset_env(**BASE), preset_env(num_envs=9)
    with pytest.raises(ValueError, match="9"):
        env.load_state_dict(bigger.state_dict())
    env.close()
    bigger.close()


def test_the_go2_stands_when_nothing_is_asked_of_it():
    env = preset_env(num_envs=16, events={})
    ended = torch.zeros(16, dtype=torch.bool)
    for _ in range(200):
        feedback = env.step(torch.zeros(16, 12))
        ended |= feedback.terminated
    assert not ended.any()
    robot = env.scene.robot
    assert (robot.root_pos_w[:, 2] > 0.2).all()
    assert (robot.projected_gravity_b[:, 2] < -0.95).all()
    assert (robot.root_lin_vel_w.abs() < 0.05).all()
    env.close()


def test_random_actions_never_give_a_number_that_is_not_finite():
    env = preset_env(num_envs=16)
    env.episode_length[:8] = 900
    steps = actions_of(50, 16)
    endings = 0
    for i in range(300):
        feedback = env.step(steps[i % 50] * (1 + i % 7))
        endings += int((feedback.terminated | feedback.time_outs).sum())
        assert feedback.reward.isfinite().all()
        assert env.observe()["policy"].isfinite().all()
    assert endings > 8
    assert env.num_faults == 0
    env.close()


def test_the_cartpole_falls_over_and_leaves_its_bounds_under_a_constant_push():
    env = preset_env("cartpole", num_envs=16)
    lasted = torch.zeros(16)
    for step in range(1, 300):
        feedback = env.step(torch.full((16, 1), 1.0))
        first = feedback.terminated & (lasted == 0)
        lasted[first] = step
        assert not feedback.time_outs.any()
        # alive 1 x step_dt at the most, ending -2 x step_dt and less
        assert (feedback.reward[feedback.terminated] <= -2 / 60).all()
        assert (feedback.reward <= 1 / 60).all()
    assert (lasted > 0).all()
    env.close()


def test_every_model_field_that_the_go2s_events_write_has_a_row_a_world_on_either_engine():
    """A field of one world's size would be written out of bounds, or shared, at thousands."""
    from sim.physics.gpu import CONSTANTS, WITHOUT_CONSTANTS

    env = preset_env(num_envs=64)
    fields = env.scene.physics.state_dict()["fields"]
    assert set(fields) == {"geom_friction", "body_mass", "body_inertia", "body_ipos"}
    for name, values in fields.items():
        assert len(values) == 64, name
        varied = (values != values[0]).any()
        # the range of the friction is a single number
        assert varied == (name != "geom_friction"), name
    # what follows from a mass is expanded with it there; friction has nothing that follows
    assert "geom_friction" in WITHOUT_CONSTANTS
    assert {"body_subtreemass", "body_invweight0", "dof_invweight0"} <= set(CONSTANTS)
    env.close()
