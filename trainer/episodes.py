"""Returns and lengths of the last finished episodes, gathered without waiting for the device."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

WINDOW = 100
"""Episodes over which RSL-RL averages reward and length."""


class EpisodeStatistics:
    """Rings of the last `WINDOW` finished episodes.

    The rings live on the env's device and are written by scatter, so that nothing has to be
    fetched from it at an env step; slot `WINDOW` takes the worlds that did not finish.

    Args:
        num_envs: N.
        device: where the env's tensors live.
    """

    def __init__(self, num_envs: int, device: torch.device) -> None:
        self._reward = torch.zeros(num_envs, device=device)
        self._length = torch.zeros(num_envs, device=device)
        self._rewards = torch.zeros(WINDOW + 1, device=device)
        self._lengths = torch.zeros(WINDOW + 1, device=device)
        self._finished = torch.zeros((), dtype=torch.int64, device=device)

    def add(self, reward: Tensor, done: Tensor) -> None:
        """Count one env step.

        Args:
            reward: the env's reward, without any bootstrap, [N].
            done: worlds whose episode ended on this step, [N] bool.
        """
        self._reward += reward
        self._length += 1
        order = torch.cumsum(done, 0)
        slot = torch.where(done, (self._finished + order - 1) % WINDOW, WINDOW)
        self._rewards.scatter_(0, slot, self._reward)
        self._lengths.scatter_(0, slot, self._length)
        self._finished += order[-1]
        running = ~done
        self._reward *= running
        self._length *= running

    @property
    def reward_a_step(self) -> Tensor:
        """Mean reward of a step of the running episodes, [N]; 0 where none was made yet."""
        return self._reward / self._length.clamp(min=1)

    @property
    def count(self) -> int:
        """How many finished episodes are kept."""
        return min(int(self._finished), WINDOW)

    def packed(self) -> Tensor:
        """The rings of returns and of lengths, and how many episodes they hold, [2 WINDOW + 1].

        All in one float32 tensor on their own device, so that one transfer takes them.
        """
        count = self._finished.clamp(max=WINDOW).float().view(1)
        return torch.cat((self._rewards[:WINDOW], self._lengths[:WINDOW], count))

    def metrics(self) -> dict[str, float]:
        """Means over the last finished episodes; empty while none has finished."""
        count = self.count
        if count == 0:
            return {}
        return {
            "Train/mean_reward": float(self._rewards[:count].mean()),
            "Train/mean_episode_length": float(self._lengths[:count].mean()),
        }

    def state_dict(self) -> dict[str, Tensor]:
        """Running sums and rings, by name."""
        return {
            "reward": self._reward,
            "length": self._length,
            "rewards": self._rewards,
            "lengths": self._lengths,
            "finished": self._finished,
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a state that `state_dict` returned."""
        for name, tensor in self.state_dict().items():
            tensor.copy_(state[name])
