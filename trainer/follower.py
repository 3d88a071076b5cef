"""A rank other than 0: it trains as rank 0 says, writes nothing, and ends with it."""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import torch
from torch._C._distributed_c10d import TCPStore

from trainer.channel_ends import Leader
from trainer.config import TrainerConfig
from trainer.distributed import Group, ProcessGroup, from_bytes
from trainer.env import Env
from trainer.keeping import copied
from trainer.launch import link_to_leader
from trainer.loop import Trainer
from trainer.memory import shortage
from trainer.ranks import Rank
from trainer.stages import Stage, StopRequested
from trainer.telemetry import Position
from trainer.wire import from_json

SIGNALS = (signal.SIGINT, signal.SIGTERM)

Job = Mapping[str, Any]
"""What rank 0 has every other rank do; `store_port` and `state` are read here."""


def follow(
    rank: Rank,
    build: Callable[[Job], tuple[Env, TrainerConfig]],
    device_of: Callable[[Job], torch.device],
) -> int:
    """Train with rank 0 until that says to leave; returns the exit code.

    Args:
        rank: which one this process is; not 0.
        build: makes the worlds.
        device_of: where they live.

    Returns:
        0: done. 1: failed; rank 0 has been told why.
    """
    link, store = link_to_leader(rank)
    leader = Leader(link)
    _pass_signals_on(leader)
    try:
        job = from_bytes(leader.wait_for_job())
        if store is None:
            store = TCPStore("127.0.0.1", job["store_port"], is_master=False)
        group = ProcessGroup(rank, device_of(job), leader, store)
        env, config = build(job)
        _train(env, config, group, leader, job["state"])
        leader.wait_for_stop()
    except StopRequested:
        pass
    except BaseException as error:
        if leader.stopping:  # others have left already, and this is but the sound of it
            return 0
        lack = shortage(error)
        message = f"{type(error).__name__}: {error}" if lack is None else lack.sentence(0)
        leader.fail(message, traceback.format_exc())
        return 1
    return 0


def _train(
    env: Env, config: TrainerConfig, group: Group, leader: Leader, state: Mapping[str, Any]
) -> None:
    trainer = Trainer(env, config, group=group)
    trainer.watcher = _Watcher(trainer, leader)
    if state:
        trainer.load_state_dict(state)
    group.assemble(trainer.shared_tensors(), lambda: False)
    while trainer.completed_iterations < config.num_iterations:
        trainer.iterate()


class _Watcher:
    """Leaves when rank 0 says so, and keeps the state of every iteration boundary."""

    def __init__(self, trainer: Trainer, leader: Leader) -> None:
        self._trainer = trainer
        self._leader = leader

    def entering(self, position: Position) -> None:
        """Do nothing."""

    def leaving(self, position: Position, *, phase_ends: bool) -> None:
        """Leave if rank 0 has said so."""
        if self._leader.stopping:
            raise StopRequested
        if position.stage is Stage.FRESH:
            trainer = self._trainer
            for plan in self._leader.edits(trainer.completed_iterations):
                trainer.live.follow(from_json(plan))
            own = copied(trainer.own_state_dict())
            trainer.group.keep_worlds(trainer.completed_iterations, own)


def _pass_signals_on(leader: Leader) -> None:
    """Let rank 0 decide what a signal means: a launcher may be ending all ranks at once."""

    def receive(number: int, frame: FrameType | None) -> None:
        # not in this thread, which may be sending something already
        name = signal.Signals(number).name
        threading.Thread(target=leader.tell_signal, args=(name,), daemon=True).start()

    for number in SIGNALS:
        signal.signal(number, receive)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a terminal that is lost ends no training
