"""A vectorised env of a few lines: points on a line that are paid to stay near 0."""

from collections.abc import Mapping
from typing import Any

import torch

from trainer.env import Feedback


class ToyEnv:
    """x' = x + 0.1 a; reward 1 - x^2; falls at |x| > 2; time limit of `max_episode_length`."""

    def __init__(self, num_envs: int = 4, max_episode_length: int = 20, seed: int = 0) -> None:
        self.num_envs = num_envs
        self.num_actions = 1
        self.max_episode_length = max_episode_length
        self.step_dt = 0.1
        self.device = torch.device("cpu")
        self.episode_length = torch.zeros(num_envs, dtype=torch.int64)
        self.observation_terms = {"policy": (("x", 1), ("noise", 1))}
        self.action_names = ("push",)
        self.reward_terms = {"near": 1.0}
        self.generator = torch.Generator().manual_seed(seed)
        self.x = self._draw()
        self.actions_seen: list[torch.Tensor] = []
        self.closed = False

    def _draw(self) -> torch.Tensor:
        return torch.rand(self.num_envs, generator=self.generator) * 2 - 1

    def observe(self) -> dict[str, torch.Tensor]:
        return {"policy": torch.stack((self.x, self._draw()), dim=1)}

    def step(self, actions: torch.Tensor) -> Feedback:
        self.actions_seen.append(actions.clone())
        self.x = self.x + 0.1 * actions[:, 0]
        self.episode_length += 1
        terminated = self.x.abs() > 2
        time_outs = (self.episode_length >= self.max_episode_length) & ~terminated
        reward = 1 - self.x.square()
        done = terminated | time_outs
        log = {"Episode_Termination/fell": terminated.float().mean()} if done.any() else {}
        self.x = torch.where(done, self._draw(), self.x)
        self.episode_length[done] = 0
        return Feedback(reward, terminated, time_outs, log)

    def state_dict(self) -> dict[str, Any]:
        return {
            "x": self.x,
            "episode_length": self.episode_length,
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.x = state["x"].clone()
        self.episode_length.copy_(state["episode_length"])
        self.generator.set_state(state["generator"])

    def close(self) -> None:
        self.closed = True
