"""Sequences of Warp kernels, recorded once and replayed with one launch, in order with torch."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, cast

import torch

from sim.warp_start import wp


@functools.cache  # for good: Warp forgets a stream with the first of the objects that stand for it
def _known_to_warp(stream: torch.cuda.Stream) -> Any:  # noqa: ANN401 - a Warp stream
    return wp.stream_from_torch(stream)


class Stream:
    """Warp's launches on the stream that torch is using, so that neither overtakes the other.

    Args:
        device: The device of both.
    """

    def __init__(self, device: torch.device) -> None:
        self._torch_device = device
        self.device = wp.device_from_torch(device)
        """As Warp knows it."""
        self._apart = None
        if device.type == "cuda":
            # Torch's own streams do not wait for the default stream; one that did could not
            # record while another thread uses that.
            apart = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            self._apart = _known_to_warp(apart)

    def current(self) -> Any:  # noqa: ANN401 - a Warp stream, or None on the CPU
        """Torch's present stream."""
        if self._apart is None:
            return None
        return _known_to_warp(torch.cuda.current_stream(self._torch_device))

    def launching(self) -> contextlib.AbstractContextManager[Any]:
        """Within it, Warp launches on torch's present stream of this device."""
        stream = self.current()
        scope = wp.ScopedDevice(self.device) if stream is None else wp.ScopedStream(stream)
        return cast(contextlib.AbstractContextManager[Any], scope)

    def record(self, launches: Callable[[], None]) -> Any:  # noqa: ANN401 - a Warp graph
        """The graph of what `launches` launches; nothing is computed.

        All kernels must have been compiled. Recording concerns this thread alone: others may use
        the device meanwhile.
        """
        if self._apart is None:
            scope: Any = wp.ScopedDevice(self.device)
        else:
            scope = wp.ScopedStream(self._apart)
        mode = wp.CaptureMode.THREAD_LOCAL
        with scope, wp.ScopedCapture(self.device, self._apart, capture_mode=mode) as capture:
            launches()
        return capture.graph

    def replay(self, graph: Any) -> None:  # noqa: ANN401 - a Warp graph
        """Launch a graph on torch's present stream."""
        wp.capture_launch(graph, stream=self.current())

    def synchronize(self) -> None:
        """Wait for all work on the device."""
        wp.synchronize_device(self.device)


class Recorded:
    """A sequence of launches as one: recorded at the first call, replayed from then on.

    Where recording fails, the launches are made one by one, for good.

    Args:
        stream: Where to launch.
        launches: Makes the launches, always the same ones on the same arrays.
        failed: Told why recording failed.
    """

    def __init__(
        self, stream: Stream, launches: Callable[[], None], failed: Callable[[str], None]
    ) -> None:
        self._stream = stream
        self._launches = launches
        self._failed = failed
        self._graph: Any = None
        self._one_by_one = False

    def __call__(self) -> None:
        """Launch the sequence."""
        if self._graph is None and not self._one_by_one:
            self._record()
        if self._graph is None:
            self.launch_one_by_one()
        else:
            self._stream.replay(self._graph)

    def launch_one_by_one(self) -> None:
        """Launch without the record, which also compiles the kernels."""
        with self._stream.launching():
            self._launches()

    def forget(self) -> None:
        """Record anew at the next call: an array was replaced."""
        self._graph = None

    def _record(self) -> None:
        try:
            self._graph = self._stream.record(self._launches)
        except Exception as error:  # whatever the driver or Warp objects to
            self._one_by_one = True
            self._failed(f"{type(error).__name__}: {error}")
