"""Any `VecEnv` of RSL-RL as worlds to train in, and so the tasks of mjlab and Isaac Lab."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from trainer.env import Feedback


def make_mjlab(task: str, num_envs: int, seed: int, device: str = "cpu", **changes: Any) -> Any:  # noqa: ANN401
    """Make the worlds of an mjlab task.

    Args:
        task: its id, such as "Mjlab-Cartpole-Balance".
        num_envs: N.
        seed: of all that is drawn in the worlds.
        device: where they live.
        changes: fields of the task's env config that get another value.

    Raises:
        ValueError: there is no such task; names those that there are.
    """
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.rl import RslRlVecEnvWrapper
    from mjlab.tasks.registry import list_tasks, load_env_cfg, load_rl_cfg

    if task not in list_tasks():
        raise ValueError(f"mjlab has no task {task}; its tasks: {', '.join(list_tasks())}")
    config = load_env_cfg(task)
    config.scene.num_envs = num_envs
    config.seed = seed
    for name, value in changes.items():
        setattr(config, name, value)
    env = ManagerBasedRlEnv(cfg=config, device=device)
    return RslRlVecEnvWrapper(env, clip_actions=load_rl_cfg(task).clip_actions)


class RslRlEnv:
    """N worlds of an RSL-RL `VecEnv`, which has been reset by whoever made it.

    RSL-RL knows dones and, among them, time-outs. A done that is no time-out counts as terminated;
    one that is both counts as a time-out, since the interface does not tell. The state of the
    worlds cannot be saved.

    Args:
        env: the worlds: `num_envs`, `num_actions`, `max_episode_length`, `episode_length_buf`,
            `device`, `get_observations()`, `step(actions)`.

    Raises:
        ValueError: an observation group is no [N, O].
    """

    def __init__(self, env: Any) -> None:  # noqa: ANN401 - RSL-RL may not be installed
        self._env = env
        self.num_envs = int(env.num_envs)
        self.num_actions = int(env.num_actions)
        self.max_episode_length = int(env.max_episode_length)
        self.device = torch.device(env.device)
        self._manager_based = getattr(env, "unwrapped", env)
        self.step_dt = float(getattr(self._manager_based, "step_dt", 1.0))
        self._observations = self._groups(env.get_observations())
        self.observation_terms: Mapping[str, tuple[tuple[str, int], ...]] = {
            group: self._terms(group, observation.shape[1])
            for group, observation in self._observations.items()
        }
        self.action_names = tuple(f"action_{i}" for i in range(self.num_actions))
        self.reward_terms: Mapping[str, float] = self._reward_terms()
        self._last_log: Mapping[str, Any] = {}

    @property
    def episode_length(self) -> Tensor:
        """Steps made in the running episode, [N]: RSL-RL's own buffer."""
        buffer: Tensor = self._env.episode_length_buf
        return buffer

    @episode_length.setter
    def episode_length(self, steps: Tensor) -> None:
        self._env.episode_length_buf = steps

    def observe(self) -> dict[str, Tensor]:
        """Return the newest observation groups, [N, O_g] each."""
        return {group: tensor.clone() for group, tensor in self._observations.items()}

    def step(self, actions: Tensor) -> Feedback:
        """Advance all worlds by one step; those that finished are reset by the env."""
        observations, rewards, dones, extras = self._env.step(actions.detach())
        self._observations = self._groups(observations)
        done = dones.to(self.device).reshape(-1).bool()
        time_outs = torch.zeros_like(done)
        if "time_outs" in extras:
            time_outs = extras["time_outs"].to(self.device).reshape(-1).bool() & done
        reward = rewards.to(self.device).reshape(-1).float().clone()
        return Feedback(reward, done & ~time_outs, time_outs, self._new_log(extras))

    def state_dict(self) -> dict[str, Any]:
        """Nothing: RSL-RL's interface has no way to save worlds."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Do nothing: the worlds begin anew."""

    def close(self) -> None:
        """Close the worlds, where they can be."""
        if callable(close := getattr(self._env, "close", None)):
            close()

    def _groups(self, observations: Mapping[str, Tensor]) -> dict[str, Tensor]:
        groups = {}
        for group, tensor in observations.items():
            if tensor.ndim != 2:
                shape = list(tensor.shape)
                raise ValueError(f"observation group {group}: must be [N, O], not {shape}")
            groups[group] = tensor.to(self.device).float().clone()
        return groups

    def _new_log(self, extras: Mapping[str, Any]) -> dict[str, float | Tensor]:
        """The log of this step, under RSL-RL's tags; empty where it is that of an earlier step.

        Some envs return the log of the last reset again until the next one.
        """
        log = extras.get("episode") or extras.get("log") or {}
        is_old = log.keys() == self._last_log.keys() and all(
            value is self._last_log[key] for key, value in log.items()
        )
        self._last_log = dict(log)
        if is_old:
            return {}
        return {tag if "/" in tag else f"Episode/{tag}": _mean(value) for tag, value in log.items()}

    def _terms(self, group: str, width: int) -> tuple[tuple[str, int], ...]:
        """The terms of a group, where an observation manager knows them; else one for all."""
        manager = getattr(self._manager_based, "observation_manager", None)
        names = getattr(manager, "active_terms", {}).get(group, ())
        shapes = getattr(manager, "group_obs_term_dim", {}).get(group, ())
        widths = [int(torch.Size(shape).numel()) for shape in shapes]
        if len(names) == len(widths) and sum(widths) == width:
            return tuple(zip(names, widths, strict=True))
        return ((group, width),)

    def _reward_terms(self) -> dict[str, float]:
        manager = getattr(self._manager_based, "reward_manager", None)
        names = getattr(manager, "active_terms", ())
        if manager is None or not callable(getattr(manager, "get_term_cfg", None)):
            return {}
        return {name: float(manager.get_term_cfg(name).weight) for name in names}


def _mean(value: float | Tensor) -> float | Tensor:
    return value.detach().float().mean() if isinstance(value, Tensor) else float(value)
