"""Motors that receive their targets late, as over a slow bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sim.actuators import JointTargets


class TargetDelay:
    """Hands the targets on after a fixed number of ticks, all three parts alike.

    A world starts, and starts anew after `reset`, with its first targets in the whole pipeline, so
    that nothing of an earlier episode is ever applied.

    Args:
        ticks: How many ticks a target is held back; at least 1.
        like: Targets [N, J] that give the size.
    """

    def __init__(self, ticks: int, like: JointTargets) -> None:
        self._ticks = ticks
        num_worlds = len(like.position)
        # [slot, part, N, J]: the newest slot moves round, the one after it is the oldest
        self._ring = like.position.new_zeros((ticks + 1, 3, *like.position.shape))
        self._newest = 0
        self._fresh = torch.ones(num_worlds, dtype=torch.bool, device=self._ring.device)

    def push(self, targets: JointTargets) -> JointTargets:
        """Take this tick's targets and return those of `ticks` ticks ago (views, [N, J])."""
        self._newest = (self._newest + 1) % (self._ticks + 1)
        slot = self._ring[self._newest]
        slot[0], slot[1], slot[2] = targets.position, targets.velocity, targets.effort
        if self._fresh.any():
            self._ring[:, :, self._fresh] = slot[:, self._fresh]
            self._fresh.zero_()
        oldest = self._ring[(self._newest + 1) % (self._ticks + 1)]
        return JointTargets(oldest[0], oldest[1], oldest[2])

    def reset(self, ids: Tensor) -> None:
        """Forget the targets of the worlds `ids`."""
        self._fresh[ids] = True

    def state_dict(self) -> dict[str, Any]:
        """The targets under way."""
        return {
            "ring": self._ring.clone(),
            "newest": self._newest,
            "fresh": self._fresh.clone(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self._ring.copy_(state["ring"])
        self._newest = state["newest"]
        self._fresh.copy_(state["fresh"])
