"""A compilation is told of while it lasts, and can be left between two modules."""

import threading
import time

import pytest
import torch

from sim.physics.compiling import telling_of_kernels
from sim.terrain.config import TerrainConfig
from sim.terrain.generator import generate_terrain
from sim.terrain.height_scan import HeightScanner
from sim.warp_start import wp


class StopAsked(Exception):  # noqa: N818 - a request, not an error
    """What a listener raises to end the waiting."""


def load_one(seconds=0.0):
    """Do to the logger what Warp does for a module that takes some time to load."""
    with wp.ScopedTimer("Module m 1234567 load on device 'cpu'"):
        time.sleep(seconds)


def test_it_is_told_at_once_every_half_second_and_behind_every_module():
    told = []
    with telling_of_kernels(lambda text: told.append((time.monotonic(), text))):
        start = time.monotonic()
        load_one(0.6)
        load_one()
    texts = [text for _, text in told]
    assert texts[0] == "compiling kernels (0 modules, 0 s)"
    assert told[0][0] - start < 0.5
    assert (
        texts.count("compiling kernels (0 modules, 0 s)")
        + texts.count("compiling kernels (0 modules, 1 s)")
        >= 2
    )  # the tick within the first module
    assert any("(2 modules" in text for text in texts)
    assert texts[-1] == ""


def test_what_the_listener_raises_in_the_waiting_thread_ends_the_block_behind_the_module():
    """A person who quits during a compilation waits for one module, not for all."""
    waiting, loaded = threading.current_thread(), []

    def progress(text):
        if "(1 modules" in text and threading.current_thread() is waiting:
            raise StopAsked

    level, logger = wp.config.log_level, wp.get_logger()

    def build():
        with telling_of_kernels(progress):
            for module in range(3):
                loaded.append(module)
                load_one()

    with pytest.raises(StopAsked):
        build()
    assert loaded == [0]
    assert wp.config.log_level == level
    assert wp.get_logger() is logger
    assert "kernels" not in [thread.name for thread in threading.enumerate()]


class Ears:
    """A listener that notes all it is told."""

    def __init__(self):
        self.told = []

    def progress(self, text):
        self.told.append(text)


def test_a_height_scanner_tells_of_its_kernel_before_the_first_scan():
    ears = Ears()
    ground = generate_terrain(TerrainConfig(num_rows=1, num_cols=1, border_width=0.0), seed=0)
    HeightScanner(ground, torch.device("cpu"), (0.2, 0.2), 0.1, 0.5, 1.0, ears)
    assert ears.told[0].startswith("compiling kernels")
    assert ears.told[-1] == ""
