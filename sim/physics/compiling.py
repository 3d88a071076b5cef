"""Tell of Warp's kernels being compiled, which takes a minute the first time and looks frozen."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from sim.warp_start import wp

INTERVAL = 0.5
"""Seconds between two tellings."""


class _LoadCounter:
    """A Warp logger that counts loaded modules and passes on what went wrong."""

    def __init__(self, loaded: Callable[[], None]) -> None:
        self.modules = 0
        self._loaded = loaded
        self._before = wp.get_logger()

    def debug(self, message: str) -> None:
        """Nothing is told at this level."""

    def info(self, message: str) -> None:
        """Warp tells each module that it has loaded, with the time that took."""
        if "load on device" in message:
            self.modules += 1
            self._loaded()

    def warning(
        self, message: str, category: type[Warning] | None = None, stacklevel: int = 1
    ) -> None:
        """As before."""
        self._before.warning(message, category, stacklevel + 1)

    def error(self, message: str) -> None:
        """As before."""
        self._before.error(message)


@contextlib.contextmanager
def telling_of_kernels(progress: Callable[[str], None]) -> Iterator[None]:
    """Say every half second how many modules of kernels were loaded so far, until the block ends.

    The block's thread is inside the compiler meanwhile, so `progress` is called from another.
    Behind each module it is called from the block's own thread too: what it raises there ends the
    block, which is the one way to stop between two modules.
    """

    def say() -> None:
        seconds = time.monotonic() - start
        progress(f"compiling kernels ({counter.modules} modules, {seconds:.0f} s)")

    def tell() -> None:
        say()
        while not over.wait(INTERVAL):
            say()

    counter, level, before = _LoadCounter(say), wp.config.log_level, wp.get_logger()
    start, over = time.monotonic(), threading.Event()
    teller = threading.Thread(target=tell, name="kernels", daemon=True)
    wp.set_logger(counter)
    wp.config.log_level = min(level, wp.LOG_INFO)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
        wp.config.log_level = level
        wp.set_logger(before)
        progress("")
