"""What a checkpoint holds: which parts are needed for what, and of what kind each must be.

Parts that only tell of the run (`device`, `elapsed`, `mean_reward`, `env_steps`) may be missing,
and so may the worlds, which then begin anew; no learner goes on without its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from trainer.config import TrainerConfig

POLICY = ("actor",)
"""Parts without which nothing can act."""
LEARNER = ("actor", "critic", "optimizer", "completed_iterations")
"""Parts without which no training can go on."""


class _Kind(NamedTuple):
    """What a part must be."""

    name: str
    fits: Callable[[Any], bool]


def _is_table(part: object) -> bool:
    return isinstance(part, Mapping) and all(isinstance(key, str) for key in part)


def _is_tensor(part: object) -> bool:
    import torch

    return isinstance(part, torch.Tensor)


def _is_random_state(part: Any) -> bool:  # noqa: ANN401
    import torch

    return _is_tensor(part) and part.dtype == torch.uint8


def _is_table_of_tensors(part: Any) -> bool:  # noqa: ANN401 - anything that was in a file
    return _is_table(part) and all(map(_is_tensor, part.values()))


def _is_list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda part: isinstance(part, list) and all(map(fits, part))


def _is_number(part: object) -> bool:
    return isinstance(part, int | float) and not isinstance(part, bool)


def _is_count(part: Any) -> bool:  # noqa: ANN401
    return isinstance(part, int) and not isinstance(part, bool) and part >= 0


def _is_optimizer(part: Any) -> bool:  # noqa: ANN401
    return (
        _is_table(part)
        and _is_list_of(_is_table)(part.get("param_groups"))
        and isinstance(part.get("state"), Mapping)
    )


_TABLE = _Kind("a table", _is_table)
_TENSORS = _Kind("a table of tensors", _is_table_of_tensors)
_MEMORY = _Kind("a list of tensors", _is_list_of(_is_tensor))
_NUMBER = _Kind("a number", _is_number)
_COUNT = _Kind("a whole number from 0 on", _is_count)
_TEXT = _Kind("a text", lambda part: isinstance(part, str))

_KINDS = {
    "actor": _TENSORS,
    "critic": _TENSORS,
    "optimizer": _Kind("an optimizer's state", _is_optimizer),
    "rnd": _TABLE,
    "generator": _Kind("a tensor of bytes", _is_random_state),
    "env": _TABLE,
    "obs": _Kind("a table of tensors", lambda part: part is None or _is_table_of_tensors(part)),
    "actor_hidden": _MEMORY,
    "critic_hidden": _MEMORY,
    "episodes": _TENSORS,
    "intrinsic": _TENSORS,
    "edits": _Kind("a list of tables", _is_list_of(_is_table)),
    "completed_iterations": _COUNT,
    "env_steps": _COUNT,
    "elapsed": _NUMBER,
    "mean_reward": _NUMBER,
    "preset": _TEXT,
    "device": _TEXT,
    "world_size": _Kind("a whole number from 1 on", lambda part: _is_count(part) and part > 0),
    "other_ranks": _Kind(
        "a list of tables", _is_list_of(lambda part: part is None or _is_table(part))
    ),
}


def wrong_kinds(state: Mapping[str, Any]) -> list[str]:
    """Say which parts are of another kind than they must be; unknown parts may be anything."""
    return [
        f"{name} must be {kind.name}, not {_shown(state[name])}"
        for name, kind in _KINDS.items()
        if name in state and not kind.fits(state[name])
    ]


def lacking(state: Mapping[str, Any], needed: Iterable[str]) -> list[str]:
    """Return the needed parts that are not there."""
    return [name for name in needed if state.get(name) is None]


def worlds_lacking(state: Mapping[str, Any], config: TrainerConfig) -> list[str]:
    """Return what is missing for the worlds of a state to go on.

    Args:
        state: of a checkpoint.
        config: what goes on from it.
    """
    needed = ["generator", "env", "obs", "episodes"]
    if config.recurrent:
        needed += ["actor_hidden", "critic_hidden"]
    if config.rnd is not None:
        needed.append("intrinsic")
    return lacking(state, needed)


def _shown(part: object) -> str:
    """A short value, or what kind a long one is of."""
    short = part is None or isinstance(part, bool | int | float | str)
    return repr(part)[:40] if short else type(part).__name__
