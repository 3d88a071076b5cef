"""Events: changes to the worlds at start-up, at a reset, and at intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sim.config import EventSettings
from sim.managers.binding import bind
from sim.managers.calling import call
from sim.managers.state import Stateful
from sim.sampling import uniform_steps

if TYPE_CHECKING:
    from sim.step import SteppedEnv


class EventManager(Stateful):
    """All event terms, and the countdown of each interval term, [terms, N] in env steps."""

    buffers = ("steps_left",)

    def __init__(self, env: SteppedEnv, settings: Mapping[str, EventSettings]) -> None:
        self._env = env
        by_mode = {
            mode: {name: term for name, term in settings.items() if term.mode == mode}
            for mode in ("startup", "reset", "interval")
        }
        self.startup_terms, self.reset_terms, self.interval_terms = (
            {name: bind(env, ("events", name), term) for name, term in terms.items()}
            for terms in by_mode.values()
        )
        self._ranges = [
            term.interval_range_s
            for term in by_mode["interval"].values()
            if term.interval_range_s is not None
        ]
        self.steps_left = torch.zeros(
            len(self._ranges), env.num_envs, dtype=torch.int64, device=env.device
        )

    def apply_startup(self) -> None:
        """Change all worlds, once, when all managers exist."""
        for name, term in self.startup_terms.items():
            call(("events", name), term, self._env, self._env.all_ids)

    def apply_reset(self, ids: Tensor) -> None:
        """Write the first state of these worlds' next episodes."""
        for name, term in self.reset_terms.items():
            call(("events", name), term, self._env, ids)

    def apply_interval(self) -> None:
        """Count one env step down; change the worlds whose time has come."""
        self.steps_left -= 1
        for k, (name, term) in enumerate(self.interval_terms.items()):
            ids = (self.steps_left[k] <= 0).nonzero().squeeze(1)
            if len(ids):
                call(("events", name), term, self._env, ids)
                # What the event wrote must be in the observations of this very step.
                self._env.scene.commit(ids)
                self._wind_up(k, ids)

    def reset(self, ids: Tensor) -> None:
        """Wind up the interval timers of these worlds."""
        for k in range(len(self._ranges)):
            self._wind_up(k, ids)

    def _wind_up(self, k: int, ids: Tensor) -> None:
        self.steps_left[k, ids] = uniform_steps(
            self._env.generator, self._ranges[k], self._env.step_dt, len(ids)
        )
