"""The tensors of a stage, as a list to move through."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np
from textual.binding import Binding, BindingType
from textual.message import Message

from trainer.telemetry import RunState, SessionView, Snapshot, TensorSummary
from trainer.trace import ALL_COLUMNS
from tui.draw.bars import columns as bars
from tui.draw.histogram import rebin
from tui.draw.numbers import num_bytes, number, whole_number
from tui.draw.spans import Charset, Line, Role, Span, cells, clean, crop
from tui.draw.table import Column, head, layout, row
from tui.panels.base import ScrollingPanel
from tui.panels.trace import TracePanel

HISTOGRAM = 12
"""Cells of a histogram in the list."""


class TensorTable(TracePanel, ScrollingPanel, can_focus=True):
    """Name, shapes, figures and histogram of each tensor; those with NaN or Inf first."""

    TITLE: ClassVar[str] = "tensors"

    HELP: ClassVar[str | None] = """\
## Tensors

All tensors that the stage reads and writes. `symbols` is the shape in the letters of PPO: T
steps, N worlds, B = N T, M samples of a mini-batch, A actions, O_g the width of an observation
group, R reward terms, out and in the widths of a layer. Behind store only the rows filled so far
are listed. min, max, mean and std are over the finite entries, and so is the histogram, from the
smallest to the largest. `upd/w` is, for a parameter, log10 of the last step's norm over the
weights' norm.

Up and down choose a tensor, enter opens it: a map, its histogram, and the entries under a cursor.
`!` goes to the first entry that is not finite.

**Healthy:** NaN and Inf are 0 everywhere; `upd/w` lies near -3.

**If not:** rows marked `!!` stand first, and the lines below say where the first bad entry is and
which observation term, reward term or action it belongs to. NaN in observations: a world went bad
in physics. NaN in ratio or losses with finite observations: the learner diverged; lower the rate.
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "choose(-1)", "up", show=False),
        Binding("down", "choose(1)", "down", show=False),
        Binding("pageup", "choose(-8)", "page up", show=False),
        Binding("pagedown", "choose(8)", "page down", show=False),
        Binding("home", "choose(-1000)", "first", show=False),
        Binding("end", "choose(1000)", "last", show=False),
    ]

    class Chosen(Message):
        """Another tensor was chosen."""

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the answer, or on why there is none."""
        return id(snapshot.trace), self.state.stage, self.state.tensor, snapshot.state

    def tensors(self) -> list[TensorSummary]:
        """Return the tensors in the order shown: those that are not finite first."""
        trace = self.state.trace(self.snapshot)
        found = trace.tensors if trace is not None else ()
        return sorted(found, key=lambda tensor: not is_broken(tensor))

    def chosen(self) -> TensorSummary | None:
        """Return the chosen tensor; the first where none is."""
        tensors = self.tensors()
        named = (tensor for tensor in tensors if tensor.name == self.state.tensor)
        return next(named, tensors[0] if tensors else None)

    def action_choose(self, by: int) -> None:
        """Choose another tensor."""
        tensors, chosen = self.tensors(), self.chosen()
        if chosen is None:
            return
        at = min(max(tensors.index(chosen) + by, 0), len(tensors) - 1)
        self.state.chosen[self.state.stage] = tensors[at].name
        self.state.row, self.state.column = 0, ALL_COLUMNS
        self.redraw()
        self.post_message(self.Chosen())

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the list around the chosen tensor, and below it all about that one."""
        tensors, chosen = self.tensors(), self.chosen()
        self.caption(title=self.TITLE)
        if chosen is None:
            running = self.snapshot.state is RunState.RUNNING
            words = "come when this iteration ends" if running else "no tensors to list"
            self.caption(subtitle="")
            return [(Span(words, Role.MUTED),)]
        detail = self._detail(chosen, width)[: max(0, min(4, height - 4))]
        columns = _columns(tensors)
        widths = layout(columns, width)
        rows = max(1, height - len(detail) - 1)
        at = tensors.index(chosen)
        first = min(max(self._first, at - rows + 1), at)
        self._first = first = max(0, min(first, len(tensors) - rows))
        self.caption(subtitle=f"{at + 1} of {len(tensors)}{_size(tensors)}")
        lines = [head(columns, widths)] if height > 2 else []
        lines += [
            _row(tensor, columns, widths, self.charset, chosen=tensor is chosen)
            for tensor in tensors[first : first + rows]
        ]
        lines += [()] * (height - len(detail) - len(lines))
        return [*lines[: height - len(detail)], *detail]

    def _detail(self, tensor: TensorSummary, width: int) -> list[Line]:
        """All about one tensor, in three lines."""
        if is_broken(tensor):
            return [*_bad(tensor), *_described(tensor, width)]
        return _described(tensor, width)


def is_broken(tensor: TensorSummary) -> bool:
    """Whether a tensor holds NaN or infinity."""
    return tensor.nan > 0 or tensor.inf > 0


