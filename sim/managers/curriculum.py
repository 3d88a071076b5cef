"""Curricula: rules that change the difficulty when episodes end."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from sim.config import CurriculumSettings
from sim.managers.binding import bind

if TYPE_CHECKING:
    from sim.env import ManagerBasedEnv


class Progress(NamedTuple):
    """What a curriculum term tells of itself, if it is more than one number."""

    state: Mapping[str, float | Tensor]
    """How things stand, by sub-tag; that of "" is logged under the term's own name."""
    counts: Mapping[str, float | Tensor] = MappingProxyType({})
    """How often something happened on this step, by sub-tag."""


class CurriculumManager:
    """All curriculum terms, and what each returned last."""

    def __init__(self, env: ManagerBasedEnv, settings: Mapping[str, CurriculumSettings]) -> None:
        self._env = env
        self.terms = {
            name: bind(env, ("curriculum", name), term) for name, term in settings.items()
        }
        self._last: dict[str, float | Tensor] = {}
        self.counts: dict[str, float | Tensor] = {}
        """Tag to number of happenings at the last `compute`."""

    def compute(self, ids: Tensor) -> None:
        """Adapt to these worlds' episodes, which have just ended and are not yet reset."""
        for name, term in self.terms.items():
            told = term(self._env, ids)
            progress = told if isinstance(told, Progress) else Progress({"": told})
            self._last |= {_tag(name, key): value for key, value in progress.state.items()}
            self.counts |= {_tag(name, key): value for key, value in progress.counts.items()}

    def reset(self) -> dict[str, float | Tensor]:
        """Return what the terms returned last, as the log."""
        return dict(self._last)


def _tag(name: str, key: str) -> str:
    return f"Curriculum/{name}/{key}" if key else f"Curriculum/{name}"
