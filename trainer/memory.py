"""Memory that runs out: recognised in what torch, NumPy, MuJoCo and Warp raise, and said plainly.

Nothing of torch is imported here.
"""

from __future__ import annotations

import errno
import re
import resource
from pathlib import Path
from typing import NamedTuple

_SIGNS = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "failed to allocate",
    "unable to allocate",
    "bad_alloc",
    "alloc_failed",
    "could not allocate",
)
"""In lower case; errors that are no MemoryError say one of these."""

_UNITS = {"": 1, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "pi": 2**50}
_SIZE = r"([\d.]+) ?((?:[KMGTP]i)?)(?:B\b|bytes)"
_ASKED = re.compile(rf"(?:tried to allocate|failed to allocate|unable to allocate) {_SIZE}", re.I)
_FREE = re.compile(rf"of which {_SIZE} is free", re.I)


class Shortage(NamedTuple):
    """What is known of an allocation that failed."""

    asked: int | None = None
    """Bytes."""
    free: int | None = None
    """Bytes of the device's memory."""
    reason: str = ""
    """The error's own words, where it does not say how much was asked for."""

    def sentence(self, num_envs: int) -> str:
        """Say what failed, with how many worlds."""
        worlds = f" with {num_envs:,} worlds" if num_envs else ""
        why = self.reason if self.asked is None else f"asked for {size(self.asked)}"
        free = "" if self.free is None else f"{size(self.free)} free"
        facts = ", ".join(fact for fact in (why, free) if fact)
        return f"out of memory{worlds}{': ' if facts else ''}{facts}"


def shortage(error: BaseException) -> Shortage | None:
    """Read an error as a lack of memory; None if it is about something else."""
    text = str(error)
    is_one = (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or (
            isinstance(error, RuntimeError | ValueError)
            and any(sign in text.lower() for sign in _SIGNS)
        )
    )
    if not is_one:
        return None
    asked, free = _bytes(_ASKED.search(text)), _bytes(_FREE.search(text))
    if free is None and "cuda" not in text.lower() and "gpu" not in text.lower():
        free = available()
    reason = text.splitlines()[0] if text and asked is None else ""
    return Shortage(asked, free, reason)


def available() -> int | None:
    """Bytes of main memory that a process could take now; None where the system does not tell.

    Limits of the container and of the process count, too.
    """
    sources = (_free_of_system(), _free_of_container(), _free_of_process())
    return min((free for free in sources if free is not None), default=None)


def fewer_worlds(num_envs: int, needed: float, free: float) -> int:
    """The largest power of two below `num_envs` at which what was needed would fit.

    Args:
        num_envs: N that does not fit; at least 2.
        needed: what so many worlds need, in bytes.
        free: what there is, in bytes.
    """
    fitting = min(num_envs * free / needed, num_envs - 1) if needed > 0 else num_envs - 1
    return 1 << (max(1, int(fitting)).bit_length() - 1)


def size(number_of_bytes: float) -> str:
    """Write a size as people do, in powers of ten: "201 MB"."""
    for unit, worth in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number_of_bytes >= worth:
            number = number_of_bytes / worth
            return f"{number:.3g} {unit}" if number < 999.5 else f"{number:,.0f} {unit}"
    return f"{number_of_bytes:.0f} bytes"


def _bytes(found: re.Match[str] | None) -> int | None:
    return None if found is None else int(float(found[1]) * _UNITS[found[2].lower()])


def _free_of_system() -> int | None:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"^MemAvailable: *(\d+) kB", text, re.M)
    return int(found[1]) * 1024 if found else None


def _free_of_container() -> int | None:
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text(encoding="ascii").strip()
        used = int((folder / "memory.current").read_text(encoding="ascii"))
        cache = re.search(r"^inactive_file (\d+)", (folder / "memory.stat").read_text(), re.M)
    except (OSError, ValueError):
        return None
    if not limit.isdecimal():
        return None
    return max(0, int(limit) - used + (int(cache[1]) if cache else 0))


def _free_of_process() -> int | None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)  # what `ulimit -v` sets
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return None
    return max(0, limit - pages * resource.getpagesize())
