"""The tensors of a stage: a list to move through, and one of them large."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np
from textual.binding import Binding, BindingType
from textual.message import Message

from trainer.telemetry import RunState, SessionView, Snapshot, TensorSummary
from trainer.trace import ALL_COLUMNS, TensorView
from tui.draw.axis import Guide
from tui.draw.bars import columns as bars
from tui.draw.bars import sparkline
from tui.draw.heat import Palette, heat_map, whole_cells
from tui.draw.histogram import histogram, rebin
from tui.draw.numbers import num_bytes, number, whole_number
from tui.draw.spans import Charset, Line, Role, Span, beside, block, cells, clean, crop, fit, pad
from tui.draw.table import Column, head, layout, row
from tui.panels.base import Panel, ScrollingPanel
from tui.panels.trace import TraceState

HISTOGRAM = 12
"""Cells of a histogram in the list."""
GUTTER = 5
"""Cells left of a picture, for the row and the cursor."""
SIDE = 40
"""Cells of the column right of a picture, where there is room for one."""


class TensorTable(ScrollingPanel):
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

    def __init__(
        self,
        state: TraceState | None = None,
        *,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.state = state or TraceState()

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


class TensorLarge(Panel, can_focus=True):
    """One tensor: a map of it, its histogram, and the entries under the cursor."""

    TITLE: ClassVar[str] = "tensor"

    HELP: ClassVar[str | None] = """\
## One tensor

A map of the tensor: steps downward and worlds across where it has both, else its columns downward
and worlds or samples across, and a layer's weights as they are. Neighbours share a cell where there
are more than cells. Dark is small, bright is large; where the values have both signs red is below 0
and blue above. `x` marks an episode's end, `!` an entry that is not finite.

The arrows move the cursor by a cell of the map, shift and the arrows by one entry. `v` and `V`
turn through the columns of the last axis (at first the root mean square over all of them). Beside
the map: the histogram of all entries, the entries along the last axis at the cursor by name, and
the line downward through the cursor. `!` goes to the first entry that is not finite, esc closes.

