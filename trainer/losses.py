"""PPO's loss terms, and the rule by which the KL moves the learning rate."""

from __future__ import annotations

import torch
from torch import Tensor

MIN_LEARNING_RATE = 1e-5
MAX_LEARNING_RATE = 1e-2
LEARNING_RATE_FACTOR = 1.5
KL_ROUNDING = 1e-6
"""Up to this the KL of a policy that has not moved is rounding noise."""


def surrogate_losses(ratio: Tensor, advantages: Tensor, clip_param: float) -> Tensor:
    """The clipped surrogate of each sample, negated: max(-A r, -A clip(r, 1 - ε, 1 + ε)).

    Args:
        ratio: new over old probability of the stored action, [M, 1].
        advantages: [M, 1].
        clip_param: ε.

    Returns:
        [M, 1]; the mean is minimised (Schulman et al. 2017, equation 7).
    """
    clipped = ratio.clamp(1.0 - clip_param, 1.0 + clip_param)
    return -torch.minimum(advantages * ratio, advantages * clipped)


def value_losses(
    values: Tensor, old_values: Tensor, returns: Tensor, clip_param: float | None
) -> Tensor:
    """Squared error of each value; with clipping the worse of the plain and the clipped one.

    Args:
        values: of the critic now, [M, 1].
        old_values: of the critic of the rollout, as stored, [M, 1].
        returns: [M, 1].
        clip_param: how far the clipped value may lie from the old one; None: no clipping.

    Returns:
        [M, 1]; there is no factor of one half.
    """
    errors = (values - returns).square()
    if clip_param is None:
        return errors
    clipped = old_values + (values - old_values).clamp(-clip_param, clip_param)
    return torch.maximum(errors, (clipped - returns).square())


def adapt_learning_rate(
    learning_rate: float, kl: float, desired_kl: float, *, unmoved: bool = False
) -> float:
    """Divide the rate by 1.5 above twice the desired KL, multiply by 1.5 below half of it.

    A KL of 0 leaves the rate as it is. It is kept within 1e-5 to 1e-2.

    Args:
        learning_rate: in force so far.
        kl: mean KL(old || new).
        desired_kl: what the schedule aims at.
        unmoved: no step has been taken since the rollout: a KL up to `KL_ROUNDING` is then taken
            for the 0 that it stands for, where RSL-RL raises the rate for rounding noise.
    """
    if unmoved and kl <= KL_ROUNDING:
        return learning_rate
    if kl > 2.0 * desired_kl:
        return max(MIN_LEARNING_RATE, learning_rate / LEARNING_RATE_FACTOR)
    if 0.0 < kl < desired_kl / 2.0:
        return min(MAX_LEARNING_RATE, learning_rate * LEARNING_RATE_FACTOR)
    return learning_rate
