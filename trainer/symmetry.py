"""Learning from the mirror image: of samples, or of the policy's own answer.

Where left and right are alike, what holds on one side holds on the other (Mittal et al. 2024,
"Symmetry considerations for learning task symmetric robot policies"). Either every mini-batch is
joined by its mirror image, or the policy pays for answering a mirrored observation with anything
but its mirrored answer, or both. The rules are RSL-RL's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.config import SymmetryConfig
from trainer.env import Env
from trainer.rollout import Samples


class Mirror(Protocol):
    """How an env looks when left and right are exchanged; done twice, nothing has changed."""

    def observations(self, observations: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Mirror observation groups, group to [..., O_g]."""
        ...

    def actions(self, actions: Tensor) -> Tensor:
        """Mirror actions [..., A]."""
        ...


class MirroredEnv(Protocol):
    """An env that has a mirror."""

    def mirror(self) -> Mirror:
        """How its observations and actions look when left and right are exchanged.

        Raises:
            ValueError: they cannot be exchanged.
        """
        ...


class Symmetry:
    """Augments mini-batches by their mirror image, and measures how unlike it the policy is.

    Args:
        config: what is done.
        mirror: of the env.
    """

    def __init__(self, config: SymmetryConfig, mirror: Mirror) -> None:
        self.config = config
        self.mirror = mirror

    def augmented(self, batch: Samples, groups: Collection[str]) -> Samples:
        """Put the mirror image of a mini-batch below it, if samples are to be augmented.

        The old log-probability, value and targets of a sample count for its image too; the old
        distribution stays that of the M samples, with which alone the KL is taken.

        Args:
            batch: M samples.
            groups: observation groups to keep.

        Returns:
            The batch itself, or 2 M samples of which the first M are the batch's.
        """
        if not self.config.use_data_augmentation:
            return batch
        observations = {group: batch.observations[group] for group in groups}
        mirrored = self.mirror.observations(observations)
        return batch._replace(
            observations={
                group: torch.cat((rows, mirrored[group])) for group, rows in observations.items()
            },
            actions=torch.cat((batch.actions, self.mirror.actions(batch.actions))),
            values=batch.values.repeat(2, 1),
            advantages=batch.advantages.repeat(2, 1),
            returns=batch.returns.repeat(2, 1),
            log_probs=batch.log_probs.repeat(2, 1),
        )

    def mirrored_observations(
        self, batch: Samples, groups: Collection[str]
    ) -> dict[str, Tensor] | None:
        """What the policy must be asked besides for the mirror loss; None: it has been asked."""
        if self.config.use_data_augmentation:
            return None
        return self.mirror.observations({group: batch.observations[group] for group in groups})

    def loss(self, means: Tensor, mirrored_means: Tensor) -> Tensor:
        """Mean squared distance of the answer to the mirror image from the mirrored answer, [].

        Only the answer to the mirror image learns from it.

        Args:
            means: the policy's answer to M observations, [M, A].
            mirrored_means: its answer to their mirror images, [M, A].
        """
        return F.mse_loss(mirrored_means, self.mirror.actions(means).detach())


def make_symmetry(config: SymmetryConfig | None, env: Env) -> Symmetry | None:
    """Make what the settings ask for; None if they ask for nothing.

    Raises:
        ValueError: the env has no mirror.
    """
    if config is None:
        return None
    if not hasattr(env, "mirror"):
        raise ValueError("trainer.symmetry needs an env with a mirror; this one has none")
    return Symmetry(config, cast(MirroredEnv, env).mirror())
