"""Curricula: rules that change the difficulty when episodes end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torch import Tensor

from sim.config import CurriculumSettings
from sim.managers.binding import bind

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv


class CurriculumManager:
    """All curriculum terms, and what each returned last."""

    def __init__(self, env: ManagerBasedEnv, settings: Mapping[str, CurriculumSettings]) -> None:
        self._env = env
        self.terms = {
            name: bind(env, ("curriculum", name), term) for name, term in settings.items()
        }
        self._last: dict[str, float | Tensor] = {}

    def compute(self, ids: Tensor) -> None:
        """Adapt to these worlds' episodes, which have just ended and are not yet reset."""
        for name, term in self.terms.items():
            self._last[f"Curriculum/{name}"] = term(self._env, ids)

    def reset(self) -> dict[str, float | Tensor]:
        """Return what the terms returned last, as the log."""
        return dict(self._last)
