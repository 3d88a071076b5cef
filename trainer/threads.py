"""How torch's own threads wait, how many of them compute, and what is computed side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from trainer.cores import usable_cores

if TYPE_CHECKING:
    import torch

First = TypeVar("First")
Second = TypeVar("Second")

MIN_THREAD_WORK = 2**24
"""Multiply-adds of a forward pass for which it pays to wake a thread."""

_HELPER = ThreadPoolExecutor(1, thread_name_prefix="side by side")


def let_torch_threads_sleep() -> None:
    """Make torch's threads sleep between two operations. Call before torch is first imported.

    Spinning, they would starve physics, screen and other programs of a busy machine; asleep they
    cost little.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def keep_torch_to_its_cores() -> None:
    """Give torch no more threads than a container's quota has cores; torch does not look at it.

    `OMP_NUM_THREADS` wins, where a person has set it. Call in the thread that trains.
    """
    import torch

    cores = usable_cores()
    if "OMP_NUM_THREADS" not in os.environ and torch.get_num_threads() > cores:
        torch.set_num_threads(cores)


def use_one_torch_thread() -> None:
    """Let torch compute in the thread that calls it: a few worlds are done before others wake."""
    import torch

    torch.set_num_threads(1)


class TorchThreads:
    """Shares out torch's threads: half of them to the caller, half to what is beside it.

    A layer of a small network is over before several threads have divided it among them, and at
    every layer they wait for each other. Two networks with a thread each wait once. And of its half
    each gets no more than its work keeps busy.

    Args:
        device: what computes; a GPU needs one thread.
    """

    def __init__(self, device: torch.device) -> None:
        import torch

        self._half = torch.get_num_threads() // 2 if device.type == "cpu" else 0

    @contextmanager
    def at(self, work: int) -> Iterator[None]:
        """Let the calling thread compute with the threads for this work, one at least.

        Args:
            work: multiply-adds of a forward pass.
        """
        with _torch_threads(max(1, self._threads_for(work))):
            yield

    def side_by_side(
        self, first: Callable[[], First], second: Callable[[], Second], work: int
    ) -> tuple[First, Second]:
        """Compute two things that do not depend on each other, large ones at the same time.

        Args:
            first: called in the calling thread.
            second: called under the same grad mode, in another thread if there is one for it.
            work: multiply-adds of the forward pass of each.
        """
        import torch

        threads = self._threads_for(work)
        if threads == 0:
            with _torch_threads(1):
                return first(), second()
        with _torch_threads(threads):
            other = _HELPER.submit(_compute, second, threads, torch.is_grad_enabled())
            try:
                result = first()
            finally:
                other.exception()  # waits: an error must find all at rest
        return result, other.result()

    def _threads_for(self, work: int) -> int:
        return min(self._half, work // MIN_THREAD_WORK)


def _compute(function: Callable[[], Second], threads: int, with_grad: bool) -> Second:
    import torch

    with _torch_threads(threads), torch.set_grad_enabled(with_grad):
        return function()


@contextmanager
def _torch_threads(count: int) -> Iterator[None]:
    """Let torch use so many threads for what the calling thread asks of it."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
