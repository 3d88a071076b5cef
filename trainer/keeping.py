"""Which checkpoints of a run are kept, which is the best, and the writing of a new one."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from trainer import checkpoint
from trainer.rundir import RunDir

KEEP_ALL = -1


class Best(NamedTuple):
    """The checkpoint whose last finished episodes had the highest mean reward."""

    iteration: int
    """Completed iterations."""
    mean_reward: float


def dispensable(saved: Collection[int], keep: int, spared: Collection[int]) -> list[int]:
    """Return the checkpoints to delete, by completed iterations.

    Args:
        saved: those that exist.
        keep: how many of the newest stay; -1: all.
        spared: those that stay in any case.
    """
    if keep == KEEP_ALL:
        return []
    return [number for number in sorted(saved)[:-keep] if number not in spared]


class CheckpointKeeper:
    """Writes the checkpoints of a run, and deletes those that need not be kept.

    The file just written, the best one, and the one that the run was resumed from always stay.

    Args:
        run_dir: the run's folder.
        keep: how many of the newest stay; -1: all.
        record: told of what was done, as kind and text of an event.
        resumed_from: completed iterations of the checkpoint that the run goes on from; 0: none.
    """

    def __init__(
        self,
        run_dir: RunDir,
        keep: int,
        record: Callable[[str, str], object],
        resumed_from: int = 0,
    ) -> None:
        self.best: Best | None = None
        self.newest = resumed_from
        """Completed iterations of the last one written or resumed from; 0: there is none."""
        self.folder = run_dir.checkpoints
        """Where they lie."""
        self._run_dir = run_dir
        self._keep = keep
        self._record = record
        self._resumed_from = resumed_from

    def recall(self, mean_rewards: Mapping[int, float]) -> None:
        """Find the best of the checkpoints that exist already.

        Args:
            mean_rewards: for completed iterations the mean reward then.
        """
        for number in self._numbers():
            self._compare(number, mean_rewards.get(number, math.nan))

    def wants(self, state: Mapping[str, Any]) -> bool:
        """Whether a state is worth saving: an iteration is complete, and it is not on disk."""
        return state["completed_iterations"] not in (0, self.newest)

    def save(self, state: dict[str, Any]) -> None:
        """Save a state, unless it is not wanted.

        A disk that is full or read-only raises nothing: it is recorded.

        Args:
            state: of a session, with `completed_iterations` and `mean_reward`.
        """
        if self.wants(state):
            self._write(state)

    def renew(self, state: dict[str, Any]) -> None:
        """Write the newest checkpoint again, if it is of this iteration: its state has changed."""
        if state["completed_iterations"] == self.newest:
            self._write(state)

    def _write(self, state: dict[str, Any]) -> None:
        iteration = state["completed_iterations"]
        path = checkpoint.path_for(self.folder, iteration)
        try:
            self._run_dir.restore()
            checkpoint.save(path, state)
        except OSError as error:
            self._record("alert", f"checkpoint {path.name} not saved: {error}; training goes on")
            return
        self.newest = iteration
        self._compare(iteration, state["mean_reward"])
        self._record("checkpoint", f"{path.name} saved, {path.stat().st_size / 1e6:.1f} MB")
        self._tidy()

    def _compare(self, iteration: int, mean_reward: float) -> None:
        if math.isfinite(mean_reward) and (
            self.best is None or mean_reward >= self.best.mean_reward
        ):
            self.best = Best(iteration, mean_reward)

    def _tidy(self) -> None:
        best = self.best.iteration if self.best is not None else 0
        spared = {self.newest, self._resumed_from, best}
        for number in dispensable(self._numbers(), self._keep, spared):
            path = checkpoint.path_for(self.folder, number)
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                self._record("alert", f"checkpoint {path.name} not deleted: {error.strerror}")

    def _numbers(self) -> list[int]:
        # A damaged file newer than the one resumed from is no checkpoint of this run any more.
        return [n for n in checkpoint.saved_iterations(self.folder) if n <= self.newest]


def copied(value: Any, place: str = "state") -> Any:  # noqa: ANN401 - any part of a state dict
    """A copy of nested dicts and lists in which every tensor is cloned.

    Numbers of NumPy, such as a person's curriculum may have set, become Python's, arrays tensors,
    and paths texts: a checkpoint is read back as data alone.

    Raises:
        TypeError: there is something in it that could not be; says where.
    """
    if isinstance(value, Mapping):
        return {_plain(key, place): copied(entry, f"{place}.{key}") for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [copied(entry, f"{place}[{index}]") for index, entry in enumerate(value)]
    return value.clone() if hasattr(value, "clone") else _plain(value, place)


def _plain(value: Any, place: str) -> Any:  # noqa: ANN401 - a leaf of a state dict
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return value if type(value) is kind else kind(value)
    if value is None:
        return value
    if isinstance(value, PurePath):
        return str(value)
    if type(value).__module__ == "numpy" and (number := _of_numpy(value)) is not None:
        return number
    raise TypeError(
        f"{place} is of the type {type(value).__name__}, which a checkpoint cannot hold; it must "
        "be a tensor, number, text, or a list or dict of these"
    )


def _of_numpy(value: Any) -> Any:  # noqa: ANN401 - a scalar or an array
    """A scalar as Python's number, an array of numbers as a tensor; None for anything else."""
    if getattr(value, "ndim", None) == 0:
        number = value.item()
        return number if isinstance(number, bool | int | float | str) else None
    if getattr(value, "dtype", None) is not None and value.dtype.kind in "biuf":
        import torch

        return torch.tensor(value)
    return None
