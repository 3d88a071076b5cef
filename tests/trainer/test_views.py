"""The small picture of a rollout holds what its tensors hold."""

import math
import time

import numpy as np
import pytest
import torch

from tests.trainer.toy_env import ToyEnv
from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.episodes import WINDOW, EpisodeStatistics
from trainer.looking import Looking
from trainer.loop import Trainer
from trainer.rollout import Rollout
from trainer.stages import Stage
from trainer.targets import compute_returns
from trainer.telemetry import Position
from trainer.views import MAX_BINS, EpisodesPicture, RolloutPicture

GAMMA = 0.9


def filled(num_steps=6, num_envs=5, ends=0.4):
    """A full rollout with its targets, V(obs_T), and which ends are time-outs."""
    torch.manual_seed(3)
    rollout = Rollout(num_steps, num_envs, {"policy": 2}, 3, "cpu")
    for tensor in (rollout.rewards, rollout.values, rollout.log_probs, rollout.actions):
        tensor.normal_()
    rollout.dones.copy_(torch.rand(num_steps, num_envs, 1) < ends)
    time_outs = rollout.dones & (torch.rand(num_steps, num_envs, 1) < 0.5)
    last = torch.randn(num_envs, 1)
    compute_returns(rollout, last, GAMMA, 0.95)
    return rollout, last, time_outs[:, :, 0].float()


def test_td_errors_are_the_definition_step_by_step_to_the_last():
    rollout, last, time_outs = filled()
    view = RolloutPicture(rollout, 6, GAMMA, time_outs, has_targets=True).view()
    for n in range(5):
        for t in range(6):
            following = last[n] if t == 5 else rollout.values[t + 1, n]
            goes_on = 1 - rollout.dones[t, n].float()
            expected = rollout.rewards[t, n] + GAMMA * goes_on * following - rollout.values[t, n]
            assert view.td_error[t, n] == pytest.approx(float(expected), abs=1e-5)


def test_of_a_rollout_that_fills_the_next_value_of_the_last_row_is_not_known():
    rollout, _, time_outs = filled()
    whole = RolloutPicture(rollout, 6, GAMMA, time_outs, has_targets=True).view()
    half = RolloutPicture(rollout, 3, GAMMA, time_outs).view()
    assert np.allclose(half.td_error[:2], whole.td_error[:2])
    assert np.isnan(half.td_error[2:]).all()
    assert half.advantage is None
    assert whole.advantage is not None
    stored = RolloutPicture(rollout, 6, GAMMA, time_outs).view()  # before its targets are made
    assert stored.advantage is None
    assert np.isnan(stored.td_error[5]).all()
    assert np.allclose(stored.td_error[:5], whole.td_error[:5])
    for name in ("value", "action_norm", "log_prob", "terminated", "time_out"):
        assert np.allclose(getattr(half, name)[:3], getattr(whole, name)[:3])
        assert np.isnan(getattr(half, name)[3:]).all()


def test_every_number_is_the_mean_over_the_worlds_of_a_bin():
    rollout, _, time_outs = filled(4, 2 * MAX_BINS + 1)
    view = RolloutPicture(rollout, 4, GAMMA, time_outs).view()
    bins = np.arange(rollout.num_envs) * MAX_BINS // rollout.num_envs
    first = bins == 0
    means = {
        "value": rollout.values[:, first, 0],
        "action_norm": rollout.actions[:, first].norm(dim=-1),
        "log_prob": rollout.log_probs[:, first, 0],
        "time_out": time_outs[:, first],
        "terminated": rollout.dones[:, first, 0].float() - time_outs[:, first],
    }
    for name, worlds in means.items():
        assert np.allclose(getattr(view, name)[:, 0], worlds.mean(1).numpy(), atol=1e-6), name
    assert (view.done == ((view.terminated > 0) | (view.time_out > 0))).all()


def test_an_empty_rollout_is_no_picture_but_no_fault_either():
    rollout, _, time_outs = filled()
    view = RolloutPicture(rollout, 0, GAMMA, time_outs).view()
    assert view.filled == 0
    assert np.isnan(view.td_error).all()
    assert not view.done.any()


