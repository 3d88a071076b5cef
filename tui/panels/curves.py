"""Metrics over the run: a chart of one, a list of all."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np
from textual.binding import Binding, BindingType
from textual.message import Message

from trainer.telemetry import Curve, SessionView, Snapshot
from tui.draw.axis import GUTTER
from tui.draw.chart import line_chart
from tui.draw.lens import Lens, nearest
from tui.draw.levels import is_level_tag
from tui.draw.numbers import known, number
from tui.draw.search import matches
from tui.draw.spans import Role, Span, clean, crop
from tui.draw.table import Column, head, layout, row
from tui.draw.time_axis import Mark, TimeAxis, weightiest
from tui.panels.base import Panel
from tui.panels.marks import marks_of, num_events
from tui.panels.tag_table import TagChosen, TagRow, TagTable

TITLES = {
    "Train/mean_reward": "reward · mean of the last 100 episodes",
    "Train/mean_episode_length": "episode length · steps, mean of the last 100 episodes",
    "Perf/total_fps": "env steps in a second",
    "Perf/collection_time": "collect · seconds an iteration",
    "Perf/learning_time": "learn · seconds an iteration",
    "Loss/explained_variance": "explained variance",
    "Loss/entropy": "entropy of the policy",
}


class LensMoved(Message):
    """Zoom, smoothing or cursor have changed; all charts that share them show it."""


class CurvePanel(Panel, can_focus=True):
    """A curve of any metric; `tag` chooses it, keys go through all of them.

    Args:
        tag: the metric to begin with.
        lens: how curves are looked at; charts that share one line up.
        id: of the widget.
        classes: of the widget.
    """

    HELP: ClassVar[str | None] = """\
## Curve

One metric against the iteration. Where several iterations share a column, all from the smallest to
the largest value is drawn. An `x` on the lower axis marks iterations without a value or with one
that is not finite.

All charts share their iterations and their cursor: `[` and `]` show more or fewer of the last
iterations, `+` and `-` smooth more or less (an exponential moving average, drawn over the values).
With the focus here the left and right arrows move a cursor that reads the values at an iteration,
`home` and `end` take it to the first and away again; up and down go through the metrics that the
filter (`/`) lets through; `y` switches to a log axis.

On the lower axis stands what happened when: `◆` a checkpoint, `■` an edit, `‖` a breakpoint that
paused, `»` where the run was gone on with, `!` a fault or an alert; where several share a place the
gravest is drawn. The cursor reads them too; with ctrl the arrows take it from mark to mark.

**Healthy:** the reward rises and levels off; the episode length rises to its limit for a robot
that should stay up.

