"""What the ranks of one training share: gradients, moments, reports and the start.

K ranks of N worlds learn as one process with K x N worlds would: whatever is a mean over samples is
a mean over the samples of all ranks. So gradients, KL and with it the learning rate, the moments
of advantages and of observations are joined; and each rank steps the same optimizer by the same
numbers, which keeps the weights equal, bit for bit.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import Store

from trainer.channel import Kind
from trainer.channel_ends import Followers, Leader
from trainer.ranks import Rank, RankError, threads_for
from trainer.stages import StopRequested

TIMEOUT = dt.timedelta(hours=1)
"""For one collective operation. All ranks are there when it begins, or about to be: one that dies
is noticed by its socket, not by this."""

NEWS_TIME = 5.0
"""Seconds in which the cause of a collective operation's failure is known."""


class Moments(NamedTuple):
    """How many rows there are, and each column's mean and variance."""

    num_rows: int
    mean: Tensor
    """[1, d]"""
    var: Tensor
    """Mean squared distance from the mean, [1, d]."""


class Group:
    """The ranks of one training; this class is for a process that trains alone, and does nothing.

    Attributes:
        rank: which of them this process is.
    """

    def __init__(self, rank: Rank | None = None) -> None:
        self.rank = rank or Rank()

    @property
    def world_size(self) -> int:
        """Processes that train together."""
        return self.rank.world_size

    def assemble(self, tensors: Sequence[Tensor], interrupted: Callable[[], bool]) -> None:
        """Wait until all ranks have built their worlds, then give all of them rank 0's tensors.

        Args:
            tensors: overwritten in place, but on rank 0; of the same shapes on all ranks.
            interrupted: whether rank 0 has been told to stop.

        Raises:
            RankError: a rank was lost.
            StopRequested: there is nothing to do any more.
        """

    def average(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Mean of each tensor over the ranks.

        Args:
            tensors: of any shapes, float32; left as they are.

        Returns:
            The means, the same bits on all ranks; alone, the tensors themselves.
        """
        return list(tensors)

    def merge_moments(self, own: Moments) -> Moments:
        """Moments of the rows of all ranks together, the same bits on all; alone, `own` itself."""
        return own

    def exchange(self, report: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Bring what an iteration brought to rank 0.

        Args:
            report: what JSON can carry, with completed iterations as "iteration".

        Returns:
            On rank 0 the reports of all ranks, in order; elsewhere nothing.
        """
        return [dict(report)]

    def plan_edits(self, iteration: int, edits: str) -> None:
        """Have all other ranks make edits when so many iterations are complete: later than now.

        Args:
            iteration: completed iterations then.
            edits: as `trainer.wire.to_json` writes them.
        """

    def keep_worlds(self, iteration: int, worlds: Mapping[str, Any]) -> None:
        """Have a rank's own state ready for a checkpoint that rank 0 may want to write."""

    def worlds_of_others(self, iteration: int) -> list[dict[str, Any] | None]:
        """Own states of ranks 1, 2, ... after an iteration; None where a rank is gone."""
        return []

    def raise_loss(self) -> None:
        """Raise for a rank that was lost; return if none was.

        Raises:
            RankError: says which, and why.
        """

    def blame(self) -> None:
        """Wait a moment for the news that another rank is the cause of what went wrong here.

        Raises:
            RankError: it is; says which, and why.
            StopRequested: rank 0 knows already.
        """

    def close(self) -> None:
        """Let all ranks leave."""


class ProcessGroup(Group):
    """One of several ranks, joined by torch.distributed: NCCL between GPUs, Gloo on the CPU.

    Args:
        rank: which one.
        device: where this rank's tensors live.
        channel: to the other ranks, on rank 0; to rank 0, on the others.
        store: host and port of the store where the ranks find each other; rank 0 has opened it.
        on_close: called once when all is over.
    """

    def __init__(
        self,
        rank: Rank,
        device: torch.device,
        channel: Followers | Leader,
        store: Store,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(rank)
        self._device = device
        self._channel = channel
        self._store = store
        self._on_close = on_close
        self._joined = False
        torch.set_num_threads(threads_for(rank))
        if device.type == "cuda":
            torch.cuda.set_device(device)  # or NCCL and others would also open GPU 0

    def assemble(self, tensors: Sequence[Tensor], interrupted: Callable[[], bool]) -> None:
        """Wait until all ranks have built their worlds, then give all of them rank 0's tensors."""
        if isinstance(self._channel, Followers):
            self._channel.wait_until_ready(interrupted)
        else:
            self._channel.ready()
        with self._together():
            self._join()
            for tensor in tensors:
                shared = tensor.detach().clone().contiguous()
                dist.broadcast(shared, src=0)
                tensor.detach().copy_(shared)

    def average(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Mean of each tensor over the ranks, all of them in one operation."""
        flat = torch.cat([tensor.detach().flatten() for tensor in tensors])
        with self._together():
            dist.all_reduce(flat)
        flat /= self.world_size
        parts = torch.split(flat, [tensor.numel() for tensor in tensors])
        return [part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]

    def merge_moments(self, own: Moments) -> Moments:
        """Moments of the rows of all ranks together, by the form of Chan et al. (1979)."""
        mean, var = own.mean.double(), own.var.double()
        count = torch.full_like(mean[:, :1], own.num_rows)
        row = torch.cat((count, mean, var), dim=1)
        rows = [torch.empty_like(row) for _ in range(self.world_size)]
        with self._together():
            dist.all_gather(rows, row)
        widths = [1, mean.shape[1], mean.shape[1]]
        counts, means, variances = torch.split(torch.cat(rows), widths, dim=1)
        total = counts.sum()
        joined = (counts * means).sum(0, keepdim=True) / total
        spread = counts * (variances + (means - joined).square())
        var = spread.sum(0, keepdim=True) / total
        return Moments(int(total), joined.to(own.mean.dtype), var.to(own.var.dtype))

    def exchange(self, report: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Bring what an iteration brought to rank 0."""
        if isinstance(self._channel, Followers):
            return [dict(report), *self._channel.reports(report["iteration"])]
        self._channel.report(report)
        return []

    def plan_edits(self, iteration: int, edits: str) -> None:
        """Have all other ranks make edits when so many iterations are complete: later than now."""
        if isinstance(self._channel, Followers):
            plan = json.dumps({"iteration": iteration, "edits": edits})
            self._channel.tell(Kind.EDITS, plan.encode())

    def keep_worlds(self, iteration: int, worlds: Mapping[str, Any]) -> None:
        """Have a rank's own state ready for a checkpoint that rank 0 may want to write."""
        if isinstance(self._channel, Leader):
            self._channel.keep(iteration, lambda: to_bytes(worlds))

    def worlds_of_others(self, iteration: int) -> list[dict[str, Any] | None]:
        """Own states of ranks 1, 2, ... after an iteration; None where a rank is gone."""
        if not isinstance(self._channel, Followers):
            return []
        found = self._channel.worlds(iteration)
        return [None if data is None else from_bytes(data) for data in found]

    def raise_loss(self) -> None:
        """Raise for a rank that was lost; return if none was."""
        if isinstance(self._channel, Followers) and self._channel.loss is not None:
            raise self._channel.loss

    def blame(self) -> None:
        """Wait a moment for the news that another rank is the cause of what went wrong here."""
        if isinstance(self._channel, Followers):
            self._channel.wait_for_loss(NEWS_TIME)
            self.raise_loss()
        elif self._channel.wait_for_stop(2 * NEWS_TIME):  # rank 0 hears of the cause first
            raise StopRequested

    def abort(self) -> None:
        """Break off a collective operation of GPUs that waits for a rank which is gone.

        Gloo notices by itself.
        """
        if self._joined and self._device.type == "cuda":
            with contextlib.suppress(Exception):  # whatever it says, the run has failed already
                dist.distributed_c10d._get_default_group().abort()

    def close(self) -> None:
        """Let all ranks leave."""
        if isinstance(self._channel, Followers):
            lost = self._channel.loss is not None
            self._channel.stop()
            # between GPUs the end of a group is an operation of all ranks, too
            if self._joined and not (lost and self._device.type == "cuda"):
                dist.destroy_process_group()
        self._joined = False
        self._on_close()

    def _join(self) -> None:
        if self._device.type == "cuda":
            # NCCL's own answer to a rank that dies is to end this process, with nothing saved
            os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2")
        elif self.rank.local_world_size == self.world_size:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # a host's name may lead nowhere
        dist.init_process_group(
            "nccl" if self._device.type == "cuda" else "gloo",
            store=self._store,
            rank=self.rank.rank,
            world_size=self.world_size,
            timeout=TIMEOUT,
            device_id=self._device if self._device.type == "cuda" else None,
        )
        self._joined = True

    @contextlib.contextmanager
    def _together(self) -> Iterator[None]:
        """Begin a collective operation when rank 0 does, and find out who broke it."""
        if isinstance(self._channel, Followers):
            self._channel.tell(Kind.GO)
        else:
            self._channel.wait_for_go()
        try:
            yield
        except RuntimeError as error:
            try:
                self.blame()
            except RankError as cause:
                raise cause from error
            raise


def to_bytes(state: Mapping[str, Any]) -> bytes:
    """Write a state: tensors, numbers, strings, lists and dicts only."""
    buffer = io.BytesIO()
    torch.save(dict(state), buffer)
    return buffer.getvalue()


def from_bytes(data: bytes) -> dict[str, Any]:
    """Read what `to_bytes` wrote, onto the CPU, without executing code."""
    state: dict[str, Any] = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    return state
