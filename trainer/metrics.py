"""What one update says of itself: metrics under RSL-RL's tags, and a view for the screen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from trainer.telemetry import Floats, UpdateView
from trainer.update import MiniBatchResult

NUM_RATIO_BINS = 41
"""An odd number, so that a ratio of 1 lies in the middle of a bin."""
RATIO_RANGE = (0.5, 1.5)


def update_metrics(results: Sequence[MiniBatchResult], std: Tensor) -> dict[str, float]:
    """Summarise the optimizer steps of one update.

    Args:
        results: one for each optimizer step, in the order run.
        std: standard deviation of each action after the update, [A].

    Returns:
        Means over the steps, but for `Loss/kl_max` and for the rate, which is the last one used.
    """

    def mean(values: Sequence[float]) -> float:
        return sum(values) / len(values)

    extensions = {
        f"Loss/{name}": mean([value for value in values if value is not None])
        for name, values in (
            ("rnd", [result.rnd for result in results]),
            ("symmetry", [result.symmetry for result in results]),
        )
        if values[0] is not None
    }
    smallest, average = torch.stack((std.detach().min(), std.detach().mean())).tolist()
    kls = [result.kl for result in results]
    return {
        "Loss/value": mean([result.value_loss for result in results]),
        "Loss/surrogate": mean([result.surrogate for result in results]),
        "Loss/entropy": mean([result.entropy for result in results]),
        **extensions,
        "Loss/learning_rate": results[-1].learning_rate,
        "Loss/kl_mean": mean(kls),
        "Loss/kl_max": max(kls),
        "Loss/clip_fraction": mean([result.clip_fraction for result in results]),
        "Loss/actor_grad_norm": mean([result.actor_grad_norm for result in results]),
        "Loss/critic_grad_norm": mean([result.critic_grad_norm for result in results]),
        "Policy/mean_std": average,
        "Policy/min_std": smallest,
    }


def update_view(results: Sequence[MiniBatchResult], std: Tensor) -> UpdateView:
    """Describe one update mini-batch by mini-batch.

    Args:
        results: one for each optimizer step, in the order run.
        std: standard deviation of each action after the update, [A].
    """
    histograms = torch.stack(
        [ratio_histogram(results[0].ratio), ratio_histogram(results[-1].ratio)]
    )
    first, last = histograms.cpu().numpy()
    return UpdateView(
        kl=_floats([result.kl for result in results]),
        learning_rate=_floats([result.learning_rate for result in results]),
        clip_fraction=_floats([result.clip_fraction for result in results]),
        ratio_edges=np.linspace(*RATIO_RANGE, NUM_RATIO_BINS + 1, dtype=np.float32),
        ratio_first=first,
        ratio_last=last,
        action_std=std.detach().cpu().numpy().astype(np.float32),
    )


def ratio_histogram(ratio: Tensor) -> Tensor:
    """Count the ratios in even bins over `RATIO_RANGE`, on their own device, [bins] int64.

    The outer bins take what lies beyond.
    """
    low, high = RATIO_RANGE
    inside = ratio.detach().clamp(low, high)
    return torch.histc(inside, NUM_RATIO_BINS, low, high).to(torch.int64)


def _floats(values: Sequence[float]) -> Floats:
    return np.asarray(values, np.float32)
