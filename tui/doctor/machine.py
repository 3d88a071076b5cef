"""Processors, memory, graphics card and disk."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer import memory
from trainer.cores import cgroup_cores, usable_cores
from trainer.rundir import RUNS
from tui.doctor.findings import Finding, Verdict

NOTE, PROBLEM = Verdict.NOTE, Verdict.PROBLEM

PROBE_TIME = 60.0
"""Seconds that torch may take to be imported, on a slow disk for the first time."""
WALK_TIME = 2.0
"""Seconds for adding up a folder."""
LITTLE_MEMORY = 2e9
LITTLE_DISK = 2e9


def processors() -> Iterator[Finding]:
    """Cores, and who else uses them."""
    installed, usable, quota = os.cpu_count() or 1, usable_cores(), cgroup_cores()
    limits = []
    if usable < installed and (quota is None or usable < quota):
        limits.append(f"{usable} by affinity")
    if quota is not None and quota < installed:
        limits.append(f"{quota:.3g} by the container's quota")
    of = f" of {installed} ({', '.join(limits)})" if limits else ""
    yield Finding("cores", f"{usable}{of}", "the physics takes a thread for each")
    load = os.getloadavg()[0]
    busy = load > 0.5 * usable
    yield Finding(
        "load",
        f"{load:.2f} in the last minute",
        "other programs are at work: a training is slower beside them" if busy else "",
        NOTE if busy else Verdict.OK,
    )


def main_memory() -> Iterator[Finding]:
    """What a process could take now."""
    free = memory.available()
    if free is None:
        yield Finding("memory", "unknown", "the system does not tell", NOTE)
        return
    found = re.search(r"^MemTotal: *(\d+) kB", Path("/proc/meminfo").read_text(), re.M)
    total = f" of {memory.size(int(found[1]) * 1024)}" if found else ""
    little = free < LITTLE_MEMORY
    yield Finding(
        "memory",
        f"{memory.size(free)} free{total}",
        "torch alone takes about 0.5 GB; a world of the Go2 about 11 kB",
        NOTE if little else Verdict.OK,
        "fewer worlds (--num-envs), or end other programs" if little else "",
    )


def engines() -> Iterator[Finding]:
    """Torch and the graphics card, looked at in a process of its own: importing may hang."""
    try:
        process = subprocess.run(
            [sys.executable, "-m", "tui.doctor.probe"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=PROBE_TIME,
            check=False,
        )
    except subprocess.TimeoutExpired:
        yield Finding(
            "torch",
            f"not imported within {PROBE_TIME:g} s",
            "a disk or a driver hangs",
            PROBLEM,
            "python -X importtime -c 'import torch' shows where",
        )
        return
    lines = process.stdout.decode(errors="replace").splitlines()
    try:
        yield from _told(json.loads(lines[-1]))
    except (IndexError, ValueError):
        errors = process.stderr.decode(errors="replace").strip().splitlines()
        said = errors[-1] if errors else f"exit code {process.returncode}"
        yield Finding(
            "torch", f"cannot be imported: {said}", "no training", PROBLEM, "reinstall it"
        )


def _told(probe: dict[str, Any]) -> Iterator[Finding]:
    """What the probe has found."""
    threads = probe["threads"]
    by = " (OMP_NUM_THREADS)" if os.environ.get("OMP_NUM_THREADS") else ""
    many = threads > usable_cores()
    yield Finding(
        "torch threads",
        f"{threads}{by}",
        "more than there are cores: they wait for each other" if many else "",
        NOTE if many else Verdict.OK,
        "unset OMP_NUM_THREADS" if many else "",
    )
    for card in probe["cards"]:
        yield Finding(
            card["name"],
            f"{memory.size(card['free'])} free of {memory.size(card['total'])}",
            f"driver {probe['driver'] or 'unknown'}, torch for CUDA {probe['cuda']}",
        )
    if (reason := probe["reason"]) is not None:
        usable = probe["driver"] is not None and "hides" not in reason
        yield Finding(
            "GPU",
            f"none that can be used: {reason}",
            "presets train on the CPU, with the fewer worlds of their [cpu] table",
            PROBLEM if usable else NOTE,
            "nvidia-smi shows what the driver sees; torch must be a build for its CUDA version"
            if usable
            else "",
        )


def warp_cache() -> Iterator[Finding]:
    """The folder of compiled kernels."""
    folder = warp_cache_folder()
    writable = os.access(existing(folder), os.W_OK)
    size, whole = folder_size(folder)
    value = f"{folder}, {'' if whole else 'more than '}{memory.size(size)}"
    if not writable:
        yield Finding(
            "Warp cache",
            f"{value}, read-only",
            "kernels are compiled at every start: minutes on a GPU",
            PROBLEM,
            "export WARP_CACHE_PATH=a folder that can be written",
        )
        return
    empty = size == 0
    first = "empty: the first run on a GPU compiles its kernels for a minute or two"
    yield Finding("Warp cache", value, first if empty else "compiled kernels are kept there")


def warp_cache_folder() -> Path:
    """Where Warp keeps its kernels, without importing it."""
    own = os.environ.get("WARP_CACHE_PATH")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "warp" / importlib.metadata.version("warp-lang")


def disk() -> Iterator[Finding]:
    """The folder of the runs."""
    folder = existing(RUNS)
    free = shutil.disk_usage(folder).free
    where = RUNS.absolute()
    if not os.access(folder, os.W_OK):
        yield Finding(
            "runs", f"{where} cannot be written", "no run can begin here", PROBLEM,
            "another folder: cd, or --run-dir DIR",
        )  # fmt: skip
        return
    little = free < LITTLE_DISK
    yield Finding(
        "runs",
        f"{where}, {memory.size(free)} free",
        "a checkpoint takes 1 to 10 MB, every 50 iterations by default",
        NOTE if little else Verdict.OK,
        "--set trainer.keep_checkpoints=5 keeps the newest five" if little else "",
    )


def existing(path: Path) -> Path:
    """The nearest folder on the way to a path that exists already."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def folder_size(folder: Path) -> tuple[int, bool]:
    """Bytes of all files in a folder, and whether there was time to see them all."""
    deadline, total = time.monotonic() + WALK_TIME, 0
    for parent, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
        if time.monotonic() > deadline:
            return total, False
    return total, True
