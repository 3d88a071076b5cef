"""Small pictures of large tensors, for the telemetry."""

from __future__ import annotations

import numpy as np

from trainer.rollout import Rollout
from trainer.telemetry import RolloutView

MAX_BINS = 128
"""Columns of the picture of a rollout; more worlds than this share columns."""


def rollout_view(rollout: Rollout, filled: int) -> RolloutView:
    """Bin the worlds of a rollout to at most `MAX_BINS` columns.

    Steps that ended an episode are left out of the mean reward: a time-out's holds the bootstrap.
    A bin in which all worlds ended shows as NaN, and as done.

    Args:
        rollout: the rollout, `filled` rows of which belong to the present iteration.
        filled: 0 to T.
    """
    num_bins = min(rollout.num_envs, MAX_BINS)
    edges = np.arange(num_bins) * rollout.num_envs // num_bins
    reward = np.full((rollout.num_steps, num_bins), np.nan, np.float32)
    done = np.zeros((rollout.num_steps, num_bins), np.bool_)
    if filled:
        ended = rollout.dones[:filled, :, 0].cpu().numpy()
        rewards = np.where(ended, 0, rollout.rewards[:filled, :, 0].cpu().numpy())
        going = np.add.reduceat(~ended, edges, axis=1, dtype=np.int64)
        done[:filled] = np.logical_or.reduceat(ended, edges, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            reward[:filled] = np.add.reduceat(rewards, edges, axis=1) / going
    return RolloutView(reward, done, rollout.num_envs, filled)
