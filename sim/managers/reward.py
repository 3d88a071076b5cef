"""The reward: a weighted sum of terms, times the length of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sim.config import RewardSettings
from sim.managers.binding import bind
from sim.managers.calling import call, per_world
from sim.managers.state import Stateful

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv


class RewardManager(Stateful):
    """All reward terms, and their sums over the running episodes.

    Attributes:
        weights: Name to weight; may be changed in place at any time.
        step_values: weight x value x step_dt of the last step, [terms, N].
        episode_sums: The same, summed over the running episodes, [terms, N].
    """

    buffers = ("step_values", "episode_sums")

    def __init__(self, env: ManagerBasedEnv, settings: Mapping[str, RewardSettings]) -> None:
        self._env = env
        self.terms = {name: bind(env, ("rewards", name), term) for name, term in settings.items()}
        self.weights = {name: term.weight for name, term in settings.items()}
        self._zeros = torch.zeros(env.num_envs, device=env.device)
        self._factors_of: tuple[float, ...] = ()
        self._present_factors = torch.zeros(0, 1, device=env.device)
        self.step_values = torch.zeros(len(settings), env.num_envs, device=env.device)
        self.episode_sums = torch.zeros_like(self.step_values)

    def compute(self, bad: Tensor | None = None) -> Tensor:
        """Compute the reward of this step, [N].

        Args:
            bad: Worlds [N] bool whose state is not to be trusted; their reward is 0.
        """
        weights = tuple(self.weights.values())
        values = [
            self._value(name, term) if weight else self._zeros
            for (name, term), weight in zip(self.terms.items(), weights, strict=True)
        ]
        if values:
            torch.mul(torch.stack(values), self._factors(weights), out=self.step_values)
        if bad is not None:
            self.step_values[:, bad] = 0.0
        self.episode_sums += self.step_values
        return self.step_values.sum(0)

    def _value(self, name: str, term: Callable[..., Tensor]) -> Tensor:
        path = ("rewards", name)
        return per_world(path, call(path, term, self._env), self._env)

    def _factors(self, weights: tuple[float, ...]) -> Tensor:
        """Weight x step_dt of every term, [terms, 1]; made anew only when a weight has changed."""
        if weights != self._factors_of:
            self._factors_of = weights
            factors = [[weight * self._env.step_dt] for weight in weights]
            self._present_factors = torch.tensor(factors, device=self._env.device)
        return self._present_factors

    def reset(self, ids: Tensor) -> dict[str, float | Tensor]:
        """Return and zero the sums of these worlds' episodes.

        The value logged is the mean sum over the time limit in seconds, not over the time that the
        episodes lasted: a short episode shows a small value.
        """
        per_second = self.episode_sums[:, ids].mean(1) / self._env.config.episode_length_s
        self.episode_sums[:, ids] = 0.0
        return {
            f"Episode_Reward/{name}": value
            for name, value in zip(self.terms, per_second.unbind(), strict=True)
        }

    def state_dict(self) -> dict[str, object]:
        """The sums and the weights in force."""
        return {**super().state_dict(), "weights": dict(self.weights)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Continue from `state_dict`."""
        super().load_state_dict(state)
        self.weights.update(state["weights"])  # type: ignore[call-overload]
