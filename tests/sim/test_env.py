"""What the env promises beyond its order, over worlds without physics."""

import pytest
import torch

from tests.sim.builders import preset_env
from tests.sim.recorded import recorded_env

REST = torch.zeros(3, 2)


def test_a_fall_on_the_last_step_counts_as_the_fall_alone():
    env = recorded_env(episode_length_s=0.04)
    env.step(REST)
    env.scene.fallen[0] = True
    feedback = env.step(REST)
    assert feedback.terminated.tolist() == [True, False, False]
    assert feedback.time_outs.tolist() == [False, True, True]
    assert feedback.log["Episode_Termination/recorded_fall"] == pytest.approx(1 / 3)
    assert feedback.log["Episode_Termination/time_out"] == pytest.approx(2 / 3)


def test_termination_log_is_the_share_of_all_worlds_by_their_last_finished_episode():
    env = recorded_env()
    env.scene.fallen[:] = torch.tensor([True, False, False])
    assert env.step(REST).log["Episode_Termination/recorded_fall"] == pytest.approx(1 / 3)
    env.scene.fallen[:] = torch.tensor([False, True, False])
    assert env.step(REST).log["Episode_Termination/recorded_fall"] == pytest.approx(2 / 3)
    # World 0 falls again: it is counted once, by its last episode.
    env.scene.fallen[:] = torch.tensor([True, False, False])
    assert env.step(REST).log["Episode_Termination/recorded_fall"] == pytest.approx(2 / 3)


def test_flags_are_bool_one_a_world_and_new_every_step():
    env = recorded_env()
    first, second = env.step(REST), env.step(REST)
    for flags in (first.terminated, first.time_outs):
        assert flags.dtype == torch.bool
        assert flags.shape == (3,)
    assert first.terminated.data_ptr() != second.terminated.data_ptr()
    assert first.reward.data_ptr() != second.reward.data_ptr()


def test_the_log_is_empty_while_no_world_finishes():
    assert recorded_env().step(REST).log == {}


@pytest.mark.parametrize(("steps", "logged"), [(1000, 1.5), (100, 0.15)])
def test_episode_reward_is_the_sum_over_the_time_limit_in_seconds(steps, logged):
    # value 1 x weight 1.5 x 0.02 s: 30.0 after 1000 steps, 3.0 after 100; over 20 s.
    env = recorded_env()
    for _ in range(steps - 1):
        feedback = env.step(REST)
        assert feedback.reward.tolist() == pytest.approx([0.03] * 3)
    assert env.rewards.episode_sums[0, 0].item() == pytest.approx(0.03 * (steps - 1), rel=1e-4)
    env.scene.fallen[:] = True
    log = env.step(REST).log
    assert log["Episode_Reward/recorded_reward"].item() == pytest.approx(logged, rel=1e-4)
    assert env.rewards.episode_sums.tolist() == [[0.0] * 3]


def test_episode_reward_is_a_mean_over_the_finished_worlds_only():
    env = recorded_env()
    for _ in range(9):
        env.step(REST)
    env.scene.fallen[0] = True
    env.step(REST)
    for _ in range(9):
        env.scene.fallen[:] = False
        env.step(REST)
    env.scene.fallen[:] = torch.tensor([True, True, False])
    # World 0 has made 10 steps since its reset, world 1 all 20.
    expected = 0.03 * (10 + 20) / 2 / 20
    log = env.step(REST).log
    assert log["Episode_Reward/recorded_reward"].item() == pytest.approx(expected, rel=1e-5)


def test_the_time_limit_reads_an_episode_length_that_was_set_from_outside():
    env = recorded_env()
    env.episode_length[:] = torch.tensor([998, 0, 999])
    assert env.step(REST).time_outs.tolist() == [False, False, True]
    assert env.step(REST).time_outs.tolist() == [True, False, False]
    assert env.episode_length.tolist() == [0, 2, 1]


