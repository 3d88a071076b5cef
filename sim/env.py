"""The env whose task is a set of terms: managers fill the five methods of a step."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from sim import adjusting
from sim.adjusting import Adjustable
from sim.catalog import KINDS, check_terms
from sim.config import EnvConfig, Range
from sim.direct import make_direct_env
from sim.managers.action import ActionColumn, ActionManager
from sim.managers.command import Command, CommandManager
from sim.managers.curriculum import CurriculumManager
from sim.managers.observation import ObservationManager
from sim.managers.reward import RewardManager
from sim.managers.termination import TerminationManager
from sim.mirror import Mirror
from sim.physics.base import Listener
from sim.scene import Scene
from sim.step import Feedback, Log, SteppedEnv
from sim.symmetry import reflect
from sim.terms.registry import load_terms

__all__ = ["Feedback", "ManagerBasedEnv", "make_env"]


class ManagerBasedEnv(SteppedEnv):
    """N worlds with one robot each, whose task is a set of terms that managers call.

    A new env has been reset. Arguments and errors are those of `SteppedEnv`.

    Attributes:
        command_ranges: For each command the ranges that its parts are drawn from.
    """

    def __init__(
        self,
        config: EnvConfig,
        device: str,
        seed: int,
        scene: Scene | None = None,
        listener: Listener | None = None,
    ) -> None:
        super().__init__(config, device, seed, scene, listener)
        self.commands = CommandManager(self, config.commands)
        self.actions = ActionManager(self, config.actions)
        self.observations = ObservationManager(self, config.observations)
        self.terminations = TerminationManager(self, config.terminations)
        self.rewards = RewardManager(self, config.rewards)
        self.curriculum = CurriculumManager(self, config.curriculum)

        self.action_names = self.actions.names
        self.observation_terms = {
            name: group.terms for name, group in self.observations.groups.items()
        }
        # live: a curriculum may change a weight
        self.reward_terms = self.rewards.weights
        self.command_ranges = self.commands.ranges
        self._start()

    @property
    def reward_values(self) -> Tensor:
        """What each reward term brought on the last step, weight x value x step_dt, [terms, N]."""
        return self.rewards.step_values

    @property
    def reward_sums(self) -> Tensor:
        """The same, summed over the running episodes, [terms, N]."""
        return self.rewards.episode_sums

    def _pre_physics_step(self, actions: Tensor) -> None:
        self.actions.process(actions)

    def _apply_action(self) -> None:
        self.actions.apply()

    def _get_dones(self) -> tuple[Tensor, Tensor]:
        self.terminations.compute(self.bad_worlds)
        return self.terminations.terminated, self.terminations.time_outs

    def _get_rewards(self) -> Tensor:
        return self.rewards.compute(self.bad_worlds if self.faults else None)

    def _get_observations(self) -> dict[str, Tensor]:
        return self.observations.compute()

    def _look_back(self, ids: Tensor) -> Log:
        # The rules read where the old episode ended, and under which command. A bad world's place
        # is not where a robot walked to.
        self.curriculum.compute(ids[~self.bad_worlds[ids]] if self.faults else ids)
        return dict(self.curriculum.counts)

    def _start_episodes(self, ids: Tensor) -> Log:
        self.actions.reset(ids)
        log = self.rewards.reset(ids)
        log |= self.curriculum.reset()
        log |= self.commands.reset(ids)
        log |= super()._start_episodes(ids)
        log |= self.terminations.reset(ids)
        return log

    def _finish_step(self) -> None:
        self.commands.compute()
        super()._finish_step()

    def mirror(self) -> Mirror:
        """How observations and actions look when left and right are exchanged.

        Raises:
            ValueError: The robot is no mirror image of itself, or nobody knows how a term looks.
        """
        return Mirror(reflect(self.config), self.device)

    def action_columns(self) -> tuple[ActionColumn, ...]:
        """What becomes of each of the A columns of an action."""
        return tuple(column for term in self.actions.terms.values() for column in term.columns())

    def _main_command(self) -> Command | None:
        return next(iter(self.commands.terms.values()), None)

    def episode_metrics(self) -> dict[str, Tensor]:
        """How well goals are met in the running episodes, `<command>/<metric>` to [N]."""
        return self.commands.metrics()

    def adjustable(self) -> tuple[Adjustable, ...]:
        """Numbers that may change while the worlds are trained on, with the values in force."""
        return adjusting.adjustable(self)

    def adjust(self, key: str, value: float | Range) -> None:
        """Give one of them another value, from the next step on.

        Raises:
            ValueError: There is no such key, or the value is not allowed. Nothing has changed.
        """
        adjusting.adjust(self, key, value)

    def hold_commands(self) -> None:
        """From now on goals change with episodes alone, and by `steer` and `redraw_commands`."""
        for command in self.commands.terms.values():
            command.hold()

    def steer(self, world: int, values: Sequence[float]) -> None:
        """Tell one world's robot what to do until its episode ends, in the order of its axes."""
        if (command := self._main_command()) is not None:
            command.put(self.all_ids[world : world + 1], command.value.new_tensor(values))

    def redraw_commands(self, world: int) -> None:
        """Draw new goals for one world."""
        for command in self.commands.terms.values():
            command.resample(self.all_ids[world : world + 1])

    def state_dict(self) -> dict[str, Any]:
        """All that an exact continuation needs: tensors, numbers, strings, lists and dicts only."""
        return super().state_dict() | {
            "actions": self.actions.state_dict(),
            "commands": self.commands.state_dict(),
            "rewards": self.rewards.state_dict(),
            "terminations": self.terminations.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that `state_dict` returned.

        Raises:
            ValueError: The state is that of an env with other worlds or terms.
        """
        super().load_state_dict(state)
        for name in ("actions", "commands", "rewards", "terminations"):
            getattr(self, name).load_state_dict(state[name])

    def recall_tasks(self, state: Mapping[str, Any]) -> None:
        """Take the reward weights and command ranges that were in force when a state was saved."""
        self.rewards.weights.update(state.get("rewards", {}).get("weights", {}))
        self.commands.load_ranges(state.get("commands", {}))

    def _recall_difficulty(self, state: Mapping[str, Any]) -> None:
        super()._recall_difficulty(state)
        self.recall_tasks(state)


def make_env(
    config: EnvConfig,
    device: str,
    seed: int,
    own_terms: Sequence[Path] = (),
    listener: Listener | None = None,
) -> SteppedEnv:
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
    if config.task is not None:
        return make_direct_env(config, device, seed, listener=listener)
    return ManagerBasedEnv(config, device, seed, listener=listener)
