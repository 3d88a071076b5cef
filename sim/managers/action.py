"""The action: kept raw, cut into slices, each turned into targets by its term."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from sim.config import ActionSettings
from sim.managers.binding import bind
from sim.managers.calling import call, made
from sim.managers.state import Stateful

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv


class ActionColumn(NamedTuple):
    """What becomes of one column of an action: target = offset + scale x action."""

    joint: str
    """What it drives."""
    kind: str
    """What the target is of: position (rad or m) or effort (N m or N); custom: see its term."""
    scale: float
    offset: float


class Action:
    """An action term: a slice of the action [N, width] drives part of the robot."""

    names: tuple[str, ...]
    """What each column of the slice drives."""

    def columns(self) -> tuple[ActionColumn, ...]:
        """What becomes of each column of the slice."""
        return tuple(ActionColumn(name, "custom", 1.0, 0.0) for name in self.names)

    def process(self, action: Tensor) -> None:
        """Turn the raw slice into targets, once an env step."""
        raise NotImplementedError

    def apply(self) -> None:
        """Hand the targets to the robot, at every physics tick."""
        raise NotImplementedError


class ActionManager(Stateful):
    """All action terms, and the raw actions of this step and the one before, [N, A] each."""

    buffers = ("action", "previous_action")

    def __init__(self, env: ManagerBasedEnv, settings: Mapping[str, ActionSettings]) -> None:
        self.terms: dict[str, Action] = {
            name: made(path := ("actions", name), bind(env, path, term), env, Action)
            for name, term in settings.items()
        }
        self.names = tuple(name for term in self.terms.values() for name in term.names)
        self.action = torch.zeros(env.num_envs, len(self.names), device=env.device)
        self.previous_action = torch.zeros_like(self.action)
        # The slices are views of the one buffer, so they always hold the present action.
        widths = [len(term.names) for term in self.terms.values()]
        self._slices = list(
            zip(self.terms.items(), torch.split(self.action, widths, dim=1), strict=True)
        )

    def process(self, actions: Tensor) -> None:
        """Remember the last action, take the new one [N, A], compute the targets."""
        self.previous_action.copy_(self.action)
        self.action.copy_(actions)
        for (name, term), raw in self._slices:
            call(("actions", name), term.process, raw)

    def apply(self) -> None:
        """Hand all targets to the robot; called before every physics tick."""
        for name, term in self.terms.items():
            call(("actions", name), term.apply)

    def reset(self, ids: Tensor) -> None:
        """Zero both actions of these worlds: a new episode has no past."""
        self.action[ids] = 0.0
        self.previous_action[ids] = 0.0
