"""The env whose task is one class: its five methods compute on the worlds' tensors directly."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sim.config import EnvConfig
from sim.physics.base import Listener
from sim.scene import Scene
from sim.step import SteppedEnv
from sim.tasks import TASKS
from sim.tasks.description import DirectTask


class DirectEnv(SteppedEnv):
    """N worlds with one robot each, whose task is a subclass.

    A subclass writes the five methods of `SteppedEnv`, `_reset_idx` where its episodes do not begin
    at the robot's default state, and `_start_episodes` where it has something to log. The reward is
    what its method returns: nothing multiplies it by the length of a step. The order of a step is
    that of Isaac Lab's `DirectRLEnv`; a preset's events happen as they do under managers.

    Args:
        task: The task's sizes and numbers.
        config: The settings; `sim.catalog.check_terms` finds nothing wrong with them.
        device: Where all tensors live.
        seed: Seed of all randomness of the worlds.
        scene: The worlds, if they exist already.
        listener: Who is told what the physics engine is doing.
    """

    def __init__(
        self,
        task: DirectTask,
        config: EnvConfig,
        device: str,
        seed: int,
        scene: Scene | None = None,
        listener: Listener | None = None,
    ) -> None:
        super().__init__(config, device, seed, scene, listener)
        self.params: Mapping[str, float] = {**task.params, **(config.params or {})}
        """The task's numbers by name."""
        self.action_names = task.action_names
        self.observation_terms = task.observations
        self.reward_terms = {}
        self.actions = torch.zeros(self.num_envs, self.num_actions, device=self.device)
        """The policy's last action, [N, A]."""
        self._start()

    def _pre_physics_step(self, actions: Tensor) -> None:
        self.actions.copy_(actions)

    def state_dict(self) -> dict[str, Any]:
        """All that an exact continuation needs: tensors, numbers, strings, lists and dicts only."""
        return super().state_dict() | {"actions": self.actions.clone()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that `state_dict` returned.

        Raises:
            ValueError: The state is that of an env with other worlds.
        """
        super().load_state_dict(state)
        self.actions.copy_(state["actions"])


def make_direct_env(
    config: EnvConfig, device: str, seed: int, listener: Listener | None = None
) -> DirectEnv:
    """Make and reset the env of the direct task that `config` names.

    Raises:
        KeyError: It names none that exists.
    """
    task = TASKS[config.task or ""]
    module, _, name = task.env.partition(":")
    env_class: type[DirectEnv] = getattr(importlib.import_module(module), name)
    return env_class(task, config, device, seed, listener=listener)
