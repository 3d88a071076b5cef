"""Vectorised environments of gymnasium as worlds to train in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers import FlattenObservation
from torch import Tensor

from trainer.adapters.spaces import action_names, complaint, to_actions
from trainer.env import Feedback

ENDLESS = 1_000_000
"""Steps of an episode that has no time limit: only its own endings end it."""


def make(
    name: str,
    num_envs: int,
    seed: int,
    device: str = "cpu",
    vectorization_mode: str = "sync",
    **options: Any,  # noqa: ANN401 - whatever the environment takes
) -> GymnasiumEnv:
    """Make N worlds of a registered environment.

    The time limit of the registry is counted here, not by gymnasium's wrapper, so that worlds can
    start at random ages and a time-out can be told from a fall.

    Args:
        name: its id, such as "CartPole-v1".
        num_envs: N.
        seed: world i is seeded with seed + i.
        device: where the tensors live.
        vectorization_mode: "sync", or "async": a process for each world.
        options: keyword arguments of the environment.
    """
    spec = gymnasium.spec(name)
    limit = options.pop("max_episode_steps", spec.max_episode_steps)
    example = gymnasium.make(name, **options)
    is_box = isinstance(example.observation_space, spaces.Box)
    example.close()
    envs = gymnasium.make_vec(
        name,
        num_envs=num_envs,
        vectorization_mode=vectorization_mode,
        vector_kwargs={"autoreset_mode": AutoresetMode.DISABLED},
        wrappers=None if is_box else [FlattenObservation],
        max_episode_steps=-1,
        **options,
    )
    return GymnasiumEnv(envs, seed, device, limit)


class GymnasiumEnv:
    """N worlds of a gymnasium `VectorEnv`, freshly reset.

    Finished worlds are reset on the step on which they end, so that the next observation is the
    first of the new episode; the last one of the old episode is not needed, since a time-out is
    bootstrapped with the value of the observation before the step. An environment that resets on
    the next step instead (`AutoresetMode.NEXT_STEP`) cannot be trained in: its resets would be
    learnt from as steps. The state of the worlds cannot be saved.

    Args:
        envs: the worlds.
        seed: of their first reset.
        device: where the tensors live.
        time_limit: steps after which a world is cut; unset: the worlds know themselves.

    Raises:
        ValueError: the worlds reset on the next step, or have spaces that cannot be used.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        seed: int,
        device: str = "cpu",
        time_limit: int | None = None,
    ) -> None:
        mode = envs.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        if mode is AutoresetMode.NEXT_STEP:
            raise ValueError(
                "these worlds reset on the step behind the last of an episode, which would be "
                "learnt from; make them with autoreset_mode=AutoresetMode.SAME_STEP or DISABLED"
            )
        why_not = complaint(envs.single_observation_space, envs.single_action_space)
        if why_not or not isinstance(envs.single_observation_space, spaces.Box):
            raise ValueError(why_not or "observations must be a Box; wrap in FlattenObservation")
        self._envs = envs
        self._resets_itself = mode is AutoresetMode.SAME_STEP
        self._time_limit = time_limit
        self._to_actions = to_actions(envs.single_action_space)
        self.num_envs = envs.num_envs
        self.action_names = action_names(envs.single_action_space)
        self.num_actions = len(self.action_names)
        self.max_episode_length = time_limit or ENDLESS
        self.step_dt = _step_dt(envs)
        self.device = torch.device(device)
        self.episode_length = torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)
        width = int(np.prod(envs.single_observation_space.shape))
        self.observation_terms: Mapping[str, tuple[tuple[str, int], ...]] = {
            "policy": (("observation", width),)
        }
        self.reward_terms: Mapping[str, float] = {}
        self._observations, _ = envs.reset(seed=seed)

    def observe(self) -> dict[str, Tensor]:
        """Return the newest observation as the group `policy` [N, O]."""
        flat = np.asarray(self._observations, np.float32).reshape(self.num_envs, -1)
        return {"policy": torch.tensor(flat, device=self.device)}

    def step(self, actions: Tensor) -> Feedback:
        """Advance all worlds by one step; reset those that finished."""
        numbers = actions.detach().cpu().numpy()
        observations, rewards, terminated, truncated, _ = self._envs.step(self._to_actions(numbers))
        terminated = np.asarray(terminated, bool)
        self.episode_length += 1
        time_outs = np.asarray(truncated, bool)
        if self._time_limit is not None:
            time_outs = time_outs | (self.episode_length >= self._time_limit).cpu().numpy()
        time_outs = time_outs & ~terminated
        done = terminated | time_outs
        if done.any():
            if not self._resets_itself:
                observations, _ = self._envs.reset(options={"reset_mask": done})
            self.episode_length[self._tensor(done)] = 0
        self._observations = observations
        return Feedback(
            self._tensor(np.asarray(rewards, np.float32)),
            self._tensor(terminated),
            self._tensor(time_outs),
            _endings(terminated, time_outs),
        )

    def state_dict(self) -> dict[str, Any]:
        """Nothing: gymnasium's worlds cannot be saved."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Do nothing: the worlds begin anew."""

    def close(self) -> None:
        """Close the worlds."""
        self._envs.close()

    def _tensor(self, array: np.ndarray[Any, Any]) -> Tensor:
        return torch.tensor(array, device=self.device)


def _endings(terminated: np.ndarray[Any, Any], time_outs: np.ndarray[Any, Any]) -> dict[str, float]:
    """Shares of the worlds that finished on this step; empty if none did."""
    count = int(terminated.sum() + time_outs.sum())
    if count == 0:
        return {}
    return {
        "Episode_Termination/terminated": float(terminated.sum() / count),
        "Episode_Termination/time_out": float(time_outs.sum() / count),
    }


def _step_dt(envs: VectorEnv[Any, Any, Any]) -> float:
    """Seconds of one step, where the environment says it; else 1."""
    fps = envs.metadata.get("render_fps")
    return 1.0 / fps if fps else 1.0