def test_the_last_episodes_are_told_one_by_one_and_no_more_than_there_were():
    statistics = EpisodeStatistics(3, torch.device("cpu"))
    assert EpisodesPicture(statistics).view().returns.size == 0
    for step in range(1, 5):  # world n ends at step n + 2
        done = torch.tensor([step == 2, step == 3, step == 4])
        statistics.add(torch.tensor([1.0, 2.0, 3.0]), done)
    view = EpisodesPicture(statistics).view()
    assert view.returns.tolist() == [2.0, 6.0, 12.0]
    assert view.lengths.tolist() == [2, 3, 4]
    for _ in range(60):
        statistics.add(torch.ones(3), torch.ones(3, dtype=torch.bool))
    later = EpisodesPicture(statistics).view()
    assert later.returns.size == later.lengths.size == WINDOW
    assert view.returns.tolist() == [2.0, 6.0, 12.0]  # a copy


class Ends(ToyEnv):
    """World 0 falls, world 1 runs out of time, the others go on."""

    def step(self, actions):
        feedback = super().step(actions)
        terminated, time_outs = (torch.zeros(self.num_envs, dtype=torch.bool) for _ in range(2))
        terminated[0], time_outs[1] = True, True
        return feedback._replace(terminated=terminated, time_outs=time_outs)


def looking_at(watched_rows):
    """Look at a rollout of two steps, of which only some are watched."""
    config = TrainerConfig(
        num_steps_per_env=2,
        actor=ActorConfig(hidden_dims=[4]),
        critic=CriticConfig(hidden_dims=[4]),
        seed=1,
    )
    trainer, looking = Trainer(Ends(), config), Looking()
    looking.attach(trainer)
    for row in range(2):
        trainer.observe()
        trainer.act_step()
        trainer.store()
        looking._look_time = time.monotonic() if row in watched_rows else -math.inf
        looking.refresh_rollout(Position(0, Stage.STORE, row + 1))
    return looking._pictured(Position(0, Stage.TARGETS, 2)).view()


def test_falls_and_time_outs_are_told_apart_where_somebody_watched():
    view = looking_at({0, 1})
    assert view.terminated[:, :3].tolist() == [[1, 0, 0]] * 2
    assert view.time_out[:, :3].tolist() == [[0, 1, 0]] * 2


def test_where_nobody_watched_an_end_is_known_but_not_of_which_kind():
    view = looking_at({1})
    assert np.isnan(view.terminated[0]).all()
    assert np.isnan(view.time_out[0]).all()
    assert view.time_out[1, :3].tolist() == [0, 1, 0]
    assert view.done[:, :3].tolist() == [[True, True, False]] * 2


def looks_in_step(row_seconds, monkeypatch):
    """Look at the end of each iteration; return how many rows were to be seen at every moment."""
    config = TrainerConfig(
        num_steps_per_env=4,
        actor=ActorConfig(hidden_dims=[4]),
        critic=CriticConfig(hidden_dims=[4]),
        seed=1,
    )
    clock = [100.0]
    monkeypatch.setattr("trainer.looking.time.perf_counter", lambda: clock[0])
    trainer, looking = Trainer(Ends(), config), Looking()
    looking.attach(trainer)
    looking.looked_at()
    shown = []
    for _ in range(3):
        for row in range(4):
            clock[0] += row_seconds
            trainer.observe()
            trainer.act_step()
            trainer.store()
            looking.refresh_rollout(Position(0, Stage.STORE, row + 1))
            shown.append(looking.rollout.filled)
        trainer.targets()
        looking.refresh_rollout(Position(0, Stage.TARGETS, 4))
        shown.append(looking.rollout.filled)
        looking.looked_at()
        trainer.fresh()
    return shown, looking.rollout


def test_a_rollout_that_fills_fast_is_shown_only_when_it_is_full(monkeypatch):
    shown, view = looks_in_step(0.05, monkeypatch)
    assert shown == [1] * 5 + [1, 1, 1, 1, 4] + [4, 4, 4, 4, 4]
    assert view.advantage is not None


def test_a_rollout_that_fills_slowly_is_shown_as_it_fills(monkeypatch):
    shown, _ = looks_in_step(0.4, monkeypatch)
    assert shown == [1] * 5 + [1, 1, 3, 3, 3] + [3, 3, 3, 3, 3]
