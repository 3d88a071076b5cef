"""One tensor large: a map of it, its histogram, and the entries under a cursor."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from trainer.telemetry import SessionView, Snapshot, TensorSummary
from trainer.trace import TensorView
from tui.draw.axis import Guide
from tui.draw.bars import sparkline
from tui.draw.heat import Palette, heat_map, whole_cells
from tui.draw.histogram import histogram
from tui.draw.numbers import number
from tui.draw.spans import Charset, Line, Role, Span, beside, block, clean, crop, fit, pad
from tui.panels.tensors import shape_text
from tui.panels.trace import TracePanel, TraceState

GUTTER = 5
"""Cells left of a picture, for the row and the cursor."""
SIDE = 40
"""Cells of the column right of a picture, where there is room for one."""


class TensorLarge(TracePanel, can_focus=True):
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
        super().__init__(state, id=id, classes=classes)
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
            marks={"!": view.bad, "x": view.dones},
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
        marks.append("! not finite")
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
