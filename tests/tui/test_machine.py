"""What the machine says of itself, where it says it, and where it does not."""

import math
import os
import sys
from types import SimpleNamespace

import pytest

from tui.machine import Machine


def test_this_process_is_measured(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    for second, name in enumerate(("model_100.pt", "model_50.pt")):
        path = tmp_path / "checkpoints" / name
        path.write_bytes(b"x" * 1000)
        os.utime(path, (second, second))
    (tmp_path / "checkpoints" / ".model_150.pt.1.tmp").write_bytes(b"")
    (tmp_path / "metrics.jsonl").write_bytes(b"y" * 500)
    machine = Machine()
    first = machine.sample(os.getpid(), tmp_path)
    assert math.isnan(first.cpu)
    sum(range(2_000_000))
    sample = machine.sample(os.getpid(), tmp_path)
    assert 0 < sample.screen <= sample.cpu * 1.5 + 0.1
    assert sample.screen <= 1.1
    assert sample.run_bytes == 2500
    assert sample.checkpoints == ("model_100.pt", "model_50.pt")  # by age, the newest last
    assert sample.disk_free > 0
    assert sample.cores >= 1
    if sys.platform == "linux":
        assert 1e6 < sample.resident < sample.memory_total
        assert sample.threads >= 1


def test_a_process_and_a_folder_that_are_gone_are_no_error(tmp_path):
    machine = Machine()
    for _ in range(2):
        sample = machine.sample(2**22 + 1, tmp_path / "gone")
    assert math.isnan(sample.cpu)
    assert math.isnan(sample.resident)
    assert math.isnan(sample.disk_free)
    assert (sample.run_bytes, sample.checkpoints, sample.threads) == (0, (), 0)


class Nvml(SimpleNamespace):
    """One card that does not know its power."""

    def __init__(self, fails=False):
        super().__init__(fails=fails)

    def nvmlInit(self):  # noqa: N802 - the module's names
        if self.fails:
            raise RuntimeError("driver not loaded")

    def nvmlDeviceGetCount(self):  # noqa: N802
        return 1

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle):  # noqa: N802
        return b"A Card"

    def nvmlDeviceGetMemoryInfo(self, handle):  # noqa: N802
        return SimpleNamespace(used=3 * 2**30, total=12 * 2**30)

    def nvmlDeviceGetUtilizationRates(self, handle):  # noqa: N802
        return SimpleNamespace(gpu=97)

    def nvmlDeviceGetPowerUsage(self, handle):  # noqa: N802
        raise RuntimeError("not supported")

    def nvmlDeviceGetTemperature(self, handle, sensor):  # noqa: N802
        return 61

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):  # noqa: N802
        return 0b101


def test_a_gpu_tells_what_it_knows(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    (gpu,) = Machine().sample(os.getpid(), tmp_path).gpus
    assert (gpu.name, gpu.busy, gpu.celsius) == ("A Card", 0.97, 61.0)
    assert gpu.memory / gpu.memory_total == 0.25
    assert math.isnan(gpu.power)
    assert math.isnan(gpu.power_limit)
    assert gpu.is_throttled


@pytest.mark.parametrize("module", [None, Nvml(fails=True)])
def test_without_a_driver_or_its_module_there_is_no_gpu(monkeypatch, tmp_path, module):
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert Machine().sample(os.getpid(), tmp_path).gpus == ()
