"""Reward weights and command ranges that change while the worlds go on."""

import pytest
import torch

from sim.env import make_env
from tests.sim.builders import preset_config, preset_env
from tests.sim.test_pose import rough_env
from trainer.env import AdjustableEnv

LIN_VEL_X = "commands.base_velocity.lin_vel_x"


def values(env):
    return {one.key: one for one in env.adjustable()}


def test_every_reward_weight_and_command_range_is_named_as_in_a_preset():
    env = preset_env("go2_flat")
    assert isinstance(env, AdjustableEnv)
    found = values(env)
    config = preset_config("go2_flat")
    weights = {f"rewards.{name}.weight": term.weight for name, term in config.rewards.items()}
    assert {key: found[key].value for key in weights} == weights
    assert set(found) - set(weights) == {
        f"commands.base_velocity.{part}"
        for part in ("lin_vel_x", "lin_vel_y", "ang_vel_z", "heading")
    }


def test_a_new_weight_counts_from_the_next_step_on():
    plain, edited = preset_env("go2_flat"), preset_env("go2_flat")
    actions = torch.zeros(4, plain.num_actions)
    for env in (plain, edited):
        env.step(actions)
    weight = values(edited)["rewards.lin_vel_z_l2.weight"].value
    edited.adjust("rewards.lin_vel_z_l2.weight", 3 * weight)
    row = list(plain.reward_terms).index("lin_vel_z_l2")
    more = edited.step(actions).reward - plain.step(actions).reward
    assert torch.allclose(more, 2 * plain.reward_values[row], atol=1e-6)
    assert edited.reward_terms["lin_vel_z_l2"] == 3 * weight


def test_a_new_range_is_drawn_from_next_and_goals_that_exist_stay():
    env = preset_env("go2_flat")
    command = env.commands.terms["base_velocity"]
    before = command.value.clone()
    env.adjust(LIN_VEL_X, (2.0, 2.5))
    assert torch.equal(command.value, before)
    env.commands.reset(env.all_ids)
    assert bool(((command.value[:, 0] >= 2.0) & (command.value[:, 0] <= 2.5)).all())
    assert env.command_ranges["base_velocity"]["lin_vel_x"] == (2.0, 2.5)
    assert command.axes[0].high == 2.5
    env.adjust("commands.base_velocity.ang_vel_z", (0.1, 0.1))
    command.is_heading.fill_(True)
    command.is_standing.zero_()
    command.update()
    assert torch.allclose(command.value[:, 2], torch.full((4,), 0.1))


def test_a_pose_is_drawn_from_a_new_range():
    env = preset_env("franka_reach")
    name = next(iter(env.commands.terms))
    env.adjust(f"commands.{name}.pos_x", (0.4, 0.41))
    env.commands.reset(env.all_ids)
    x = env.commands.terms[name].value[:, 0]
    assert bool(((x >= 0.4) & (x <= 0.41)).all())


def test_the_same_draws_follow_whether_a_range_is_edited_or_configured():
    config = preset_config("go2_flat")
    command = config.commands["base_velocity"].model_copy(update={"lin_vel_x": (0.0, 0.5)})
    configured = make_env(
        preset_config("go2_flat", commands={"base_velocity": command.model_dump()}), "cpu", 1
    )
    edited = preset_env("go2_flat")
    edited.adjust(LIN_VEL_X, (0.0, 0.5))
    for env in (configured, edited):
        env.commands.reset(env.all_ids)
    terms = [env.commands.terms["base_velocity"] for env in (configured, edited)]
    assert torch.equal(terms[0].value, terms[1].value)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("rewards.lin_vel_z_l2.weight", float("inf"), "finite"),
        (LIN_VEL_X, (1.0, -1.0), "in order"),
        (LIN_VEL_X, 1.0, "two finite numbers"),
        ("rewards.nothing.weight", 1.0, "no such number"),
    ],
)
def test_what_is_not_allowed_is_refused_and_changes_nothing(key, value, said):
    env = preset_env("go2_flat")
    before = env.adjustable()
    with pytest.raises(ValueError, match=said):
        env.adjust(key, value)
    assert env.adjustable() == before


def test_a_weight_that_a_curriculum_sets_says_so():
    rule = {"term": "modify_reward_weight", "reward": "lin_vel_z_l2", "weight": -1.0}
    env = preset_env("go2_flat", curriculum={"soften": {**rule, "num_steps": 10}})
    found = values(env)
    assert "soften sets it too" in found["rewards.lin_vel_z_l2.weight"].note
    assert found["rewards.dof_torques_l2.weight"].note == ""


def test_a_command_term_that_reads_its_ranges_once_refuses():
    env = preset_env("go2_flat")
    type(env.commands.terms["base_velocity"]).takes_ranges = False
    try:
        with pytest.raises(ValueError, match="once, at the start"):
            env.adjust(LIN_VEL_X, (0.0, 1.0))
    finally:
        type(env.commands.terms["base_velocity"]).takes_ranges = True


def test_a_state_brings_the_ranges_along_and_an_older_one_need_not():
    env, again = preset_env("go2_flat"), preset_env("go2_flat")
    env.adjust(LIN_VEL_X, (2.0, 2.5))
    state = env.state_dict()
    again.load_state_dict(state)
    assert again.command_ranges["base_velocity"]["lin_vel_x"] == (2.0, 2.5)
    for one in (env, again):
        one.commands.reset(one.all_ids)
    assert torch.equal(env.commands.value("base_velocity"), again.commands.value("base_velocity"))
    del state["commands"]["base_velocity"]["ranges"]
    older = preset_env("go2_flat")
    before = older.command_ranges["base_velocity"]
    older.load_state_dict(state)
    assert older.command_ranges["base_velocity"] == before


def test_new_worlds_take_on_what_curricula_had_reached_and_nothing_else():
    env, again = rough_env(), rough_env()
    env.adjust(LIN_VEL_X, (2.0, 2.5))
    env.adjust("rewards.lin_vel_z_l2.weight", -7.0)
    env.common_step_counter = 1500
    terrain = env.scene.terrain
    terrain.move(env.all_ids, terrain.num_levels - 1 - terrain.levels)
    state = env.state_dict()
    state["scene"] = {"terrain": state["scene"]["terrain"], "physics": "of another engine"}
    again.episode_length += 7
    again.load_progress(state)
    assert again.common_step_counter == 1500
    assert again.reward_terms["lin_vel_z_l2"] == -7.0
    assert again.command_ranges["base_velocity"]["lin_vel_x"] == (2.0, 2.5)
    assert bool((again.commands.value("base_velocity")[:, 0].abs() <= 2.5).all())
    assert torch.equal(again.scene.terrain.levels, terrain.levels)
    away = again.scene.robot.root_pos_w[:, :2] - terrain.env_origins[:, :2]
    assert bool((away.abs() < 1.0).all())
    assert again.episode_length.tolist() == [7] * again.num_envs
