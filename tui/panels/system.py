"""What the machine does meanwhile, and what this screen costs."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import ClassVar

from trainer.rundir import writer
from trainer.telemetry import SessionView, Snapshot
from tui.draw.bars import bar
from tui.draw.numbers import num_bytes, percent
from tui.draw.spans import Line, Role, Span, clean, crop
from tui.draw.table import Column, layout, row
from tui.machine import Gpu, Machine, Sample
from tui.panels.base import Panel

INTERVAL = 2.0
"""Seconds between two looks at the machine."""

SCREEN_BUDGET = 0.05
"""Share of a core above which the screen takes too much from the training."""

TEXT_AT = 11
"""Column in which a resource without a share begins."""


class SystemPanel(Panel):
    """Processor, memory, disk, GPUs; the screen's own share among them."""

    TITLE: ClassVar[str] = "system"

    HELP: ClassVar[str | None] = """\
## System

The process that trains: the share of this machine's cores that it keeps busy, the memory it holds,
its folder on disk with the newest checkpoint. `screen` is what drawing this dashboard takes of one
core, `checks` what checking the stages' invariants takes of the training's time. For each GPU the
power first: a GPU that waits for its next kernel most of the time still says that it is 100 %
busy, but draws little.

**Healthy:** the processor full on a CPU run, the screen below 5 %, memory that stays level, a load
about the number of cores.

**If not:** a load far above the cores: other programs take part of the machine, the steps a second
suffer. Memory that grows for hours is a leak. A GPU at a third of its power waits for the CPU: more
worlds. `throttled`: heat or the power limit hold its clock down.
"""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._machine: Machine | None = None
        self._sample: Sample | None = None
        self._looked = -math.inf

    def show(self, snapshot: Snapshot, session: SessionView) -> None:
        """Look at the machine now and then, only while somebody sees it."""
        now = time.monotonic()
        if snapshot.info is not None and now - self._looked >= INTERVAL:
            self._looked = now
            self._machine = self._machine or Machine()
            run_dir = Path(snapshot.info.run_dir)
            self._sample = self._machine.sample(writer(run_dir) or os.getpid(), run_dir)
        super().show(snapshot, session)

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the last look, and on what the checks cost."""
        return self._sample, snapshot.check_cost

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return a line for each resource."""
        sample = self._sample
        if sample is None:
            return [(Span("no run yet", Role.MUTED),)]
        used = sample.memory_total - sample.memory_free
        rows = [
            self._row("processor", sample.cpu / sample.cores, _cores(sample), width),
            self._screen(sample.screen, width),
            self._row("memory", used / sample.memory_total, _memory(sample), width),
            _text("disk", _disk(sample), width),
        ]
        if (cost := self.snapshot.check_cost) is not None:
            every = "each iteration" if cost.every == 1 else f"every {cost.every} iterations"
            rows.insert(2, self._row("checks", cost.share, f"of the time · {every}", width))
        for number, gpu in enumerate(sample.gpus):
            rows += self._gpu(number, gpu, width)
        if not sample.gpus and height > len(rows):
            none, remedy = "none that NVML knows of", " (pip install nvidia-ml-py)"
            is_room = len(none + remedy) + TEXT_AT <= width
            rows.append(_text("GPU", none + remedy * is_room, width))
        return rows

    def _screen(self, share: float, width: int) -> Line:
        mark = " · more than 5 %" if share > SCREEN_BUDGET else ""
        return self._row("screen", share, f"of one core{mark}", width)

    def _row(self, name: str, share: float, text: str, width: int) -> Line:
        columns = [
            Column("", 9, 0, right=False),
            Column("", 4, 0),
            Column("", 8, 2, right=False, grow=22),
            Column("", min(34, max(width - 19, 1)), 1, right=False, grow=26),
        ]
        widths = layout(columns, width)
        spans = [
            (Span(name, Role.MUTED),),
            (Span(percent(share), Role.STRONG),),
            (Span(bar(share, widths[2], self.charset), Role.SECONDARY),),
            (Span(crop(text, widths[3])),),
        ]
        return row(spans, columns, widths)

    def _gpu(self, number: int, gpu: Gpu, width: int) -> list[Line]:
        power = f"power {gpu.power:.0f} of {gpu.power_limit:.0f} W · {gpu.celsius:.0f} C"
        throttled = " · throttled" if gpu.is_throttled else ""
        memory = f"GPU memory · {_bytes(gpu.memory)} of {_bytes(gpu.memory_total)}"
        return [
            self._row(f"GPU {number}", gpu.power / gpu.power_limit, power + throttled, width),
            self._row("", gpu.memory / gpu.memory_total, memory, width),
            self._row("", gpu.busy, f"busy · {clean(gpu.name)}", width),
        ]


def _cores(sample: Sample) -> str:
    other = "" if sample.pid == os.getpid() else f" · process {sample.pid}"
    cores = "core" if sample.cores == 1 else "cores"
    return f"of {sample.cores} {cores} · load {sample.load:4.1f} · {sample.threads} threads{other}"


def _memory(sample: Sample) -> str:
    of_all = _bytes(sample.memory_total)
    return f"of {of_all} · this run {_bytes(sample.resident)}"


def _disk(sample: Sample) -> str:
    newest = f" · {sample.checkpoints[-1]}" if sample.checkpoints else ""
    free, size = _bytes(sample.disk_free), _bytes(sample.run_bytes)
    return f"run {size}{newest} · {free} free"


def _text(name: str, text: str, width: int) -> Line:
    return (Span(f"{name:<{TEXT_AT}}", Role.MUTED), Span(crop(clean(text), width - TEXT_AT)))


def _bytes(value: float) -> str:
    return num_bytes(value).strip() if math.isfinite(value) else "-"
