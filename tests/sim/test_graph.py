"""On which stream and in which thread Warp's kernels are recorded and launched; without a GPU.

D18: a record is made on a stream of its own. D19: it concerns its own thread alone, so that nobody
else who uses the GPU meanwhile can spoil it. D20: all launches follow torch's present stream.
"""

import contextlib
import threading
from types import SimpleNamespace

import pytest
import torch

from sim.physics import graph
from sim.physics.gpu import GpuPhysics
from sim.physics.graph import Recorded, Stream
from sim.warp_start import wp

CUDA = torch.device("cuda:1")


class PretendWarp:
    """Warp's calls as `graph` makes them, and where each of them would run."""

    CaptureMode = wp.CaptureMode

    def __init__(self):
        self.where = "warp's own stream"
        self.told = []

    def device_from_torch(self, device):
        return f"warp's {device}"

    def stream_from_torch(self, stream):
        return f"warp's {stream}"

    @contextlib.contextmanager
    def ScopedStream(self, stream):  # noqa: N802 - Warp's name
        before, self.where = self.where, stream
        yield
        self.where = before

    @contextlib.contextmanager
    def ScopedDevice(self, device):  # noqa: N802
        yield

    @contextlib.contextmanager
    def ScopedCapture(self, device, stream, capture_mode):  # noqa: N802
        thread = threading.current_thread().name
        self.told.append(("records", device, stream, self.where, capture_mode, thread))
        yield SimpleNamespace(graph="a graph")

    def launch(self):
        self.told.append(("launches", self.where, threading.current_thread().name))

    def capture_launch(self, what, stream=None):
        self.told.append(("replays", what, stream, threading.current_thread().name))


@pytest.fixture
def warp(monkeypatch):
    """Pretended Warp, and a torch whose present stream is `warp.present`."""
    pretended = PretendWarp()
    pretended.present = "torch's default stream"
    monkeypatch.setattr(graph, "wp", pretended)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: f"a stream apart on {device}")
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: pretended.present)
    graph._known_to_warp.cache_clear()
    yield pretended
    graph._known_to_warp.cache_clear()


def test_a_record_is_made_apart_for_its_own_thread_and_replayed_where_torch_works(warp):
    tick = Recorded(Stream(CUDA), warp.launch, failed=pytest.fail)

    def train():
        tick()
        warp.present = "torch's side stream"
        tick()

    thread = threading.Thread(target=train, name="session")
    thread.start()
    thread.join()
    apart = f"warp's a stream apart on {CUDA}"
    mode = wp.CaptureMode.THREAD_LOCAL
    assert warp.told == [
        ("records", f"warp's {CUDA}", apart, apart, mode, "session"),
        ("launches", apart, "session"),
        ("replays", "a graph", "warp's torch's default stream", "session"),
        ("replays", "a graph", "warp's torch's side stream", "session"),
    ]


def test_without_a_record_launches_follow_torchs_present_stream(warp, monkeypatch):
    told = []
    stream = Stream(CUDA)

    def refuse(*_, **__):
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(warp, "ScopedCapture", refuse)
    tick = Recorded(stream, warp.launch, told.append)
    for warp.present in ("torch's default stream", "torch's side stream"):
        tick()
    thread = threading.current_thread().name
    assert warp.told == [
        ("launches", "warp's torch's default stream", thread),
        ("launches", "warp's torch's side stream", thread),
    ]
    assert told == ["RuntimeError: operation not permitted when stream is capturing"]


def test_an_engine_makes_its_gpu_the_threads_own_before_all_else(monkeypatch):
    class Seen(Exception):  # noqa: N818
        pass

    def set_device(device):
        raise Seen(device)

    monkeypatch.setattr(torch.cuda, "set_device", set_device)
    with pytest.raises(Seen, match="cuda:1"):
        GpuPhysics(None, 1, CUDA)