def test_worlds_with_spread_ages_time_out_on_spread_steps():
    env = recorded_env(num_envs=256)
    env.episode_length.random_(0, 1000, generator=torch.Generator().manual_seed(0))
    rest = torch.zeros(256, 2)
    most = max(int(env.step(rest).time_outs.sum()) for _ in range(1000))
    assert most < 10


def test_a_bad_world_ends_as_terminated_without_reward_and_is_named():
    env = recorded_env()
    env.scene.bad[1] = True
    feedback = env.step(REST)
    assert feedback.terminated.tolist() == [False, True, False]
    assert not feedback.time_outs.any()
    assert feedback.reward.tolist() == pytest.approx([0.03, 0.0, 0.03])
    assert len(feedback.faults) == 1
    assert "world 1" in feedback.faults[0]
    assert "qvel" in feedback.faults[0]
    assert env.num_faults == 1
    assert feedback.log["Episode_Termination/bad_world"] == pytest.approx(1 / 3)
    assert feedback.log["Episode_Termination/recorded_fall"] == 0.0
    assert env.step(REST).faults == ()


def test_a_bad_world_at_its_time_limit_is_not_a_time_out():
    env = recorded_env(episode_length_s=0.02)
    env.scene.bad[0] = True
    feedback = env.step(REST)
    assert feedback.terminated.tolist() == [True, False, False]
    assert feedback.time_outs.tolist() == [False, True, True]


def test_bad_worlds_are_not_in_the_log_of_an_env_that_never_had_one():
    env = recorded_env()
    env.scene.fallen[0] = True
    assert "Episode_Termination/bad_world" not in env.step(REST).log


def test_actions_are_kept_raw_and_zeroed_by_a_reset():
    env = recorded_env()
    env.step(torch.full((3, 2), 5.0))
    env.scene.fallen[1] = True
    env.step(torch.full((3, 2), 7.0))
    assert env.actions.action[:, 0].tolist() == [7.0, 0.0, 7.0]
    assert env.actions.previous_action[:, 0].tolist() == [5.0, 0.0, 5.0]


def test_actions_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"\[3, 3\].*\[3, 2\]"):
        recorded_env().step(torch.zeros(3, 3))


def test_a_weight_of_zero_is_not_computed_and_logs_zero():
    env = recorded_env(rewards={"recorded_reward": {"weight": 0.0}})
    env.scene.fallen[:] = True
    env.scene.calls.clear()
    feedback = env.step(REST)
    assert not any(call.startswith("reward under") for call in env.scene.calls)
    assert feedback.reward.tolist() == [0.0] * 3
    assert feedback.log["Episode_Reward/recorded_reward"] == 0.0


def test_a_weight_can_be_changed_in_place_and_shows_in_reward_terms():
    env = recorded_env()
    env.rewards.weights["recorded_reward"] = 3.0
    assert env.reward_terms == {"recorded_reward": 3.0}
    assert env.step(REST).reward.tolist() == pytest.approx([0.06] * 3)


def test_a_command_metric_is_the_mean_over_each_episode():
    env = recorded_env()
    for _ in range(4):
        env.step(REST)
    # The value of worlds 1 and 2 is 1 for all four steps; a redrawn one counts from then on.
    env.commands.terms["goal"].value[0] = 5.0
    env.step(REST)
    env.scene.fallen[:2] = True
    log = env.step(REST).log
    assert log["Metrics/goal/error"].item() == pytest.approx((9 / 5 + 1.0) / 2)


def test_the_curriculum_logs_what_it_returned():
    env = recorded_env()
    env.scene.fallen[0] = True
    assert env.step(REST).log["Curriculum/recorded_curriculum"] == 7.0


def test_a_bad_worlds_reward_enters_no_sum_and_no_log():
    env = preset_env("cartpole")
    broken = torch.tensor([False, True, False, False])
    env.rewards.terms["alive"] = lambda env: torch.where(broken, torch.nan, 1.0)
    reward = env.rewards.compute(broken)
    assert reward[1] == 0
    assert reward.isfinite().all()
    assert (env.rewards.episode_sums[:, 1] == 0).all()
    log = env.rewards.reset(env.all_ids)
    assert all(value.isfinite() for value in log.values())
    env.close()
