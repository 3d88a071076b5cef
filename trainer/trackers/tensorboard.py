"""TensorBoard event files, with RSL-RL's tags and steps.

A file is a sequence of records: the length of the data as a little-endian uint64, the masked CRC32C
of these 8 bytes, the data, and its masked CRC32C. The data are protobuf messages of type Event.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trainer.rundir import append_whole

if TYPE_CHECKING:
    from trainer.progress import IterationRow

PATTERN = "events.out.tfevents.*"
"""Names of event files in a run's folder."""

TIMED = ("Train/mean_reward", "Train/mean_episode_length")
"""Tags that are written once more, with `/time` behind, by seconds of training."""

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")


class EventFiles:
    """Writes one event file, beside those of earlier processes of the same run.

    The step is RSL-RL's index of the iteration, from 0; that of a `/time` tag is in seconds. What
    a full or read-only disk refuses is left out, and said once; what comes later is written again.

    Args:
        folder: the run's folder.
        completed_iterations: what the run goes on from; events of later ones are taken away.
        record: told once, as kind and text of an event, when something cannot be written.
    """

    def __init__(
        self, folder: Path, completed_iterations: int, record: Callable[[str, str], object]
    ) -> None:
        self._folder = folder
        self._completed = completed_iterations
        self._record = record
        self._path = folder / f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}"
        self._waiting: list[bytes] = []
        self._is_troubled = False

    def open(self) -> None:
        """Take away what contradicts the checkpoint, and name a new file."""
        import tensorboardX.proto.event_pb2  # noqa: F401 - slow, and not to be missed later

        earlier = sorted(self._folder.glob(PATTERN))
        for path in earlier:
            try:
                cut(path, self._completed)
            except OSError as error:
                self._trouble(path, error)
        name, number = self._path.name, 1
        while self._path in earlier:
            number += 1
            self._path = self._path.with_name(f"{name}.{number}")

    def write(self, row: IterationRow) -> None:
        """Add the events of one iteration."""
        self._waiting.append(scalars(row.iteration - 1, row.metrics))
        timed = {f"{tag}/time": row.metrics[tag] for tag in TIMED if tag in row.metrics}
        if timed:
            self._waiting.append(scalars(int(row.elapsed), timed))

    def flush(self) -> None:
        """Append to the file what is waiting, whole or not at all."""
        waiting, self._waiting = b"".join(self._waiting), []
        try:
            begun = self._path.exists() and self._path.stat().st_size > 0
            append_whole(self._path, waiting if begun else _first_event() + waiting)
        except OSError as error:
            self._trouble(self._path, error)

    def close(self, *, failed: bool) -> None:
        """Write what is left."""
        del failed
        self.flush()

    def _trouble(self, path: Path, error: OSError) -> None:
        if not self._is_troubled:
            self._is_troubled = True
            self._record("alert", f"{path} cannot be written: {error.strerror}; training goes on")


def scalars(step: int, values: Mapping[str, float]) -> bytes:
    """One event with a value for each tag, as a record."""
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.proto.summary_pb2 import Summary

    entries = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
    event = Event(wall_time=time.time(), step=step, summary=Summary(value=entries))
    return _as_record(event.SerializeToString())


def _first_event() -> bytes:
    from tensorboardX.proto.event_pb2 import Event

    event = Event(wall_time=time.time(), file_version="brain.Event:2")
    return _as_record(event.SerializeToString())


def _as_record(data: bytes) -> bytes:
    from tensorboardX.record_writer import masked_crc32c

    length = _LENGTH.pack(len(data))
    return b"".join(
        (length, _CRC.pack(masked_crc32c(length)), data, _CRC.pack(masked_crc32c(data)))
    )


class Scalars(NamedTuple):
    """One event of a file, read back."""

    end: int
    """Bytes of the file up to its end."""
    step: int
    values: Mapping[str, float]
    """Tag to value; empty in the event that begins a file."""


def read(path: Path) -> Iterator[Scalars]:
    """Read the events of a file, up to the first that is not whole.

    Raises:
        OSError: the file cannot be read.
    """
    from google.protobuf.message import DecodeError
    from tensorboardX.proto.event_pb2 import Event

    data = path.read_bytes()
    offset = 0
    while offset + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, offset)
        start = offset + _LENGTH.size + _CRC.size
        end = start + length + _CRC.size
        if end > len(data):
            return
        try:
            event = Event.FromString(data[start : start + length])
        except DecodeError:
            return
        values = {value.tag: value.simple_value for value in event.summary.value}
        yield Scalars(end, event.step, values)
        offset = end


def cut(path: Path, completed_iterations: int) -> None:
    """Shorten a file by the events of later iterations, and by what a crash left half written.

    Events stand in the order of training, so what follows the first that is too late goes too.

    Args:
        path: an event file that nobody writes.
        completed_iterations: those whose events stay.

    Raises:
        OSError: the file cannot be read or written.
    """
    kept = 0
    for event in read(path):
        if event.step >= completed_iterations and not _counts_seconds(event):
            break
        kept = event.end
    if kept < path.stat().st_size:
        os.truncate(path, kept)


def _counts_seconds(event: Scalars) -> bool:
    return all(tag.endswith("/time") for tag in event.values)
