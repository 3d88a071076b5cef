"""Stage 5: one partition of the rollout into mini-batches, the same for all epochs of an update."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor

from trainer.config import require_even_blocks, require_even_split
from trainer.guard import check_rollout
from trainer.recurrent import Sequences, cut
from trainer.rollout import Rollout, Samples


class MiniBatches(ABC):
    """A rollout cut into mini-batches; what they hold is read from the rollout when asked for."""

    @abstractmethod
    def __len__(self) -> int:
        """How many there are."""

    @abstractmethod
    def __getitem__(self, index: int) -> Samples:
        """The samples of one mini-batch."""

    def __iter__(self) -> Iterator[Samples]:
        """Each mini-batch once, in the order of the update."""
        return (self[index] for index in range(len(self)))


class ShuffledRows(MiniBatches):
    """Rows of the flattened rollout under one permutation; for networks without memory.

    A mini-batch is gathered when it is used, in every epoch anew: that takes about a hundredth of
    its optimizer step, and a shuffled copy of the rollout would double its memory.

    Args:
        rollout: filled, with its targets computed.
        num_mini_batches: mini-batches in one epoch; B divides by it.
        generator: source of the one permutation; lives on the rollout's device.
    """

    def __init__(self, rollout: Rollout, num_mini_batches: int, generator: torch.Generator) -> None:
        self._rollout = rollout
        self.permutation = torch.randperm(
            rollout.num_samples, generator=generator, device=rollout.actions.device
        )
        """Rows of the flattened rollout, [B]: those of the first mini-batch, of the second, ..."""
        self._rows = self.permutation.chunk(num_mini_batches)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._rows)

    def __getitem__(self, index: int) -> Samples:
        """Copy the samples of one mini-batch, [M, ...]."""
        return self._rollout.flat().select(self._rows[index])


class WorldBlocks(MiniBatches):
    """Neighbouring worlds, each with all its steps in order; for networks with memory.

    Mini-batches are views of the rollout: nothing is shuffled. RSL-RL leaves the worlds out that
    remain; here their number must divide.

    Args:
        rollout: filled, with its targets computed.
        num_mini_batches: mini-batches in one epoch; N divides by it.
    """

    def __init__(self, rollout: Rollout, num_mini_batches: int) -> None:
        device = rollout.actions.device
        self.worlds = torch.arange(rollout.num_envs, device=device).view(num_mini_batches, -1)
        """The worlds of each mini-batch, [number of mini-batches, W]."""
        self._blocks = tuple(_block(rollout, worlds) for worlds in self.worlds)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._blocks)

    def __getitem__(self, index: int) -> Samples:
        """View the samples of one mini-batch, [T, W, ...], with their trajectories."""
        return self._blocks[index]


@torch.no_grad()
def sample(
    rollout: Rollout, num_mini_batches: int, generator: torch.Generator, *, recurrent: bool = False
) -> MiniBatches:
    """Cut a rollout into mini-batches.

    Args:
        rollout: filled, with its targets computed.
        num_mini_batches: mini-batches in one epoch.
        generator: source of the permutation; lives on the rollout's device.
        recurrent: keep worlds whole and steps in order, for networks with memory.

    Raises:
        ValueError: samples, or worlds, do not divide by the number of mini-batches.
        NonFiniteError: the rollout holds NaN or infinity.
    """
    if recurrent:
        require_even_blocks(rollout.num_envs, num_mini_batches)
    else:
        require_even_split(rollout.num_samples, num_mini_batches)
    check_rollout(rollout)
    if recurrent:
        return WorldBlocks(rollout, num_mini_batches)
    return ShuffledRows(rollout, num_mini_batches, generator)


def _block(rollout: Rollout, worlds: Tensor) -> Samples:
    start, stop = int(worlds[0]), int(worlds[-1]) + 1
    trajectories = cut(rollout.dones[:, start:stop, 0])
    actor_hidden, critic_hidden = (
        trajectories.initial(tuple(state[:, start:stop] for state in hidden))
        for hidden in (rollout.actor_hidden, rollout.critic_hidden)
    )
    sequences = Sequences(trajectories, actor_hidden, critic_hidden)
    return rollout.block(start, stop)._replace(sequences=sequences)
