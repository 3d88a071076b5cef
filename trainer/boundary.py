"""The last complete iteration: kept in memory, so that any stop or crash can still save it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trainer.keeping import CheckpointKeeper, copied

if TYPE_CHECKING:
    from trainer.distributed import Group


class Boundary:
    """A copy of the state between two iterations, and its way to the disk.

    Args:
        keeper: writes checkpoints.
        record: told of what was lost, as kind and text of an event.
    """

    def __init__(self, keeper: CheckpointKeeper, record: Callable[[str, str], object]) -> None:
        self.group: Group | None = None
        """The other ranks of the run, which hold worlds of their own; None: there are none."""
        self._keeper = keeper
        self._record = record
        self._state: dict[str, Any] | None = None

    def keep(self, state: Mapping[str, Any]) -> None:
        """Copy the state of this iteration boundary."""
        self._state = copied(state)

    def save(self) -> None:
        """Save the last completed iteration, unless it is on disk already."""
        state = self._state
        if state is not None and self._keeper.wants(state):
            self._keeper.save(state | self._of_other_ranks(state["completed_iterations"]))

    def renew(self) -> None:
        """Overwrite this iteration's checkpoint, if there is one: an edit has changed its state."""
        assert self._state is not None
        self._keeper.renew(self._state)  # several ranks never edit in a pause

    def require_saved(self) -> None:
        """Fail a run whose last iterations are nowhere: nobody may believe them safe.

        Raises:
            OSError: the last checkpoint is older than the last iteration.
        """
        state = self._state
        if state is not None and (lost := state["completed_iterations"] - self._keeper.newest):
            raise OSError(
                f"the last {counted(lost)} could not be saved in {self._keeper.folder}: "
                "is the disk full, or the folder read-only?"
            )

    def _of_other_ranks(self, iteration: int) -> dict[str, Any]:
        """The part of a checkpoint that other ranks hold."""
        if self.group is None:
            return {}
        others = self.group.worlds_of_others(iteration)
        for rank, worlds in enumerate(others, start=1):
            if worlds is None:
                self._record("alert", f"the worlds of rank {rank} are lost")
        return {"world_size": self.group.world_size, "other_ranks": others}


def counted(iterations: int) -> str:
    """So many iterations, in words."""
    return f"{iterations} iteration{'' if iterations == 1 else 's'}"