**If not:** a reward that falls after it rose: look at KL, clip fraction and explained variance at
that iteration. A flat reward from the start: look at which reward terms move.
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "Cursor", show=False, tooltip="Move the curves' cursor"),
        Binding("right", "move(1)", show=False, tooltip="Move the curves' cursor"),
        Binding("shift+left", "move(-10)", show=False, tooltip="Move the cursor by ten"),
        Binding("shift+right", "move(10)", show=False, tooltip="Move the cursor by ten"),
        Binding("ctrl+left", "to_mark(-1)", show=False, tooltip="Cursor to the mark before"),
        Binding("ctrl+right", "to_mark(1)", show=False, tooltip="Cursor to the next mark"),
        Binding("home", "move(-1000000)", show=False, tooltip="Cursor to the first iteration"),
        Binding("end", "move(1000000)", show=False, tooltip="Cursor away"),
        Binding("down", "cycle(1)", show=False, tooltip="The next metric"),
        Binding("up", "cycle(-1)", show=False, tooltip="The metric before"),
        Binding("y", "toggle_log", "Log axis"),
        Binding("enter", "open", show=False, tooltip="Open the curve's own page"),
    ]

    def __init__(
        self,
        tag: str = "Train/mean_reward",
        *,
        lens: Lens | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._tag = tag
        self.log_axis = False
        """Whether the axis is logarithmic."""
        self.lens = lens or Lens()
        """How curves are looked at."""
        self.filter = ""
        """What up and down go through; see `tui.draw.search`."""

    @property
    def tag(self) -> str:
        """The metric shown."""
        return self._tag

    @tag.setter
    def tag(self, tag: str) -> None:
        if tag != self._tag:
            self._tag = tag
            self.redraw()

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the length of the history, on the events, and on how they are looked at."""
        now = snapshot.metrics.get(self._tag)
        return len(session.history), now, self.lens.state, num_events(session)

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the chart; the newest value or that at the cursor stands in the border."""
        assert self.session is not None
        curve = self.session.history.curve(self._tag)
        marks = marks_of(self.session)
        smooth = self.lens.smoothed(curve.mean)
        words = ["log"] if self.log_axis else []
        words += [self.lens.words()] if self.lens.words() else []
        title = TITLES.get(self._tag, clean(self._tag))
        self.caption(
            title=" · ".join([title, *words]),
            subtitle=crop(self._reading(curve, smooth, marks, width), width - 2),
        )
        if curve.iteration.size == 0:
            return [(Span("no iteration done yet", Role.MUTED),)]
        x_range = self.lens.span(float(curve.iteration[0]), float(curve.iteration[-1]))
        # Iterations before the first value are no gap: the metric was not there yet.
        seen = np.flatnonzero(np.isfinite(curve.mean))
        start = max(
            int(seen[0]) if seen.size else 0, int(np.searchsorted(curve.iteration, x_range[0]))
        )
        return line_chart(
            curve.iteration[start:],
            curve.mean[start:],
            width,
            height,
            low=curve.low[start:],
            high=curve.high[start:],
            x_range=x_range,
            log=self.log_axis,
            x_label="iteration",
            charset=self.charset,
            front=smooth[start:] if self.lens.weight else None,
            cursor=self.lens.cursor,
            marks=marks,
        )

    def _reading(self, curve: Curve, smooth: np.ndarray, marks: Sequence[Mark], width: int) -> str:
        """Return the value at the cursor and what happened there, or the newest value."""
        cursor = self.lens.cursor
        if cursor is None or curve.iteration.size == 0:
            now = self.snapshot.metrics.get(self._tag)
            text = number(now, 7).strip() if now is not None else ""
            if text and self.lens.weight and smooth.size:
                text = f"{text} · smooth {number(float(smooth[-1]), 7).strip()}"
            return text
        at = nearest(curve.iteration, cursor)
        text = f"at {int(curve.iteration[at])}: {number(float(curve.mean[at]), 7).strip()}"
        if curve.high[at] > curve.low[at]:
            ends = (number(float(value), 7).strip() for value in (curve.low[at], curve.high[at]))
            text += " ({} to {})".format(*ends)
        span = self.lens.span(float(curve.iteration[0]), float(curve.iteration[-1]))
        here = TimeAxis(*span, width - GUTTER, self.charset).under(cursor, marks)
        if here:
            mark = weightiest(here)
            more = f" and {len(here) - 1} more" if len(here) > 1 else ""
            text += f" · {mark.kind.glyph(self.charset)} {mark.iteration}: {mark.text}{more}"
        return text

    def action_move(self, by: int) -> None:
        """Move the cursor by what a column of dots covers, and tell the other charts."""
        history = self.session.history if self.session is not None else None
        if history is None or not len(history):
            return
        iteration = history.curve(self._tag).iteration
        first, last = float(iteration[0]), float(iteration[-1])
        left, right = self.lens.span(first, last)
        dots = max(2 * (self.content_size.width - GUTTER), 1)
        step = max(math.ceil((right - left) / dots), history.stride)
        self.lens.move(by * step, first, last)
        self.redraw()
        self.post_message(LensMoved())

    def action_to_mark(self, by: int) -> None:
        """Move the cursor to the next mark, or to the one before."""
        session = self.session
        if session is None or not len(session.history):
            return
        iteration = session.history.curve(self._tag).iteration
        first, last = float(iteration[0]), float(iteration[-1])
        at = last if self.lens.cursor is None else self.lens.cursor
        places = sorted({mark.iteration for mark in marks_of(session)})
        left, right = self.lens.span(first, last)
        ahead = [p for p in places if left <= p <= right and (p - at) * by > 0]
        if self.lens.cursor is None and by < 0 and last in places:
            ahead.append(int(last))
        if ahead:
            self.lens.cursor = ahead[0] if by > 0 else ahead[-1]
            self.redraw()
            self.post_message(LensMoved())

    def action_cycle(self, steps: int) -> None:
        """Show the next or an earlier metric."""
        tags = shown_tags(self.session.history.tags) if self.session is not None else ()
        tags = tuple(tag for tag in tags if matches(self.filter, tag))
        if tags:
            at = tags.index(self._tag) if self._tag in tags else -1
            self.tag = tags[(at + steps) % len(tags)]
            self.post_message(TagChosen(self._tag, opened=False))

    def action_toggle_log(self) -> None:
        """Switch between a linear and a logarithmic axis."""
        self.log_axis = not self.log_axis
        self.redraw()

    def action_open(self) -> None:
        """Ask for the curve's own page."""
        self.post_message(TagChosen(self._tag, opened=True))


class EpisodeLengthPanel(CurvePanel):
    """The curve of the mean episode length."""

    def __init__(self, *, lens: Lens | None = None, id: str | None = None) -> None:
        super().__init__("Train/mean_episode_length", lens=lens, id=id)


class AllMetricsPanel(TagTable):
    """Every metric of the run: its value, and the least and the largest it ever had."""

    TITLE: ClassVar[str] = "all metrics"
    MARKS_ALWAYS: ClassVar[bool] = True

    HELP: ClassVar[str | None] = """\
## All metrics

Every metric that the run has reported, under the names of its files: the last value, and the
smallest and largest of the whole run. The arrows choose one, its curve stands beside; `/` filters
by a regular expression or by parts of the name. `~` marks a metric without a value in the last
iteration: it stays in the list.

**Healthy:** values are finite. Those that are not stand in the error colour as `nan` or `inf`.
"""

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the metrics of the last iteration."""
        return id(snapshot.metrics), len(session.history)

    @property
    def nothing(self) -> str:
        """What stands there before the first iteration is done."""
        return "no iteration done yet"

    def head(self, width: int) -> Sequence[Sequence[Span]]:
        """Return the titles."""
        columns = self._columns()
        return [head(columns, layout(columns, width))]

    def tag_rows(self, width: int) -> Sequence[TagRow]:
        """Return a row for each metric."""
        assert self.session is not None
        columns = self._columns()
        widths = layout(columns, width)
        rows = []
        for tag in shown_tags(self.session.history.tags):
            curve = self.session.history.curve(tag)
            now = self.snapshot.metrics.get(tag, math.nan)
            is_stale = math.isfinite(now) and not np.isfinite(curve.mean[-1:]).all()
            seen = np.isfinite(curve.mean)
            low = float(curve.low[seen].min()) if seen.any() else math.nan
            high = float(curve.high[seen].max()) if seen.any() else math.nan
            name = Role.MUTED if is_stale else Role.TEXT
            spans = [
                (Span(crop(("~" if is_stale else "") + clean(tag), widths[0]), name),),
                (Span(number(now), Role.STRONG if math.isfinite(now) else Role.ERROR),),
                (Span(f"{known(low)}  {known(high)}", Role.MUTED),),
            ]
            rows.append(TagRow(tag, row(spans, columns, widths)))
        return rows

    def _columns(self) -> list[Column]:
        return [
            Column("metric", 34, 0, right=False, grow=30),
            Column("now", 7, 1),
            Column("min      max", 16, 2),
        ]


def shown_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Leave out the bars of histograms: there are dozens of them."""
    return tuple(tag for tag in tags if not is_level_tag(tag))
