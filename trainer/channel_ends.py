"""The two ends of the channel between ranks: rank 0 has all others, each of them has rank 0."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from trainer.channel import Kind, Link, Message
from trainer.ranks import RankError
from trainer.stages import StopRequested

LEAVING_TIME = 3.0
"""Seconds in which a rank that was told to stop leaves by itself; then it is ended."""

SIGNAL_TIME = 1.0
"""Seconds after a signal to another rank within which rank 0 may get it too, from a launcher that
ends them all: then it is no fault of that rank."""

KEEPING_TIME = 20.0
"""Seconds for which a rank that is asked for its worlds may still be about to copy them."""


def _no_more_is_known(rank: int) -> str:
    return "is gone without a word: killed, or its machine out of memory"


class Followers:
    """Rank 0's end: all other ranks.

    Args:
        links: one for each rank from 1.
        on_loss: called in a thread of this object when the first rank is lost.
        death_of: says what became of a rank that is gone without a word, as "was killed by ...".
    """

    def __init__(
        self,
        links: Mapping[int, Link],
        on_loss: Callable[[], None],
        death_of: Callable[[int], str] = _no_more_is_known,
    ) -> None:
        self._links = dict(links)
        self._on_loss = on_loss
        self._death_of = death_of
        self._news = threading.Condition()
        self._loss: RankError | None = None
        self._gone: set[int] = set()
        self._ready: set[int] = set()
        self._reports: dict[int, dict[int, dict[str, Any]]] = {rank: {} for rank in links}
        self._worlds: dict[int, bytes | None] = {}
        self._stopped = False
        for rank in links:
            threading.Thread(
                target=self._listen, args=(rank,), name=f"rank {rank}", daemon=True
            ).start()

    @property
    def loss(self) -> RankError | None:
        """Why the first rank was lost; None while all are there."""
        return self._loss

    def tell(self, kind: Kind, payload: bytes = b"") -> None:
        """Send every rank a message."""
        for link in self._links.values():
            link.send(kind, payload)

    def tell_one(self, rank: int, kind: Kind, payload: bytes) -> None:
        """Send one rank a message."""
        self._links[rank].send(kind, payload)

    def wait_until_ready(self, interrupted: Callable[[], bool]) -> None:
        """Wait until all ranks have built their worlds.

        Raises:
            RankError: one was lost.
            StopRequested: `interrupted` became true.
        """
        with self._news:
            while len(self._ready) < len(self._links):
                if interrupted():
                    raise StopRequested
                if self._loss is not None:
                    raise self._loss
                self._news.wait(0.1)

    def reports(self, iteration: int) -> list[dict[str, Any]]:
        """Wait for what every rank reports of an iteration; in the order of ranks.

        Raises:
            RankError: one was lost.
        """
        with self._news:
            while any(iteration not in reports for reports in self._reports.values()):
                if self._loss is not None:
                    raise self._loss
                self._news.wait()
            return [self._reports[rank].pop(iteration) for rank in sorted(self._links)]

    def worlds(self, iteration: int, timeout: float = 60.0) -> list[bytes | None]:
        """Fetch every rank's worlds as they were after an iteration; None for one that is gone."""
        with self._news:
            self._worlds = {}
            for rank, link in self._links.items():
                if rank not in self._gone:
                    link.send(Kind.SEND_WORLDS, {"iteration": iteration})
            deadline = time.monotonic() + timeout
            while self._links.keys() - self._worlds.keys() - self._gone:
                if (left := deadline - time.monotonic()) <= 0:
                    break
                self._news.wait(left)
            return [self._worlds.get(rank) for rank in sorted(self._links)]

    def wait_for_loss(self, timeout: float) -> RankError | None:
        """Wait a while for the news that a rank is lost."""
        with self._news:
            self._news.wait_for(lambda: self._loss is not None, timeout)
            return self._loss

    def stop(self) -> None:
        """Tell all ranks to leave, and wait until they have."""
        with self._news:
            self._stopped = True
        self.tell(Kind.STOP)
        with self._news:
            self._news.wait_for(lambda: len(self._gone) == len(self._links), LEAVING_TIME + 1.0)
        for link in self._links.values():
            link.close()

    def _listen(self, rank: int) -> None:
        link = self._links[rank]
        why, trace = "", ""
        while (message := link.receive()) is not None:
            match message.kind:
                case Kind.FAILED:
                    said = message.json()
                    why, trace = said["message"], said["traceback"]
                    self._lose(rank, f": {why}", trace)
                case Kind.SIGNAL:
                    how = f" was ended by {message.json()['name']}"
                    timer = threading.Timer(SIGNAL_TIME, self._lose, (rank, how, ""))
                    timer.daemon = True
                    timer.start()
                case Kind.READY | Kind.REPORT | Kind.WORLDS:
                    self._note(rank, message)
        if not why:
            self._lose(rank, f" {self._death_of(rank)}", "")
        with self._news:
            self._gone.add(rank)
            self._news.notify_all()

    def _note(self, rank: int, message: Message) -> None:
        with self._news:
            if message.kind is Kind.READY:
                self._ready.add(rank)
            elif message.kind is Kind.REPORT:
                report = message.json()
                self._reports[rank][report["iteration"]] = report
            else:
                self._worlds[rank] = message.payload or None
            self._news.notify_all()

    def _lose(self, rank: int, how: str, trace: str) -> None:
        with self._news:
            first = self._loss is None and not self._stopped
            if first:
                self._loss = RankError(f"rank {rank}{how}")
                if trace:
                    self._loss.add_note(f"on rank {rank}:\n{trace}")
            self._news.notify_all()
        if first:
            self._on_loss()


