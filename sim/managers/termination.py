"""Terminations: why an episode ends, and whether the end is the world's own or the clock's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sim.config import TerminationSettings
from sim.managers.binding import bind
from sim.managers.calling import call, per_world
from sim.managers.state import Stateful

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv

BAD_WORLD = "bad_world"
"""Logged beside the terms: the world's state was not finite or had exploded."""


class TerminationManager(Stateful):
    """All termination terms, and how every world's last episode ended.

    Attributes:
        terminated: Worlds whose episode ended in a state of its own, [N] bool.
        time_outs: Worlds whose episode was cut by its time limit, [N] bool. Unlike Isaac Lab's,
            never set where `terminated` is: a fall on the last step counts as the fall.
        ended_by: Whether each term ended the last finished episode, [terms + 1, N] bool; the last
            row is that of bad worlds.
    """

    buffers = ("terminated", "time_outs", "ended_by")

    def __init__(self, env: ManagerBasedEnv, settings: Mapping[str, TerminationSettings]) -> None:
        self._env = env
        self.terms = {
            name: bind(env, ("terminations", name), term) for name, term in settings.items()
        }
        self._names = (*settings, BAD_WORLD)
        self._is_time_out = [term.time_out for term in settings.values()]
        self._now = torch.zeros(len(self._names), env.num_envs, dtype=torch.bool, device=env.device)
        self.ended_by = torch.zeros_like(self._now)
        self.terminated = torch.zeros_like(self._now[0])
        self.time_outs = torch.zeros_like(self._now[0])

    def compute(self, bad: Tensor) -> None:
        """Find the worlds that end on this step.

        Args:
            bad: Worlds [N] bool whose state is not to be trusted; they end for that reason alone.
        """
        good = ~bad
        self.terminated, self.time_outs = bad.clone(), torch.zeros_like(bad)
        for row, (name, term), is_time_out in zip(
            self._now, self.terms.items(), self._is_time_out, strict=False
        ):
            path = ("terminations", name)
            ends = per_world(path, call(path, term, self._env), self._env)
            torch.logical_and(ends, good, out=row)
            if is_time_out:
                self.time_outs = self.time_outs | row
            else:
                self.terminated = self.terminated | row
        self.time_outs = self.time_outs & ~self.terminated
        self._now[-1] = bad

    def reset(self, ids: Tensor) -> dict[str, float | Tensor]:
        """Remember how these worlds ended; return the share of all worlds by reason."""
        ended_by = self._now[:, ids]
        fell = self.terminated[ids]
        for k, is_time_out in enumerate(self._is_time_out):
            if is_time_out:
                ended_by[k] &= ~fell
        self.ended_by[:, ids] = ended_by
        shares = self.ended_by.float().mean(1).unbind()
        log: dict[str, float | Tensor] = {
            f"Episode_Termination/{name}": share
            for name, share in zip(self._names, shares, strict=True)
        }
        if not self._env.num_faults:
            del log[f"Episode_Termination/{BAD_WORLD}"]
        return log
