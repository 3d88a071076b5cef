"""Several processes that train one preset together: which, on what, and with what state."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from presets.loader import to_toml
from presets.problems import PresetError
from presets.schema import Preset
from trainer import checkpoint
from trainer.ranks import Rank, threads_for
from trainer.session import Join

if TYPE_CHECKING:
    from trainer.distributed import Group

MAX_PROCESSES = 64
"""Of one machine; more are a slip of the finger."""


@dataclass(frozen=True)
class Ranks:
    """Who trains, as this process sees it."""

    own: Rank = field(default_factory=Rank)
    by_torchrun: bool = False
    """Whether torchrun has started them; else rank 0 starts the others."""

    @property
    def several(self) -> bool:
        """Whether there is more than one process."""
        return self.own.world_size > 1


def wanted_ranks(processes: int | None, environment: Mapping[str, str] = os.environ) -> Ranks:
    """Who is to train, by the command line and by what torchrun has put into the environment.

    Args:
        processes: how many the command line asks for; None where it does not.
        environment: variables of this process.

    Raises:
        PresetError: the number is none that can be, or both ask for several.
    """
    try:
        own = Rank.from_environment(environment)
    except ValueError as error:
        raise PresetError([str(error)]) from None
    if processes is None:
        return Ranks(own, by_torchrun=own.world_size > 1)
    if own.world_size > 1:
        raise PresetError(
            [
                f"--processes {processes}: torchrun has started {own.world_size} processes "
                "already; give the number there alone"
            ]
        )
    if not 1 <= processes <= MAX_PROCESSES:
        raise PresetError([f"--processes {processes}: must be 1 to {MAX_PROCESSES}"])
    return Ranks(Rank(0, processes, 0, processes))


def joining(
    ranks: Ranks,
    preset: Preset,
    device: str,
    own_terms: Sequence[Path],
    log: Path,
    state: Mapping[str, Any] | None = None,
) -> Join | None:
    """Make the function with which a session brings its ranks together; None for one alone.

    Args:
        ranks: who trains.
        preset: what; it has a seed.
        device: rank 0's.
        own_terms: Python files with a person's own terms.
        log: takes what started processes print.
        state: of a checkpoint, to go on from.
    """
    if not ranks.several:
        return None

    def job_for(rank: int) -> dict[str, Any]:
        return {
            "preset": to_toml(preset),
            "name": preset.name,
            "device": device.partition(":")[0],
            "own_terms": [str(path.absolute()) for path in own_terms],
            "state": checkpoint.for_rank(state, rank, ranks.own.world_size) if state else {},
        }

    def join(on_loss: Callable[[], None], interrupted: Callable[[], bool]) -> Group:
        import torch

        from trainer.launch import Launcher, StartedRanks, TorchrunRanks
        from trainer.leading import lead

        launcher: Launcher
        if ranks.by_torchrun:
            launcher = TorchrunRanks(ranks.own)
        else:
            command = [sys.executable, "-m", "presets.follow"]
            launcher = StartedRanks(ranks.own.world_size, command, log)
        return lead(launcher, torch.device(device), job_for, on_loss, interrupted)

    return join


def notes_on_ranks(ranks: Ranks, preset: Preset, device: str) -> list[str]:
    """Say which GPUs these are, and what a person should know of training in several processes."""
    notes = []
    size, worlds = ranks.own.world_size, preset.env.num_envs
    if ranks.several:
        notes.append(
            f"{size} processes x {worlds} worlds = {size * worlds} worlds; "
            "tensors and times are those of rank 0, all other numbers those of all ranks"
        )
    if device.startswith("cuda"):
        count = ranks.own.local_world_size
        names = [device] if count == 1 else [f"cuda:{index}" for index in range(count)]
        cards = [f"{name} is GPU {card}" for name in names if (card := physical_gpu(name))]
        if cards:
            notes.append(f"{', '.join(cards)} of this machine, by CUDA_VISIBLE_DEVICES")
    elif ranks.several:
        threads = threads_for(ranks.own)
        plural = "" if threads == 1 else "s"
        notes.append(f"torch takes {threads} thread{plural} a process (OMP_NUM_THREADS)")
    return notes


def physical_gpu(device: str, environment: Mapping[str, str] = os.environ) -> str:
    """Name the card behind a device such as "cuda:0", where CUDA_VISIBLE_DEVICES renumbers them.

    Returns:
        Its number or its unique name on the machine; nothing where the device's number is it.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES", "")
    cards = [card.strip() for card in visible.split(",") if card.strip()]
    index = int(device.partition(":")[2] or 0)
    return cards[index] if index < len(cards) else ""


def notes_on_state(ranks: Ranks, state: Mapping[str, Any]) -> list[str]:
    """Say which worlds begin anew when a run goes on from a checkpoint."""
    before, now = checkpoint.world_size(state), ranks.own.world_size
    if before != now:
        return [
            f"the worlds begin anew, as hard as rank 0's were; trained by {_processes(before)} so "
            f"far, from now on by {_processes(now)}: the learner goes on"
        ]
    others: Sequence[Any] = state.get("other_ranks", ())
    lost = [rank for rank, worlds in enumerate(others, start=1) if worlds is None]
    return [f"the worlds of rank {rank} were lost and begin anew" for rank in lost]


def _processes(number: int) -> str:
    return f"{number} process{'' if number == 1 else 'es'}"
