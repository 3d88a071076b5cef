"""Which of several processes that train together this one is, and what becomes of them.

Neither torch nor NumPy is imported with this module.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from trainer.cores import usable_cores


@dataclass(frozen=True)
class Rank:
    """One process among those that train together, under the names that torchrun gives."""

    rank: int = 0
    """Among all; rank 0 alone writes the run's folder and talks to a person."""
    world_size: int = 1
    """Processes of all machines together."""
    local_rank: int = 0
    """Among those of this machine: the number of its GPU."""
    local_world_size: int = 1
    """Processes of this machine."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Rank:
        """Read what a launcher says; without one, this process is alone.

        Raises:
            ValueError: a variable is no number, or the rank is none of the world's.
        """
        world_size = _number(environment, "WORLD_SIZE", 1)
        if world_size == 1:
            return cls()
        rank = _number(environment, "RANK", 0)
        local_world_size = _number(environment, "LOCAL_WORLD_SIZE", world_size)
        local_rank = _number(environment, "LOCAL_RANK", rank % max(local_world_size, 1))
        if not (0 <= rank < world_size and 0 <= local_rank < local_world_size):
            raise ValueError(
                f"RANK={rank}, WORLD_SIZE={world_size}, LOCAL_RANK={local_rank}, "
                f"LOCAL_WORLD_SIZE={local_world_size}: a rank must be less than its world's size"
            )
        return cls(rank, world_size, local_rank, local_world_size)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that `from_environment` reads."""
        return {
            "RANK": str(self.rank),
            "WORLD_SIZE": str(self.world_size),
            "LOCAL_RANK": str(self.local_rank),
            "LOCAL_WORLD_SIZE": str(self.local_world_size),
        }


class RankError(RuntimeError):
    """Another rank has failed, or is gone; its traceback, where there is one, is a note."""


def rank_seed(seed: int, rank: int) -> int:
    """Seed of a rank's worlds and noise: the run's own for rank 0, an independent one for others.

    The networks' first weights do not depend on it: they are the same on all ranks.
    """
    if rank == 0:
        return seed
    import numpy as np  # not before it is needed: the menu imports this module

    return int(np.random.SeedSequence(seed, spawn_key=(rank,)).generate_state(1)[0])


def share_of_cores(environment: Mapping[str, str] = os.environ) -> int:
    """Cores for this process: all that it may use, or its share where several train together."""
    processes = environment.get("LOCAL_WORLD_SIZE", "")  # set on rank 0 too, once there are others
    together = int(processes) if processes.isdecimal() else 1
    return max(1, usable_cores() // max(together, 1))


def threads_for(rank: Rank, environment: Mapping[str, str] = os.environ) -> int:
    """Torch's threads for one of several processes: its share of the cores.

    `OMP_NUM_THREADS` wins, where a person or a launcher has set it.
    """
    chosen = environment.get("OMP_NUM_THREADS", "")
    if chosen.isdecimal() and int(chosen) > 0:
        return int(chosen)
    return max(1, usable_cores() // rank.local_world_size)


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "")
    if not text:
        return default
    if not text.isdecimal():
        raise ValueError(f"{name}={text}: must be a number")
    return int(text)