**Healthy:** a map without stripes. Dark or bright columns over all steps are worlds that differ
from the others; rows over all worlds are steps in which all do the same; a single bright cell far
from the rest of the histogram is an outlier: look which world and which term it is.
"""

    def __init__(
        self,
        state: TraceState | None = None,
        *,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.state = state or TraceState()
        self.cells_across = 1
        """Cells of the map, so that an arrow can move by one."""
        self.cells_down = 1

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the answer."""
        return id(snapshot.trace), self.state.key(), snapshot.state

    def view(self) -> TensorView | None:
        """Return the tensor opened, once the answer is there."""
        trace = self.state.trace(self.snapshot)
        return trace.view if trace is not None else None

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the map, and right of it or below it the rest."""
        trace, view = self.state.trace(self.snapshot), self.view()
        if trace is None or view is None:
            self.caption(title=self.TITLE, subtitle="")
            return [(Span("no entries to look at", Role.MUTED),)]
        summary = next(tensor for tensor in trace.tensors if tensor.name == view.name)
        self.caption(
            title=f"{clean(view.name)} {summary.symbols} = {shape_text(summary.shape)}",
            subtitle=_place(view),
        )
        beyond = width >= 2 * SIDE
        room = width - SIDE - 2 if beyond else width
        under = 0 if beyond else min(height // 2, 6)
        picture = self._picture(view, room, height - under)
        if beyond:
            side = block(_side(view, summary, SIDE, height, self.charset), SIDE, height)
            return beside(block(picture, room, height), side, gap=2)
        return [*picture, *_side(view, summary, width, under, self.charset)]

    def _picture(self, view: TensorView, width: int, height: int) -> list[Line]:
        """The map with its axes; the cursor stands in the line above and in the gutter."""
        room = max(width - GUTTER, 1)
        shades = self.colourless or self.charset is Charset.ASCII
        lines_room = max(height - 2, 1)
        rows, columns = view.picture.shape
        small = whole_cells(rows, lines_room * (1 if shades else 2))
        lines = -(-small // (1 if shades else 2))
        self.cells_down, self.cells_across = min(small, rows), whole_cells(columns, room)
        finite = view.picture[np.isfinite(view.picture)]
        signed = bool(finite.size) and float(finite.min()) < 0 < float(finite.max())
        drawn = heat_map(
            view.picture,
            room,
            lines,
            marks=view.bad | view.dones,
            palette=Palette.DIVERGING if signed else Palette.SEQUENTIAL,
            shades=shades,
            charset=self.charset,
        )
        at = int((view.column + 0.5) / view.num_columns * self.cells_across)
        here = min(int((view.row + 0.5) / view.num_rows * lines), lines - 1)
        across = f"{view.columns} {view.column}"
        top: Line = (
            Span(" " * (GUTTER + at)),
            Span("▾", Role.STRONG),
            Span(f" {across}" if at + len(across) + 3 < room else "", Role.MUTED),
        )
        gutter = [_gutter(view, line, lines, here) for line in range(lines)]
        legend = _legend(view, room, signed=signed, shades=shades, charset=self.charset)
        return block([top, *beside(gutter, drawn), (Span(" " * GUTTER), *legend)], width, height)


def _gutter(view: TensorView, line: int, lines: int, here: int) -> Line:
    if line == here:
        return (Span(f"{view.row:>{GUTTER - 1}}>", Role.STRONG),)
    at, above = (int(each * view.num_rows / lines) for each in (line, line - 1))
    said = at != above and line % 2 == 0 and abs(line - here) > 1
    text = f"{at:>{GUTTER - 1}} " if said else " " * GUTTER
    return (Span(text, Role.MUTED),)


def _legend(view: TensorView, width: int, *, signed: bool, shades: bool, charset: Charset) -> Line:
    finite = view.picture[np.isfinite(view.picture)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (math.nan, math.nan)
    ramp = "dark to bright" if not signed or shades else "red < 0 < blue"
    marks = []
    if view.dones.any():
        marks.append("x episode ends")
    if view.bad.any():
        marks.append("x not finite")
    words = f"{number(low)} {ramp} {number(high)}  {' · '.join(marks)}"
    return (Span(crop(words, width), Role.MUTED),)


def _place(view: TensorView) -> str:
    rows = f"{view.rows} {view.row}, " if view.rows else ""
    return f"{rows}{view.columns} {view.column}: {number(view.value).strip()}"


def _side(
    view: TensorView, summary: TensorSummary, width: int, height: int, charset: Charset
) -> list[Line]:
    """Histogram, entry under the cursor, entries along the last axis, the line downward."""
    if height <= 0:
        return []
    plot = 6 if height >= 14 else (3 if height >= 6 else 0)
    row_name = f" {view.row_names[view.row]}" if view.row < len(view.row_names) else ""
    value: Line = (
        Span(f"{_axes(view)}{row_name} = ", Role.MUTED),
        Span(number(view.value).strip(), Role.PRIMARY),
    )
    lines: list[Line] = [value]
    if plot and summary.histogram is not None:
        edges = np.linspace(summary.min, summary.max, len(summary.histogram) + 1)
        guides = [Guide(0.0)] if summary.min < 0 < summary.max else []
        drawn = histogram(
            edges, summary.histogram, width, plot, guides=guides, labelled=False, charset=charset
        )
        low, high = number(summary.min).strip(), number(summary.max).strip()
        ends = f"{low}{'all entries':^{max(width - len(low) - len(high), 0)}}{high}"
        lines += [*drawn, (Span(ends, Role.MUTED),)]
    if view.along.size > 1:
        label = f"down {view.rows or 'the rows'}: "
        line = sparkline(view.along, max(min(width - len(label), view.along.size), 1), charset)
        lines.append((Span(label, Role.MUTED), Span(line, Role.TREND)))
    room = height - len(lines)
    lines += _depth(view, width, room)
    return [fit(line, width) for line in lines[:height]]


def _axes(view: TensorView) -> str:
    row = f"{view.row}, " if view.rows else ""
    return f"[{row}{view.column}]"


def _depth(view: TensorView, width: int, room: int) -> list[Line]:
    """The entries along the last axis, around the one that the map shows."""
    if not view.depth.size or room <= 0:
        return []
    shown = view.depth_column
    first = max(0, min(shown - room // 2, len(view.depth) - room)) if shown >= 0 else 0
    lines: list[Line] = []
    for index in range(first, min(first + room, len(view.depth))):
        name = view.depth_names[index] if index < len(view.depth_names) else f"column {index}"
        value = float(view.depth[index])
        mark = ">" if index == shown else " "
        role = Role.ERROR if not math.isfinite(value) else Role.TEXT
        lines.append(
            (
                Span(f"{mark}{pad(name, max(width - 10, 1))} ", Role.MUTED),
                Span(number(value, 7, sign=True), role),
            )
        )
    return lines
