"""What the machine does meanwhile: processor, memory, disk and GPUs, and what the screen costs.

Nothing here touches a CUDA context: GPUs are asked through NVML, where its Python module is there.
"""

from __future__ import annotations

import importlib
import math
import os
import shutil
import stat
import time
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from trainer.cores import usable_cores

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Gpu(NamedTuple):
    """One GPU, as NVML tells it."""

    name: str
    power: float
    """W"""
    power_limit: float
    """W"""
    busy: float
    """Share of the time in which any kernel ran."""
    memory: float
    """Bytes in use, by all programs."""
    memory_total: float
    """Bytes."""
    celsius: float
    is_throttled: bool
    """Whether heat or power hold its clock down."""


class Sample(NamedTuple):
    """The machine since the sample before."""

    pid: int
    """The process that trains."""
    cores: int
    load: float
    """Mean number of threads that want a core, over a minute."""
    cpu: float
    """Cores that the process kept busy; NaN at first."""
    screen: float
    """Share of a core that this screen's thread took; NaN at first."""
    threads: int
    resident: float
    """Bytes of memory that the process holds."""
    memory_total: float
    """Bytes of the machine."""
    memory_free: float
    """Bytes that programs could still get."""
    run_bytes: float
    """Bytes in the run directory."""
    disk_free: float
    """Bytes left where it lies."""
    checkpoints: tuple[str, ...]
    """Names, the newest last."""
    gpus: tuple[Gpu, ...]


class Machine:
    """Samples the machine; called from the screen's own thread."""

    def __init__(self) -> None:
        self._then = math.nan
        self._cpu = (0, math.nan)  # process, its seconds
        self._screen = time.thread_time()
        self._nvml = _nvml()

    def sample(self, pid: int, run_dir: Path) -> Sample:
        """Return how things stand."""
        now, seconds, screen = time.monotonic(), _cpu_seconds(pid), time.thread_time()
        passed = now - self._then
        before = self._cpu[1] if self._cpu[0] == pid else math.nan
        cpu = (seconds - before) / passed if passed > 0 else math.nan
        share = (screen - self._screen) / passed if passed > 0 else math.nan
        self._then, self._cpu, self._screen = now, (pid, seconds), screen
        total, free = _memory()
        size, checkpoints = _folder(run_dir)
        return Sample(
            pid=pid,
            cores=usable_cores(),
            load=os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan,
            cpu=cpu,
            screen=share,
            threads=_threads(pid),
            resident=_resident(pid),
            memory_total=total,
            memory_free=free,
            run_bytes=size,
            disk_free=_disk_free(run_dir),
            checkpoints=checkpoints,
            gpus=_gpus(self._nvml),
        )


def _words(path: str) -> list[str]:
    """Return the words of a file of /proc behind a name in brackets; none where there is none."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _cpu_seconds(pid: int) -> float:
    if pid == os.getpid():
        return time.process_time()
    words = _words(f"/proc/{pid}/stat")
    return (int(words[11]) + int(words[12])) / TICKS_PER_SECOND if len(words) > 12 else math.nan


def _threads(pid: int) -> int:
    words = _words(f"/proc/{pid}/stat")
    return int(words[17]) if len(words) > 17 else 0


def _resident(pid: int) -> float:
    words = _words(f"/proc/{pid}/statm")
    return int(words[1]) * PAGE if len(words) > 1 else math.nan


def _memory() -> tuple[float, float]:
    """Return the machine's memory and what programs could still get, in bytes."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return math.nan, math.nan
    known = {words[0]: int(words[1]) * 1024.0 for line in lines if len(words := line.split()) == 3}
    return known.get("MemTotal:", math.nan), known.get("MemAvailable:", math.nan)


def _folder(run_dir: Path) -> tuple[float, tuple[str, ...]]:
    """Return the bytes of a run's files, and its checkpoints from the oldest to the newest."""
    size, found = 0, []
    for folder in (run_dir, run_dir / "checkpoints"):
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:  # renamed in between
                continue
            size += status.st_size if stat.S_ISREG(status.st_mode) else 0
            if folder is not run_dir and entry.name.endswith(".pt") and entry.name[:1] != ".":
                found.append((status.st_mtime, entry.name))
    return float(size), tuple(name for _, name in sorted(found))


def _disk_free(run_dir: Path) -> float:
    try:
        return float(shutil.disk_usage(run_dir).free)
    except OSError:
        return math.nan


def _nvml() -> ModuleType | None:
    try:
        module = importlib.import_module("pynvml")
        module.nvmlInit()
    except Exception:  # no module, no driver or no GPU: there is nothing to show
        return None
    return module


def _gpus(nvml: ModuleType | None) -> tuple[Gpu, ...]:
    if nvml is None:
        return ()
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    except Exception:  # the module's own error, which cannot be imported here
        return ()
    return tuple(_gpu(nvml, handle) for handle in handles)


def _gpu(nvml: ModuleType, handle: object) -> Gpu:
    def ask(name: str, *more: int, otherwise: Any = math.nan) -> Any:  # noqa: ANN401
        try:
            return getattr(nvml, f"nvmlDeviceGet{name}")(handle, *more)
        except Exception:  # not every card knows every answer
            return otherwise

    name = ask("Name", otherwise="GPU")
    memory, rates = ask("MemoryInfo", otherwise=None), ask("UtilizationRates", otherwise=None)
    return Gpu(
        name=name.decode() if isinstance(name, bytes) else str(name),
        power=ask("PowerUsage") / 1e3,
        power_limit=ask("EnforcedPowerLimit") / 1e3,
        busy=rates.gpu / 100 if rates is not None else math.nan,
        memory=float(memory.used) if memory is not None else math.nan,
        memory_total=float(memory.total) if memory is not None else math.nan,
        celsius=float(ask("Temperature", 0)),
        is_throttled=bool(ask("CurrentClocksThrottleReasons", otherwise=0) & ~1),  # bit 0: idle
    )
