"""How many cores this process may use: those that the system and the container's quota let it."""

from __future__ import annotations

import math
import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
"""Where Linux keeps the limits of a container."""


def usable_cores() -> int:
    """Cores that this process may use.

    Threads beyond a quota are not only of no use: all of them are stopped for a part of each
    period, in the middle of what others wait for.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = cgroup_cores()
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def cgroup_cores(folder: Path = CGROUP) -> float | None:
    """Cores that the container's quota amounts to; None where there is no quota.

    Args:
        folder: the container's control groups, of the second version or the first.
    """
    try:
        if (unified := folder / "cpu.max").exists():
            quota, period = unified.read_text(encoding="ascii").split()
        else:
            quota, period = (
                (folder / "cpu" / f"cpu.cfs_{name}_us").read_text(encoding="ascii").strip()
                for name in ("quota", "period")
            )
    except (OSError, ValueError):
        return None
    is_limited = quota.isdecimal() and period.isdecimal() and int(period) > 0
    return int(quota) / int(period) if is_limited else None
