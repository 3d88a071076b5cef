"""Rules that change the difficulty with progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from sim.config import FiniteFloat, PositiveInt
from sim.terms.parameters import RewardName
from sim.terms.registry import curriculum

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv


@curriculum
def modify_reward_weight(
    env: ManagerBasedEnv,
    ids: Tensor,
    reward: RewardName,
    weight: FiniteFloat,
    num_steps: PositiveInt,
) -> float:
    """Give a reward term another weight after `num_steps` env steps; return the weight in force."""
    if env.common_step_counter > num_steps:
        env.rewards.weights[reward] = weight
    return env.rewards.weights[reward]
