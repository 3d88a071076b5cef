"""Every tensor of the stage behind which the loop is paused."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import ClassVar

from trainer.telemetry import RunState, SessionView, Snapshot, TensorSummary
from tui.draw.numbers import num_bytes, number, whole_number
from tui.draw.spans import Line, Role, Span, cells, clean
from tui.draw.table import Column, head, layout, row
from tui.panels.base import ScrollingPanel


class TensorTable(ScrollingPanel):
    """Name, shapes, type and figures of each tensor; those with NaN or Inf first."""

    TITLE: ClassVar[str] = "tensors"

    HELP: ClassVar[str | None] = """\
## Tensors

While the loop is paused: all tensors of the stage it is paused behind. `symbols` is the shape in
the letters of PPO: T steps, N worlds, B = N T, M samples of a mini-batch, A actions, O_g the
width of an observation group, out and in the widths of a layer. Behind store only
the rows filled so far are listed. min, max, mean and std are over the finite entries.

**Healthy:** NaN and Inf are 0 everywhere.

**If not:** rows marked `!!` stand first. NaN in observations: a world went bad in physics. NaN in
ratio or losses with finite observations: the learner diverged; lower the learning rate.
"""

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the tensors, or on why there are none."""
        return id(snapshot.tensors), snapshot.state, snapshot.position.stage, snapshot.pending

    def head(self, width: int) -> Sequence[Sequence[Span]]:
        """Return the titles."""
        if not self.snapshot.tensors:
            return ()
        columns = self._columns()
        return [head(columns, layout(columns, width))]

    def rows(self, width: int) -> Sequence[Sequence[Span]]:
        """Return a row for each tensor, those that are not finite first."""
        snapshot = self.snapshot
        if not snapshot.tensors:
            self.caption(title=self.TITLE)
            if snapshot.state is RunState.RUNNING:
                return [
                    (Span(snapshot.pending or "pause to list the tensors of a stage", Role.MUTED),)
                ]
            return [(Span("no tensors to list", Role.MUTED),)]
        self.caption(title=f"tensors behind {snapshot.position.stage.label}")
        columns = self._columns()
        widths = layout(columns, width)
        ordered = sorted(snapshot.tensors, key=lambda tensor: not _is_broken(tensor))
        return [self._row(tensor, columns, widths) for tensor in ordered]

    def note(self) -> str:
        """Return what all of them take in memory."""
        tensors = self.snapshot.tensors
        if not tensors:
            return ""
        return f"{len(tensors)} tensors · {num_bytes(sum(t.num_bytes for t in tensors)).strip()}"

    def _columns(self) -> list[Column]:
        tensors = self.snapshot.tensors
        name = max((cells((Span(t.name),)) for t in tensors), default=4) + 3
        symbols = max((len(t.symbols) for t in tensors), default=7)
        shape = max((len(_shape(t)) for t in tensors), default=5)
        return [
            Column("   name", min(name, 35), 0, right=False, grow=max(0, name - 35)),
            Column("symbols", max(symbols, 7), 1, right=False),
            Column("shape", max(shape, 5), 2, right=False),
            Column("dtype", 8, 7, right=False),
            Column("device", 7, 10, right=False),
            Column("min", 7, 5),
            Column("mean", 7, 4),
            Column("max", 7, 6),
            Column("std", 7, 8),
            Column("NaN", 5, 3),
            Column("Inf", 5, 3),
            Column("size", 9, 9),
        ]

    def _row(self, tensor: TensorSummary, columns: Sequence[Column], widths: Sequence[int]) -> Line:
        role = Role.ERROR if _is_broken(tensor) else Role.TEXT
        texts = [
            ("!! " if _is_broken(tensor) else "   ") + clean(tensor.name),
            tensor.symbols,
            _shape(tensor),
            tensor.dtype.removeprefix("torch."),
            tensor.device,
            _extreme(tensor.min, tensor),
            number(tensor.mean),
            _extreme(tensor.max, tensor),
            number(tensor.std),
            _small_count(tensor.nan),
            _small_count(tensor.inf),
            num_bytes(tensor.num_bytes),
        ]
        roles = dict.fromkeys((3, 4, 11), Role.MUTED) | dict.fromkeys((0, 9, 10), role)
        spans = [(Span(text, roles.get(index, Role.TEXT)),) for index, text in enumerate(texts)]
        return row(spans, columns, widths)


def _is_broken(tensor: TensorSummary) -> bool:
    return tensor.nan > 0 or tensor.inf > 0


def _extreme(value: float, tensor: TensorSummary) -> str:
    """Write a tensor's smallest or largest entry, as a whole number where it holds no other."""
    whole = "int" in tensor.dtype and math.isfinite(value)
    return whole_number(int(value)) if whole else number(value)


def _shape(tensor: TensorSummary) -> str:
    return "×".join(str(size) for size in tensor.shape) or "scalar"


def _small_count(value: int) -> str:
    """Write a count in five cells."""
    return f"{value:>5}" if value < 100_000 else number(value, 5)
