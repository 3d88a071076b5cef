"""The env: N worlds stepped together, in Isaac Lab's order."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sim.catalog import KINDS, check_terms
from sim.config import EnvConfig
from sim.managers.action import ActionManager
from sim.managers.command import CommandManager
from sim.managers.curriculum import CurriculumManager
from sim.managers.event import EventManager
from sim.managers.observation import ObservationManager
from sim.managers.reward import RewardManager
from sim.managers.termination import TerminationManager
from sim.physics.base import Listener
from sim.scene import Scene
from sim.terms.registry import load_terms


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


class ManagerBasedEnv:
    """N worlds with one robot each, whose task is a set of terms that managers call.

    A new env has been reset. All randomness comes from one generator, so two envs of one config and
    one seed are alike bit for bit (on the CPU).

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
        self.step_dt = config.step_dt
        self.max_episode_length = config.max_episode_length
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.scene = scene or Scene(config, self.device, self.generator, listener)

        self.all_ids = torch.arange(self.num_envs, device=self.device)
        self.episode_length = torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)
        self.common_step_counter = 0
        """Env steps since the env was made."""
        self.num_faults = 0
        """Worlds that went bad and were reset since the env was made."""

        self.commands = CommandManager(self, config.commands)
        self.events = EventManager(self, config.events)
        self.actions = ActionManager(self, config.actions)
        self.observations = ObservationManager(self, config.observations)
        self.terminations = TerminationManager(self, config.terminations)
        self.rewards = RewardManager(self, config.rewards)
        self.curriculum = CurriculumManager(self, config.curriculum)

        self.action_names = self.actions.names
        """What each of the A columns of an action drives."""
        self.num_actions = len(self.action_names)
        """A, the width of an action."""
        self.observation_terms: Mapping[str, tuple[tuple[str, int], ...]] = {
            name: group.terms for name, group in self.observations.groups.items()
        }
        """For each observation group its terms in order, each with its width."""
        self.reward_terms: Mapping[str, float] = self.rewards.weights
        """Name of each reward term with its weight, live."""

        self.events.apply_startup()
        # The worlds stand where nobody walked to: no curriculum may learn from that.
        self._restart(self.all_ids)

    def observe(self) -> dict[str, Tensor]:
        """Compute the observation groups of the present state, with new noise.

        Returns:
            Group name to a new tensor [N, O_g] float32.
        """
        return self.observations.compute()

    def step(self, actions: Tensor) -> Feedback:
        """Advance all worlds by one env step and reset those that finished.

        Args:
            actions: [N, A], as the policy drew them.

        Raises:
            ValueError: The actions have another shape.
        """
        if actions.shape != self.actions.action.shape:
            raise ValueError(
                f"actions have shape {list(actions.shape)}, "
                f"the env takes {list(self.actions.action.shape)}"
            )
        self.actions.process(actions)
        self._advance()
        self.episode_length += 1
        self.common_step_counter += 1

        bad, faults = self._find_bad_worlds()
        self.terminations.compute(bad)
        reward = self.rewards.compute(bad if faults else None)
        terminated, time_outs = self.terminations.terminated, self.terminations.time_outs

        finished = (terminated | time_outs).nonzero().squeeze(1)
        log = self._reset(finished, bad if faults else None) if len(finished) else {}
        counts = self.curriculum.counts if len(finished) else {}
        self.commands.compute()
        self.events.apply_interval()
        return Feedback(reward, terminated, time_outs, log, faults, dict(counts))

    def _advance(self) -> None:
        """Make the physics ticks of one env step under the present action."""
        decimation = self.config.decimation
        for tick in range(1, decimation + 1):
            self.actions.apply()
            self.scene.tick(last=tick == decimation)
        self.scene.update()

    def _find_bad_worlds(self) -> tuple[Tensor, tuple[str, ...]]:
        bad, quantities = self.scene.bad_worlds()
        self.num_faults += len(quantities)
        return bad, tuple(
            f"world {world} was reset at step {self.common_step_counter}: "
            f"its {quantity} was not finite or out of bounds"
            for world, quantity in quantities.items()
        )

    def _reset(self, ids: Tensor, bad: Tensor | None) -> dict[str, float | Tensor]:
        """End the episodes of these worlds and start their next ones; return the log."""
        # Before anything is reset: the rules read where the old episode ended, and under which
        # command. A bad world's place is not where a robot walked to.
        self.curriculum.compute(ids if bad is None else ids[~bad[ids]])
        return self._restart(ids)

    def _restart(self, ids: Tensor) -> dict[str, float | Tensor]:
        self.scene.reset(ids)
        self.events.apply_reset(ids)
        self.scene.commit(ids)

        self.actions.reset(ids)
        log = self.rewards.reset(ids)
        log |= self.curriculum.reset()
        log |= self.commands.reset(ids)
        self.events.reset(ids)
        log |= self.terminations.reset(ids)
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
            "actions": self.actions.state_dict(),
            "commands": self.commands.state_dict(),
            "events": self.events.state_dict(),
            "rewards": self.rewards.state_dict(),
            "terminations": self.terminations.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that `state_dict` returned.

        Raises:
            ValueError: The state is that of an env with other worlds or terms.
        """
        self.scene.load_state_dict(state["scene"])
        for name in ("actions", "commands", "events", "rewards", "terminations"):
            getattr(self, name).load_state_dict(state[name])
        self.episode_length.copy_(state["episode_length"])
        self.common_step_counter = state["common_step_counter"]
        self.num_faults = state["num_faults"]
        # Generator states live on the host wherever the checkpoint was loaded to.
        self.generator.set_state(state["generator"].cpu())

    def close(self) -> None:
        """Give back threads and device memory."""
        self.scene.close()


def make_env(
    config: EnvConfig,
    device: str,
    seed: int,
    own_terms: Sequence[Path] = (),
    listener: Listener | None = None,
) -> ManagerBasedEnv:
    """Make and reset the env that `config` describes.

    Args:
        config: The settings.
        device: Where all tensors live, such as "cpu".
        seed: Seed of all randomness of the worlds.
        own_terms: Python files with a person's own terms.
        listener: Who is told what the physics engine is doing.

    Raises:
        ValueError: The settings name something that does not exist; says what and where.
    """
    problems = check_terms(config, own_terms)
    if problems:
        raise ValueError("\n".join(f"{'.'.join(p.path)}: {p.message}" for p in problems))
    for kind in KINDS:
        importlib.import_module(f"sim.terms.{kind}")
    for path in own_terms:
        load_terms(path)
    return ManagerBasedEnv(config, device, seed, listener=listener)
