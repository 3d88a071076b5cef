"""What rank 0 does to have others train with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from trainer.channel import Kind
from trainer.channel_ends import Followers
from trainer.distributed import Group, ProcessGroup, to_bytes
from trainer.launch import Launcher


def lead(
    launcher: Launcher,
    device: torch.device,
    job_for: Callable[[int], Mapping[str, Any]],
    on_loss: Callable[[], None],
    interrupted: Callable[[], bool],
) -> Group:
    """Connect with all other ranks and tell each what to train.

    Args:
        launcher: the way to them.
        device: where rank 0's tensors live.
        job_for: what a rank is to train.
        on_loss: called, in another thread, when the first rank is lost.
        interrupted: whether the run must end now.

    Raises:
        StopRequested: `interrupted` became true.
    """
    group: ProcessGroup | None = None

    def lose() -> None:
        if group is not None:
            group.abort()
        on_loss()

    try:
        links = launcher.connect(interrupted)
        followers = Followers(links, lose, launcher.death_of)
        store, port = launcher.store()
        for rank in links:
            job = {**job_for(rank), "store_port": port}
            followers.tell_one(rank, Kind.JOB, to_bytes(job))
        group = ProcessGroup(launcher.rank, device, followers, store, launcher.close)
    except BaseException:
        launcher.close()
        raise
    return group
