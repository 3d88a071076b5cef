"""What actor and critic are trained towards: advantages and returns."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from trainer.distributed import Group, Moments
from trainer.rollout import Rollout


def bootstrap_time_outs(
    reward: Tensor,
    values: Tensor,
    time_outs: Tensor,
    gamma: float,
    terminated: Tensor | None = None,
) -> Tensor:
    """Add to the reward what an episode cut by its time limit would have gone on to earn.

    That is gamma V of the observation before the step, as in RSL-RL: the observation after it is
    already the first of the next episode.

    Args:
        reward: [N].
        values: V of the observation before the step, [N, 1].
        time_outs: worlds cut at their time limit, [N] bool.
        gamma: discount for each env step.
        terminated: worlds that fell, [N] bool; a fall wins over the time limit.

    Returns:
        A new tensor, [N].
    """
    if terminated is not None:
        time_outs = time_outs & ~terminated
    return torch.where(time_outs, reward + gamma * values.view(-1), reward)


@torch.no_grad()
def generalized_advantages(
    rewards: Tensor,
    dones: Tensor,
    values: Tensor,
    last_values: Tensor,
    gamma: float,
    lam: float,
    out: Tensor | None = None,
) -> Tensor:
    """Generalised advantage estimation (Schulman et al. 2016), backward in time.

    δ_t = r_t + γ (1 - done_t) V_{t+1} - V_t and A_t = δ_t + γ λ (1 - done_t) A_{t+1}: a done keeps
    the value and the advantage of the next episode out.

    Args:
        rewards: with the time-out bootstrap added, [T, N, 1].
        dones: terminated or timed out, [T, N, 1] bool.
        values: V of the observations, [T, N, 1].
        last_values: V of the observations after the last step, [N, 1].
        gamma: discount for each env step.
        lam: λ.
        out: where to write, [T, N, 1].

    Returns:
        The advantages, [T, N, 1].
    """
    discount = torch.logical_not(dones).to(rewards.dtype).mul_(gamma)
    advantages = torch.empty_like(rewards) if out is None else out
    next_values = torch.cat((values[1:], last_values.unsqueeze(0)))
    torch.addcmul(rewards - values, discount, next_values, out=advantages)  # δ for all steps
    decay = discount.mul_(lam)
    for t in range(rewards.shape[0] - 2, -1, -1):
        advantages[t].addcmul_(decay[t], advantages[t + 1])
    return advantages


@torch.no_grad()
def compute_returns(rollout: Rollout, last_values: Tensor, gamma: float, lam: float) -> None:
    """Write advantages (not normalised yet) and returns = advantages + values into the rollout.

    Args:
        rollout: T filled steps.
        last_values: V of the observations after the last step, [N, 1].
        gamma: discount for each env step.
        lam: GAE's λ.
    """
    generalized_advantages(
        rollout.rewards,
        rollout.dones,
        rollout.values,
        last_values,
        gamma,
        lam,
        out=rollout.advantages,
    )
    torch.add(rollout.advantages, rollout.values, out=rollout.returns)


@torch.no_grad()
def normalize_advantages(
    advantages: Tensor, eps: float = 1e-8, group: Group | None = None
) -> Tensor:
    """Shift and scale in place to mean 0 and (unbiased) standard deviation 1, over all entries.

    Args:
        advantages: of any shape.
        eps: added to the standard deviation.
        group: the ranks whose advantages are normalised together, where RSL-RL lets each rank
            normalise its own; unset: this process alone.
    """
    std, mean = _std_mean(advantages, group)
    return advantages.sub_(mean).div_(std + eps)


@torch.no_grad()
def target_metrics(rollout: Rollout, group: Group | None = None) -> dict[str, float]:
    """Describe the targets of all ranks together; call it before the advantages are normalised.

    Returns:
        `Loss/advantage_mean`, `Loss/advantage_std` and `Loss/explained_variance`, which is
        1 - var(R - V) / var(R): 1 for a perfect critic, 0 for one that knows the mean alone, NaN
        where all returns are equal.
    """
    # R - V is the advantage itself.
    std, mean = _std_mean(rollout.advantages, group)
    alone = group is None or group.world_size == 1
    var = rollout.returns.var() if alone else _std_mean(rollout.returns, group)[0].square()
    advantage_mean, advantage_std, return_var = torch.stack((mean, std, var)).tolist()
    explained = 1.0 - advantage_std**2 / return_var if return_var > 0.0 else math.nan
    return {
        "Loss/advantage_mean": advantage_mean,
        "Loss/advantage_std": advantage_std,
        "Loss/explained_variance": explained,
    }


def _std_mean(values: Tensor, group: Group | None) -> tuple[Tensor, Tensor]:
    """Unbiased standard deviation and mean over all entries of all ranks, [] each."""
    if group is None or group.world_size == 1:
        std, mean = torch.std_mean(values)
        return std, mean
    var, mean = torch.var_mean(values, correction=0)
    own = Moments(values.numel(), mean.view(1, 1), var.view(1, 1))
    count, mean, var = group.merge_moments(own)
    return (var * (count / (count - 1))).sqrt().squeeze(), mean.squeeze()
