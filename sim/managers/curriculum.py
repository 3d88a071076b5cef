"""Curricula: rules that change the difficulty when episodes end."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from sim.config import CurriculumSettings
from sim.managers.binding import bind
from sim.managers.calling import call, dotted

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
            progress = _progress(name, call(("curriculum", name), term, self._env, ids))
            self._last |= {_tag(name, key): value for key, value in progress.state.items()}
            self.counts |= {_tag(name, key): value for key, value in progress.counts.items()}

    def reset(self) -> dict[str, float | Tensor]:
        """Return what the terms returned last, as the log."""
        return dict(self._last)


def _progress(name: str, told: object) -> Progress:
    """What a term returned: a number, numbers by name, nothing, or `Progress`."""
    if isinstance(told, Progress):
        return told
    state: Mapping[str, Any]
    state = told if isinstance(told, Mapping) else {} if told is None else {"": told}
    for value in state.values():
        is_one = isinstance(value, int | float) or (isinstance(value, Tensor) and not value.dim())
        if not is_one:
            raise TypeError(
                f"{dotted(('curriculum', name))} returned {value!r}; it must return a number, or a "
                "table of numbers by name, for the log"
            )
    return Progress(state)


def _tag(name: str, key: str) -> str:
    return f"Curriculum/{name}/{key}" if key else f"Curriculum/{name}"