class Leader:
    """The end of every other rank: rank 0.

    When rank 0 is gone, this process is ended at once: it has nothing to save.

    Args:
        link: connected with rank 0.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._news = threading.Condition()
        self._job: bytes | None = None
        self._permits = 0
        self._stopping = False
        self._kept: dict[int, Callable[[], bytes]] = {}
        self._edits: dict[int, list[str]] = {}
        threading.Thread(target=self._listen, name="rank 0", daemon=True).start()

    @property
    def stopping(self) -> bool:
        """Whether rank 0 has said to leave."""
        return self._stopping

    def wait_for_job(self) -> bytes:
        """Wait to be told what to train.

        Raises:
            StopRequested: rank 0 has said to leave.
        """
        with self._news:
            self._news.wait_for(lambda: self._job is not None or self._stopping)
            if self._job is None:
                raise StopRequested
            return self._job

    def ready(self) -> None:
        """Say that the worlds are built."""
        self._link.send(Kind.READY)

    def wait_for_go(self) -> None:
        """Wait until the next collective operation may begin.

        Raises:
            StopRequested: rank 0 has said to leave.
        """
        with self._news:
            self._news.wait_for(lambda: self._permits > 0 or self._stopping)
            if self._stopping:
                raise StopRequested
            self._permits -= 1

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until rank 0 says to leave; returns whether it has."""
        with self._news:
            return self._news.wait_for(lambda: self._stopping, timeout)

    def report(self, report: Mapping[str, Any]) -> None:
        """Tell what an iteration brought."""
        self._link.send(Kind.REPORT, report)

    def keep(self, iteration: int, worlds: Callable[[], bytes]) -> None:
        """Have the worlds ready as they are after an iteration, in case rank 0 asks for them.

        Rank 0 may still be at the end of the iteration before, so the last two are kept.

        Args:
            iteration: completed iterations.
            worlds: makes the message; called in a thread of this object.
        """
        with self._news:
            last = {number: kept for number, kept in self._kept.items() if number == iteration - 1}
            self._kept = {**last, iteration: worlds}
            self._news.notify_all()

    def edits(self, iteration: int) -> list[str]:
        """What is to be changed now that so many iterations are complete, in order.

        Rank 0 has said so before the last operation that all ranks did together.
        """
        with self._news:
            return self._edits.pop(iteration, [])

    def fail(self, message: str, trace: str) -> None:
        """Say why this rank is about to leave."""
        self._link.send(Kind.FAILED, {"message": message, "traceback": trace})

    def tell_signal(self, name: str) -> None:
        """Say that this rank was sent a signal that asks it to end."""
        self._link.send(Kind.SIGNAL, {"name": name})

    def _send_worlds(self, iteration: int) -> None:
        with self._news:  # the iteration's report may have been quicker than the copy
            self._news.wait_for(lambda: iteration <= max(self._kept, default=-1), KEEPING_TIME)
            kept = self._kept.get(iteration)
        self._link.send(Kind.WORLDS, kept() if kept is not None else b"")

    def _listen(self) -> None:
        while (message := self._link.receive()) is not None:
            if message.kind is Kind.SEND_WORLDS:
                self._send_worlds(message.json()["iteration"])
                continue
            with self._news:
                match message.kind:
                    case Kind.JOB:
                        self._job = message.payload
                    case Kind.GO:
                        self._permits += 1
                    case Kind.EDITS:
                        plan = message.json()
                        self._edits.setdefault(plan["iteration"], []).append(plan["edits"])
                    case Kind.STOP:
                        self._stopping = True
                        # a collective operation that waits for others cannot be left otherwise
                        timer = threading.Timer(LEAVING_TIME, os._exit, (0,))
                        timer.daemon = True
                        timer.start()
                self._news.notify_all()
        os._exit(0 if self._stopping else 1)
