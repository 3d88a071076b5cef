"""The rollout: T steps of N worlds, one tensor a field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.recurrent import HiddenState, Sequences


class Transition(NamedTuple):
    """One step of N worlds: the record made before physics, and the feedback."""

    observations: Mapping[str, Tensor]
    """What the networks read, group to [N, O_g]."""
    actions: Tensor
    """The sample itself, whatever the env makes of it, [N, A]."""
    rewards: Tensor
    """With the time-out bootstrap added, [N] or [N, 1]."""
    dones: Tensor
    """Terminated or timed out, [N] or [N, 1] bool."""
    values: Tensor
    """V of the observations, [N, 1]."""
    log_probs: Tensor
    """Log density of the actions, [N] or [N, 1]."""
    means: Tensor
    """[N, A]"""
    stds: Tensor
    """[N, A] or [A]"""


class Samples(NamedTuple):
    """Transitions as the update reads them: K rows without order, or [T, W] of whole worlds."""

    observations: dict[str, Tensor]
    """Group to [K, O_g]."""
    actions: Tensor
    """[K, A]"""
    values: Tensor
    """V of the rollout, [K, 1]."""
    advantages: Tensor
    """[K, 1]"""
    returns: Tensor
    """Never normalised, [K, 1]."""
    log_probs: Tensor
    """Under the policy of the rollout, [K, 1]."""
    means: Tensor
    """Of the policy of the rollout, [K, A]."""
    stds: Tensor
    """Of the policy of the rollout, [K, A]."""
    sequences: Sequences | None = None
    """For whole worlds and recurrent networks: where the trajectories begin and end."""

    @property
    def num_rows(self) -> int:
        """K; for whole worlds T, their steps."""
        return len(self.actions)

    def select(self, rows: Tensor) -> Samples:
        """Copy the rows of these numbers."""
        return self.each(lambda tensor: tensor.index_select(0, rows))

    def each(self, function: Callable[[Tensor], Tensor]) -> Samples:
        """Apply a function to every tensor."""
        return Samples(
            {group: function(tensor) for group, tensor in self.observations.items()},
            function(self.actions),
            function(self.values),
            function(self.advantages),
            function(self.returns),
            function(self.log_probs),
            function(self.means),
            function(self.stds),
        )


class Rollout:
    """Storage of T steps of N worlds, allocated once and overwritten by every iteration.

    All tensors are made here, so build it outside inference mode; rows are copied in, which keeps
    them ordinary tensors that a backward pass may read.

    Args:
        num_steps: T.
        num_envs: N.
        obs_widths: width O_g of each observation group.
        num_actions: A.
        device: where the tensors live.
    """

    def __init__(
        self,
        num_steps: int,
        num_envs: int,
        obs_widths: Mapping[str, int],
        num_actions: int,
        device: torch.device | str,
    ) -> None:
        def zeros(width: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(num_steps, num_envs, width, dtype=dtype, device=device)

        self.num_steps = num_steps
        self.num_envs = num_envs
        self.cursor = 0
        """t: rows filled so far, 0 to T."""
        self.observations = {group: zeros(width) for group, width in obs_widths.items()}
        """Group to [T, N, O_g]."""
        self.actions = zeros(num_actions)
        """[T, N, A]"""
        self.rewards = zeros(1)
        """[T, N, 1]"""
        self.dones = zeros(1, torch.bool)
        """[T, N, 1] bool"""
        self.values = zeros(1)
        """[T, N, 1]"""
        self.log_probs = zeros(1)
        """[T, N, 1]"""
        self.means = zeros(num_actions)
        """[T, N, A]"""
        self.stds = zeros(num_actions)
        """[T, N, A]"""
        self.returns = zeros(1)
        """[T, N, 1]"""
        self.advantages = zeros(1)
        """[T, N, 1]"""
        self.actor_hidden: HiddenState = ()
        """Of a recurrent actor before step 0, [layers, N, H] each. Those of later steps are not
        needed: behind a done they are 0, elsewhere they follow from these."""
        self.critic_hidden: HiddenState = ()
        """Of a recurrent critic before step 0."""

    @property
    def num_samples(self) -> int:
        """B = T N, the transitions of one rollout."""
        return self.num_steps * self.num_envs

    # a std is the parameter itself: with gradients, every step would leave a node of a graph behind
    @torch.no_grad()
    def add(self, transition: Transition) -> None:
        """Copy one step into row `cursor`, and move the cursor on.

        Raises:
            OverflowError: all T rows are filled.
        """
        if self.cursor == self.num_steps:
            raise OverflowError(
                f"the rollout holds {self.num_steps} steps, and all are filled; clear it first"
            )
        t = self.cursor
        for group, stored in self.observations.items():
            stored[t].copy_(transition.observations[group])
        self.actions[t].copy_(transition.actions)
        self.rewards[t].copy_(transition.rewards.view(-1, 1))
        self.dones[t].copy_(transition.dones.view(-1, 1))
        self.values[t].copy_(transition.values)
        self.log_probs[t].copy_(transition.log_probs.view(-1, 1))
        self.means[t].copy_(transition.means)
        self.stds[t].copy_(transition.stds)
        self.cursor += 1

    def clear(self) -> None:
        """Set the cursor to 0; nothing is freed or zeroed."""
        self.cursor = 0

    def flat(self) -> Samples:
        """View what the update reads as B rows, time-major: row t N + n is step t of world n."""
        return self._samples().each(lambda tensor: tensor.flatten(0, 1))

    def block(self, start: int, stop: int) -> Samples:
        """View what the update reads of neighbouring worlds, [T, stop - start, ...]."""
        return self._samples().each(lambda tensor: tensor[:, start:stop])

    def _samples(self) -> Samples:
        return Samples(
            self.observations,
            self.actions,
            self.values,
            self.advantages,
            self.returns,
            self.log_probs,
            self.means,
            self.stds,
        )
