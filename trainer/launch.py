"""How ranks come to be and find each other: started here, or by torchrun.

Torch is imported with the first connection, not with this module.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from trainer.channel import Kind, Link
from trainer.ranks import Rank
from trainer.stages import StopRequested

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

CHANNEL = "PPO_TUI_CHANNEL"
"""Names the descriptor of the socket to rank 0 that a started rank inherits."""

_LOCAL_SIZE = "LOCAL_WORLD_SIZE"
_ADDRESS = "leader"
_LOOK_INTERVAL = 0.2
"""Seconds after which rank 0, waiting for others to call, notices that it should stop."""
_HELLO_TIME = 5.0
"""Seconds for a caller's first word."""
_DEATH_TIME = 5.0
"""Seconds for which the system may take to say how a process ended."""


class Launcher(Protocol):
    """Rank 0's way to the other ranks."""

    rank: Rank

    def connect(self, interrupted: Callable[[], bool]) -> dict[int, Link]:
        """Start or find all other ranks.

        Raises:
            StopRequested: `interrupted` became true.
        """
        ...

    def store(self) -> tuple[Store, int | None]:
        """The store where the ranks find each other, and its port where it is a new one."""
        ...

    def death_of(self, rank: int) -> str:
        """Say what became of a rank that is gone without a word, as "was killed by ..."."""
        ...

    def close(self) -> None:
        """End what has not ended by itself."""
        ...


class StartedRanks:
    """Ranks 1, 2, ... as processes that this one starts, on this machine.

    Each inherits one end of a socket pair, so that both ends know of the other's death from the
    first moment on. They are in sessions of their own: no key of the terminal reaches them.

    Args:
        world_size: processes, this one included.
        command: what each runs; which rank it is stands in its environment.
        log: takes what they print.
    """

    def __init__(self, world_size: int, command: Sequence[str], log: Path) -> None:
        self.rank = Rank(0, world_size, 0, world_size)
        self._command = list(command)
        self._log = log
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._size_before: str | None = None

    def connect(self, interrupted: Callable[[], bool]) -> dict[int, Link]:
        """Start all other ranks."""
        size = self.rank.world_size
        self._size_before = os.environ.get(_LOCAL_SIZE)
        os.environ[_LOCAL_SIZE] = str(size)  # physics takes its share of the cores, too
        links = {}
        with self._log.open("ab") as log:
            for number in range(1, size):
                ours, theirs = socket.socketpair()
                rank = Rank(number, size, number, size)
                with theirs:
                    self._processes[number] = subprocess.Popen(
                        self._command,
                        env={**os.environ, **rank.variables, CHANNEL: str(theirs.fileno())},
                        pass_fds=(theirs.fileno(),),
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                links[number] = Link(ours)
        return links

    def store(self) -> tuple[Store, int | None]:
        """A new store in this process."""
        from torch._C._distributed_c10d import TCPStore

        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        return store, store.port

    def death_of(self, rank: int) -> str:
        """Say by which signal or with which code a rank ended."""
        process = self._processes[rank]
        try:
            code = process.wait(_DEATH_TIME)
        except subprocess.TimeoutExpired:
            return f"(process {process.pid}) has closed its channel"
        if code < 0:
            return f"(process {process.pid}) was killed by {signal.Signals(-code).name}"
        return f"(process {process.pid}) ended with exit code {code}"

    def close(self) -> None:
        """End what has not ended by itself."""
        os.environ.pop(_LOCAL_SIZE, None)
        if self._size_before is not None:
            os.environ[_LOCAL_SIZE] = self._size_before
        for process in self._processes.values():
            try:
                process.wait(1.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class TorchrunRanks:
    """Ranks that torchrun has started; they call rank 0, whose address the launcher's store has.

    Args:
        rank: which of them this process is.
    """

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        self._store: Store | None = None

    def connect(self, interrupted: Callable[[], bool]) -> dict[int, Link]:
        """Wait until all other ranks have called."""
        is_local = self.rank.local_world_size == self.rank.world_size
        token = secrets.token_hex(16)
        links: dict[int, Link] = {}
        with socket.create_server(("127.0.0.1" if is_local else "", 0)) as server:
            host = "127.0.0.1" if is_local else os.environ["MASTER_ADDR"]
            address = {"host": host, "port": server.getsockname()[1], "token": token}
            self._launchers_store().set(_ADDRESS, json.dumps(address))
            server.settimeout(_LOOK_INTERVAL)
            while len(links) < self.rank.world_size - 1:
                if interrupted():
                    raise StopRequested
                with contextlib.suppress(TimeoutError):
                    connection, _ = server.accept()
                    _admit(connection, token, links, self.rank.world_size)
        return links

    def call(self) -> Link:
        """From another rank: connect with rank 0."""
        store = self._launchers_store()
        address = json.loads(store.get(_ADDRESS))
        link = Link(socket.create_connection((address["host"], address["port"]), timeout=60.0))
        link.send(Kind.HELLO, {"rank": self.rank.rank, "token": address["token"]})
        return link

    def store(self) -> tuple[Store, int | None]:
        """The launcher's store, which all ranks know already."""
        return self._launchers_store(), None

    def death_of(self, rank: int) -> str:
        """Say that no more is known: the launcher alone sees how its processes end."""
        return "is gone without a word: killed, or out of memory; torchrun may say more"

    def close(self) -> None:
        """Do nothing: the launcher ends its processes."""

    def _launchers_store(self) -> Store:
        from torch._C._distributed_c10d import PrefixStore
        from torch.distributed.rendezvous import rendezvous

        if self._store is None:
            store, _, _ = next(iter(rendezvous("env://")))
            self._store = PrefixStore("ppo-tui", store)
        return self._store


def link_to_leader(rank: Rank) -> tuple[Link, Store | None]:
    """On any rank but 0: connect with rank 0.

    Returns:
        The link, and the launcher's store where there is one.
    """
    descriptor = os.environ.get(CHANNEL, "")
    if descriptor:
        return Link(socket.socket(fileno=int(descriptor))), None
    ranks = TorchrunRanks(rank)
    return ranks.call(), ranks.store()[0]


def _admit(connection: socket.socket, token: str, links: dict[int, Link], world_size: int) -> None:
    """Take a call, if it comes from a rank of this training."""
    link = Link(connection)
    hello = link.receive_hello(_HELLO_TIME)
    if hello.get("token") == token and (rank := int(hello["rank"])) in range(1, world_size):
        links.setdefault(rank, link)
    if link not in links.values():
        link.close()
