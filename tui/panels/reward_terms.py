"""What the reward is made of."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from textual.binding import Binding, BindingType

from trainer.telemetry import SessionView, Snapshot
from tui.draw.bars import signed_bar
from tui.draw.numbers import number
from tui.draw.spans import Line, Role, Span, clean
from tui.draw.table import Column, head, layout, row
from tui.panels.tag_table import TagRow, TagTable
from tui.panels.trend import Trend, trend

PREFIX = "Episode_Reward/"


class _Term(NamedTuple):
    name: str
    weight: float
    now: float
    stale: bool


class RewardTermsPanel(TagTable):
    """A signed bar for each reward term, with its weight, its value and its past."""

    TITLE: ClassVar[str] = "reward terms"

    HELP: ClassVar[str | None] = """\
## Reward terms

Each term with its weight applied, averaged over the episodes that ended in the iteration. The
**unit** is reward per second of the time limit: the sum over the episode, divided by the longest
episode in seconds, not by the episode's own length. An episode that ends early therefore shows
small values. `episode` is the sum over the episode itself. `mean` is over the last 20 iterations.
Bars to the left of the line are penalties, to the right rewards; the longest term fills its side.
`~` marks a term that brought no value in the last iteration.

The largest come first, by the size of their mean; `o` switches to the preset's order. The arrows
choose a term and `enter` opens its curve. `/` filters.

**Healthy:** tracking terms grow, penalties shrink towards 0 and stay small beside them.

**If not:** a penalty as large as the tracking terms makes standing still or falling the better
policy; lower its weight. A term that stays exactly 0 may have weight 0 or never act.
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "toggle_order", "Order", tooltip="Largest first, or the preset's order")
    ]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._sorted = True

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the metrics of the last iteration."""
        return id(snapshot.metrics), id(snapshot.info), len(session.history)

    def action_toggle_order(self) -> None:
        """Switch between the largest first and the preset's order."""
        self._sorted = not self._sorted
        self.redraw()

    @property
    def nothing(self) -> str:
        """What stands there before the first episode has ended."""
        return "no episode has ended yet"

    def note(self) -> str:
        """Say what the numbers mean."""
        info = self.snapshot.info
        limit = info.max_episode_length * info.step_dt if info is not None else math.nan
        if not self._terms():
            return ""
        more = super().note()
        return f"per second of the {limit:g} s limit" + (f" · {more}" if more else "")

    def head(self, width: int) -> Sequence[Sequence[Span]]:
        """Return the titles."""
        if not self._terms():
            return ()
        columns = self._columns()
        return [head(columns, layout(columns, width))]

    def tag_rows(self, width: int) -> Sequence[TagRow]:
        """Return a row for each term, and their total."""
        assert self.session is not None
        terms = self._terms()
        if not terms:
            return []
        columns = self._columns()
        widths = layout(columns, width)
        finite = [abs(term.now) for term in terms if math.isfinite(term.now)]
        limit = max(finite, default=0.0)
        pasts = {
            term.name: trend(
                self.session.history, PREFIX + term.name, max(widths[5], 1), self.charset
            )
            for term in terms
        }
        if self._sorted:
            terms.sort(key=lambda term: -_size(pasts[term.name].mean, term.now))
        rows = [
            TagRow(PREFIX + term.name, self._row(term, pasts[term.name], limit, columns, widths))
            for term in terms
        ]
        total = _Term("total", math.nan, float(np.sum([t.now for t in terms])), stale=False)
        return [*rows, TagRow("", self._row(total, None, 0.0, columns, widths))]

    def _terms(self) -> list[_Term]:
        assert self.session is not None
        info, metrics = self.snapshot.info, self.snapshot.metrics
        weights = dict(info.reward_terms) if info is not None else {}
        names = list(weights)
        names += [
            tag.removeprefix(PREFIX)
            for tag in metrics
            if tag.startswith(PREFIX) and tag.removeprefix(PREFIX) not in weights
        ]
        terms = []
        for name in names:
            if PREFIX + name not in metrics:
                continue
            last = self.session.history.curve(PREFIX + name).mean[-1:]
            stale = not np.isfinite(last).all() and math.isfinite(metrics[PREFIX + name])
            terms.append(
                _Term(clean(name), weights.get(name, math.nan), metrics[PREFIX + name], stale)
            )
        return terms

    def _columns(self) -> list[Column]:
        return [
            Column("term", 16, 0, right=False, grow=8),
            Column("", 13, 2, right=False, grow=24),
            Column("now", 7, 1),
            Column("mean", 7, 4),
            Column("weight", 8, 5),
            Column("trend", 8, 3, right=False, grow=16),
            Column("episode", 7, 6),
        ]

    def _row(
        self,
        term: _Term,
        past: Trend | None,
        limit: float,
        columns: Sequence[Column],
        widths: Sequence[int],
    ) -> Line:
        info = self.snapshot.info
        seconds = info.max_episode_length * info.step_dt if info is not None else math.nan
        quiet = term.stale or term.now == 0
        text = Role.MUTED if quiet else Role.TEXT
        bar: tuple[Span, ...] = ()
        if past is not None:
            left, axis, right = signed_bar(term.now, limit, widths[1], self.charset)
            bar = (
                Span(left, Role.MUTED if term.stale else Role.WARNING),
                Span(axis, Role.GUIDE),
                Span(right, Role.MUTED if term.stale else Role.SUCCESS),
            )
        value = text if math.isfinite(term.now) else Role.ERROR
        if past is None:
            text = value = Role.STRONG
        return row(
            [
                (Span(("~" if term.stale else "") + term.name, text),),
                bar,
                (Span(number(term.now, 7, sign=True), value),),
                (Span(number(past.mean, 7, sign=True) if past else "", Role.MUTED),),
                (Span(f"{term.weight:g}" if math.isfinite(term.weight) else "", Role.MUTED),),
                (Span(past.line if past else "", Role.MUTED if quiet else Role.TREND),),
                (Span(number(term.now * seconds, 7, sign=True), Role.MUTED),),
            ],
            columns,
            widths,
        )


def _size(mean: float, now: float) -> float:
    """Return what a term is sorted by; its mean of late, so that the order is calm."""
    value = mean if math.isfinite(mean) else now
    # Two digits: terms of about equal size do not change places all the time.
    return float(f"{abs(value):.1e}") if math.isfinite(value) else math.inf
