"""One env step of N worlds, in Isaac Lab's order: what envs with and without managers share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from sim.config import EnvConfig
from sim.managers.action import ActionColumn
from sim.managers.event import EventManager
from sim.physics.base import BrokenWorldError, Listener, Nobody
from sim.pose import Figure, describe
from sim.scene import Scene

if TYPE_CHECKING:
    from sim.managers.command import Command

Log = dict[str, float | Tensor]
"""Tag to value."""


class Feedback(NamedTuple):
    """What one env step returns; N is the number of worlds."""

    reward: Tensor
    """Reward of the step, [N] float32, computed before any reset."""
    terminated: Tensor
    """Worlds whose episode ended in a state of its own (a fall), [N] bool."""
    time_outs: Tensor
    """Worlds whose episode was cut at its time limit, [N] bool; never set where terminated is."""
    log: Mapping[str, float | Tensor]
    """Tag to value, over the worlds that finished on this step; empty if none did."""
    faults: tuple[str, ...] = ()
    """One sentence for each world that went bad and was reset on this step."""
    counts: Mapping[str, float | Tensor] = MappingProxyType({})
    """Tag to how often something happened on this step; the trainer adds up an iteration."""


class SteppedEnv(ABC):
    """N worlds with one robot each, stepped together; the task is five methods.

    `_pre_physics_step` once, then `_apply_action` before every physics tick; `_get_dones` and
    `_get_rewards` on the state after the last tick; `_get_observations` when the policy looks,
    after the finished worlds were reset. All randomness comes from one generator, so two envs of
    one config and one seed are alike bit for bit (on the CPU).

    Two differences from Isaac Lab are deliberate: `terminated` and `time_outs` exclude each other,
    and a step on which no world finished has an empty log.

    Args:
        config: The settings; `sim.catalog.check_terms` finds nothing wrong with them.
        device: Where all tensors live.
        seed: Seed of all randomness of the worlds.
        scene: The worlds, if they exist already.
        listener: Who is told what the physics engine is doing.

    Raises:
        ValueError: The robot lacks something that a term names.
    """

    action_names: tuple[str, ...]
    """What each of the A columns of an action drives."""
    observation_terms: Mapping[str, tuple[tuple[str, int], ...]]
    """For each observation group its terms in order, each with its width."""
    reward_terms: Mapping[str, float]
    """Name of each reward term with its weight."""

    def __init__(
        self,
        config: EnvConfig,
        device: str,
        seed: int,
        scene: Scene | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.config = config
        self.device = torch.device(device)
        self.num_envs = config.num_envs
        self.decimation = config.decimation
        self.step_dt = config.step_dt
        self.max_episode_length = config.max_episode_length
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.listener: Listener = listener or Nobody()
        """Who is told of what takes long."""
        self.scene = scene or Scene(config, self.device, self.generator, listener)

        self.all_ids = torch.arange(self.num_envs, device=self.device)
        self.episode_length = torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)
        self.common_step_counter = 0
        """Env steps since the env was made."""
        self.nan_guard = config.nan_guard
        """Whether a world that goes bad ends alone; else `step` fails with it."""
        self.num_faults = 0
        """Worlds that went bad and were reset since the env was made."""
        self.bad_worlds = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        """Worlds whose state is not to be trusted on this step, [N] bool; they end with it."""
        self.terminated = torch.zeros_like(self.bad_worlds)
        """Worlds whose episode ended on this step in a state of its own, [N] bool; a new tensor
        every step."""
        self.time_outs = torch.zeros_like(self.bad_worlds)
        """Worlds whose episode was cut on this step by its time limit, [N] bool; a new tensor
        every step."""
        self.faults: tuple[str, ...] = ()
        """A sentence for each of them."""
        self.events = EventManager(self, config.events)
        self._figure: Figure | None = None

    @property
    def num_actions(self) -> int:
        """A, the width of an action."""
        return len(self.action_names)

    @abstractmethod
    def _pre_physics_step(self, actions: Tensor) -> None:
        """Take in the actions [N, A], once an env step."""

    @abstractmethod
    def _apply_action(self) -> None:
        """Hand targets to the robot, before every physics tick."""

    @abstractmethod
    def _get_dones(self) -> tuple[Tensor, Tensor]:
        """Say which episodes end in a state of their own, and which at the time limit, [N] bool."""

    @abstractmethod
    def _get_rewards(self) -> Tensor:
        """Compute the reward of this step, [N]; called once an env step, before any reset."""

    @abstractmethod
    def _get_observations(self) -> dict[str, Tensor]:
        """Compute the observation groups of the present state, new tensors [N, O_g]."""

    def _look_back(self, ids: Tensor) -> Log:
        """Learn from these worlds' episodes before anything is reset; return counts by tag."""
        return {}

    def _reset_idx(self, ids: Tensor) -> None:
        """Write the first state of these worlds' next episodes."""
        self.scene.reset(ids)
        self.events.apply_reset(ids)

    def _start_episodes(self, ids: Tensor) -> Log:
        """Zero what these worlds keep over an episode; return the log of those that ended."""
        self.events.reset(ids)
        return {}

    def _finish_step(self) -> None:
        """Do what follows the resets, in all worlds: interval events."""
        self.events.apply_interval()

    @torch.no_grad()  # a person's term may have a network in it
    def observe(self) -> dict[str, Tensor]:
        """Compute the observation groups of the present state, with new noise.

        Returns:
            Group name to a new tensor [N, O_g] float32.
        """
        return self._get_observations()

    @torch.no_grad()
    def step(self, actions: Tensor) -> Feedback:
        """Advance all worlds by one env step and reset those that finished.

        Args:
            actions: [N, A], as the policy drew them.

        Raises:
            ValueError: The actions have another shape.
            BrokenWorldError: A world went bad, and `nan_guard` is off.
        """
        if actions.shape != (self.num_envs, self.num_actions):
            raise ValueError(
                f"actions have shape {list(actions.shape)}, "
                f"the env takes {[self.num_envs, self.num_actions]}"
            )
        self._pre_physics_step(actions)
        self._advance()
        self.episode_length += 1
        self.common_step_counter += 1

        self._find_bad_worlds()
        terminated, time_outs = self._get_dones()
        self.terminated = terminated | self.bad_worlds
        self.time_outs = time_outs & ~self.terminated
        reward = self._get_rewards()
        if self.faults:
            reward = reward.masked_fill(self.bad_worlds, 0.0)

        log: Log = {}
        counts: Log = {}
        finished = (self.terminated | self.time_outs).nonzero().squeeze(1)
        if len(finished):
            counts = self._look_back(finished)
            log = self._restart(finished)
        self._finish_step()
        return Feedback(reward, self.terminated, self.time_outs, log, self.faults, counts)

    def pose(self, world: int) -> dict[str, Any]:
        """Describe one world for a drawing, as `sim.pose.describe` does; changes nothing."""
        if self._figure is None:
            self._figure = Figure(self.scene)
        return describe(self, self._figure, world, self._main_command())

    def physics_state(self) -> dict[str, Tensor]:
        """What shows whether the physics is sound, by name, [N, ...] each; live."""
        physics = self.scene.physics
        return {name: getattr(physics, name) for name in ("qpos", "qvel", "ctrl", "sensordata")}

    def action_columns(self) -> tuple[ActionColumn, ...]:
        """What becomes of each of the A columns of an action."""
        return tuple(ActionColumn(name, "custom", 1.0, 0.0) for name in self.action_names)

    def _main_command(self) -> Command | None:
        """What the robots are told, if anything."""
        return None

    def _start(self) -> None:
        """Apply the startup events and begin the first episodes; the last act of a constructor."""
        self.events.apply_startup()
        # The worlds stand where nobody walked to: there is nothing to look back at.
        self._restart(self.all_ids)

    def _advance(self) -> None:
        """Make the physics ticks of one env step under the present action."""
        decimation = self.config.decimation
        for tick in range(1, decimation + 1):
            self._apply_action()
            self.scene.tick(last=tick == decimation)
        self.scene.update()

    def _find_bad_worlds(self) -> None:
        self.bad_worlds, quantities = self.scene.bad_worlds()
        if quantities and not self.nan_guard:
            raise BrokenWorldError(quantities, self.common_step_counter)
        self.num_faults += len(quantities)
        self.faults = tuple(
            f"world {world} was reset at step {self.common_step_counter}: "
            f"its {quantity} was not finite or out of bounds"
            for world, quantity in quantities.items()
        )

    def _restart(self, ids: Tensor) -> Log:
        self._reset_idx(ids)
        self.scene.commit(ids)
        log = self._start_episodes(ids)
        self.episode_length[ids] = 0
        return log

    def state_dict(self) -> dict[str, Any]:
        """All that an exact continuation needs: tensors, numbers, strings, lists and dicts only."""
        return {
            "common_step_counter": self.common_step_counter,
            "num_faults": self.num_faults,
            "episode_length": self.episode_length.clone(),
            "generator": self.generator.get_state(),
            "scene": self.scene.state_dict(),
            "events": self.events.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that `state_dict` returned.

        Raises:
            ValueError: The state is that of an env with other worlds or terms.
        """
        self.scene.load_state_dict(state["scene"])
        self.events.load_state_dict(state["events"])
        self.episode_length.copy_(state["episode_length"])
        self.common_step_counter = state["common_step_counter"]
        self.num_faults = state["num_faults"]
        # Generator states live on the host wherever the checkpoint was loaded to.
        self.generator.set_state(state["generator"].cpu())

    def load_progress(self, state: Mapping[str, Any]) -> None:
        """Begin all worlds anew, as hard as they were when a state was saved; ages stay.

        Args:
            state: As `state_dict` returned it, perhaps with another engine or in another process.
        """
        ages = self.episode_length.clone()
        self.common_step_counter = state["common_step_counter"]
        self._recall_difficulty(state)
        self._restart(self.all_ids)
        self.episode_length.copy_(ages)

    def _recall_difficulty(self, state: Mapping[str, Any]) -> None:
        """Take on what curricula had reached."""
        levels = state["scene"].get("terrain")
        if self.scene.terrain is not None and levels is not None:
            self.scene.terrain.load_state_dict(levels)

    def close(self) -> None:
        """Give back threads and device memory."""
        self.scene.close()