def _described(tensor: TensorSummary, width: int) -> list[Line]:
    size = num_bytes(tensor.num_bytes).strip()
    shape = f"{tensor.symbols} = {shape_text(tensor.shape)}"
    update = ""
    if not math.isnan(tensor.update_ratio):
        update = f" · log10 u/w {tensor.update_ratio:+.2f}"
    return [
        (
            Span(crop(clean(tensor.name), 36), Role.STRONG),
            Span(f"  {shape}", Role.MUTED),
        ),
        (
            Span(
                f"{tensor.dtype} · {tensor.device} · {size} · NaN {tensor.nan} Inf {tensor.inf}"
                f"{update}",
                Role.MUTED,
            ),
        ),
        (
            Span(
                f"min {extreme(tensor.min, tensor)} mean {number(tensor.mean)}"
                f" max {extreme(tensor.max, tensor)} std {number(tensor.std)}"
            ),
        ),
    ]


def _bad(tensor: TensorSummary) -> list[Line]:
    """Where the first entry stands that is not finite, and what it belongs to, in two lines."""
    where = ", ".join(map(str, tensor.bad_index))
    letters = tensor.symbols.strip("[]").split(",")
    named = ", ".join(
        f"{letter.lower() if letter in 'TNBM' else 'column'} {index}"
        for letter, index in zip(letters, tensor.bad_index, strict=False)
    )
    belongs = f" is {clean(tensor.bad_name)}" if tensor.bad_name else ""
    return [
        (Span(f"!! {tensor.nan} NaN, {tensor.inf} Inf, first at [{where}]", Role.ERROR),),
        (Span(f"   {named}{belongs}", Role.ERROR),),
    ]


def _size(tensors: Sequence[TensorSummary]) -> str:
    return f" · {num_bytes(sum(tensor.num_bytes for tensor in tensors)).strip()}"


def _columns(tensors: Sequence[TensorSummary]) -> list[Column]:
    name = max(cells((Span(t.name),)) for t in tensors) + 3
    symbols = max(len(t.symbols) for t in tensors)
    shape = max(len(shape_text(t.shape)) for t in tensors)
    updates = any(not math.isnan(t.update_ratio) for t in tensors)
    columns = [
        Column("   name", min(name, 26), 0, right=False, grow=max(0, name - 26)),
        Column("symbols", max(symbols, 7), 5, right=False),
        Column("shape", max(shape, 5), 2, right=False),
        Column("min", 7, 6),
        Column("mean", 7, 3),
        Column("max", 7, 7),
        Column("std", 7, 8),
        Column("NaN", 4, 9),
        Column("Inf", 4, 10),
        Column("low .. high", HISTOGRAM, 1, right=False),
        Column("upd/w", 6, 4 if updates else 14),
        Column("dtype", 8, 11, right=False),
        Column("device", 7, 12, right=False),
        Column("size", 9, 13),
    ]
    return columns if updates else [column for column in columns if column.title != "upd/w"]


def _row(
    tensor: TensorSummary,
    columns: Sequence[Column],
    widths: Sequence[int],
    charset: Charset,
    *,
    chosen: bool,
) -> Line:
    broken = is_broken(tensor)
    mark = "!! " if broken else ("> " if chosen else "  ").ljust(3)
    texts = {
        "   name": (mark + clean(tensor.name), Role.ERROR if broken else Role.TEXT),
        "symbols": (tensor.symbols, Role.MUTED),
        "shape": (shape_text(tensor.shape), Role.TEXT),
        "min": (extreme(tensor.min, tensor), Role.TEXT),
        "mean": (number(tensor.mean), Role.TEXT),
        "max": (extreme(tensor.max, tensor), Role.TEXT),
        "std": (number(tensor.std), Role.TEXT),
        "NaN": (_small_count(tensor.nan), Role.ERROR if tensor.nan else Role.MUTED),
        "Inf": (_small_count(tensor.inf), Role.ERROR if tensor.inf else Role.MUTED),
        "low .. high": (_small_histogram(tensor, charset), Role.TREND),
        "upd/w": (_update(tensor), Role.TEXT),
        "dtype": (tensor.dtype, Role.MUTED),
        "device": (tensor.device, Role.MUTED),
        "size": (num_bytes(tensor.num_bytes), Role.MUTED),
    }
    spans = []
    for column in columns:
        text, role = texts[column.title]
        spans.append((Span(text, Role.STRONG if chosen and role is Role.TEXT else role),))
    return row(spans, columns, widths)


def _small_histogram(tensor: TensorSummary, charset: Charset) -> str:
    if tensor.histogram is None:
        return "all equal".ljust(HISTOGRAM) if math.isfinite(tensor.min) else " " * HISTOGRAM
    counts = rebin(np.linspace(0, 1, len(tensor.histogram) + 1), tensor.histogram, HISTOGRAM)
    top = counts.max()
    return bars(counts / top if top > 0 else counts, 1, charset)[0]


def _update(tensor: TensorSummary) -> str:
    return "" if math.isnan(tensor.update_ratio) else f"{tensor.update_ratio:+.2f}"


def extreme(value: float, tensor: TensorSummary) -> str:
    """Write a tensor's smallest or largest entry, as a whole number where it holds no other."""
    whole = "int" in tensor.dtype and math.isfinite(value)
    return whole_number(int(value)) if whole else number(value)


def shape_text(shape: Sequence[int]) -> str:
    """Write a shape: 24×512×12."""
    return "×".join(str(size) for size in shape) or "scalar"


def _small_count(value: int) -> str:
    return f"{value:>4}" if value < 10_000 else number(value, 4)
