"""The adaptive schedule at work: the KL of every mini-batch and what it did to the rate."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np

from trainer.telemetry import SessionView, Snapshot, UpdateView
from tui.draw.axis import GUTTER, Guide, Scale, tick_label
from tui.draw.bars import columns
from tui.draw.chart import line_chart
from tui.draw.lens import Lens
from tui.draw.numbers import number
from tui.draw.spans import Charset, Line, Role, Span, fit, labelled, runs, whole
from tui.panels.base import Panel
from tui.panels.marks import marks_of, num_events

FLOOR, CEILING = 1e-5, 1e-2
"""Range of the adaptive schedule's learning rate (RSL-RL)."""

EVEN_PITCH = 4
"""Cells of a bar and its gap from which these may differ by one from bar to bar."""

MOST_PITCH = 12
"""Cells of a bar and the gap behind it, at most."""

CHART_HEIGHT = 7
"""Lines of the rate's curve over the run, where there is room for it."""


class LearningRatePanel(Panel):
    """KL of every mini-batch as bars between two lines, an arrow where the rate moved."""

    TITLE: ClassVar[str] = "learning rate · KL of every mini-batch"

    HELP: ClassVar[str | None] = """\
## Learning rate

One bar for each optimizer step of the last update: the mean KL(old || new) of its mini-batch,
before the step. The lines lie at half and at twice the desired KL. Below a bar `↑` or `↓` says
that the rate moved: above twice the desired KL it is divided by 1.5, below half of it multiplied
by 1.5, within 1e-5 and 1e-2. The KL never ends an epoch. Below that the rate on a log scale; with
more room its curve over the run.

**Healthy:** bars mostly between the lines, arrows in both directions, the rate between 1e-4 and
1e-3.

**If not:** stuck at 1e-5: the policy changes too much; lower `num_learning_epochs`, look for
exploding rewards or observations. Stuck at 1e-2: the policy hardly changes; check that the reward
can be reached.
"""

    def __init__(
        self, *, lens: Lens | None = None, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.lens = lens or Lens()
        """How the curve over the run is looked at."""

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the last update."""
        parts = id(snapshot.update), id(snapshot.info), self.lens.state
        return *parts, len(session.history), num_events(session)

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return figures, bars, arrows and the rate, as many as there is room for."""
        update = self.snapshot.update
        if update is None or update.kl.size == 0:
            return [(Span("no update yet", Role.MUTED),)]
        figures = self._figures(update, width)
        if height < 4 or width < GUTTER + 4:
            return [figures, self._slider(update, width)]
        slider = [self._slider(update, width)] if height >= 5 else []
        chart = self._curve(width, CHART_HEIGHT) if height >= 10 + CHART_HEIGHT else []
        bars = self._bars(update, width, height - 2 - len(slider) - len(chart))
        return [figures, *bars, self._arrows(update, width), *chart, *slider]

    def _figures(self, update: UpdateView, width: int) -> Line:
        info = self.snapshot.info
        desired = info.desired_kl if info is not None else None
        known = update.kl[np.isfinite(update.kl)]
        mean, top = (known.mean(), known.max()) if known.size else (math.nan, math.nan)
        schedule = f"desired {desired:g}" if desired is not None else "fixed rate"
        return whole(
            [
                labelled("rate", number(update.learning_rate[-1], 6), Role.STRONG),
                labelled("KL mean", number(mean, 6)),
                labelled("max", number(top, 6)),
                (Span(schedule, Role.MUTED),),
            ],
            width,
        )

    def _guides(self) -> tuple[float, float] | None:
        info = self.snapshot.info
        if info is None or info.desired_kl is None:
            return None
        return info.desired_kl / 2, info.desired_kl * 2

    def _bars(self, update: UpdateView, width: int, height: int) -> list[Line]:
        guides = self._guides()
        known = update.kl[np.isfinite(update.kl)]
        top = max(
            float(known.max(initial=0.0)), guides[1] * 1.25 if guides is not None else 0.0, 1e-12
        )
        place = _places(update.kl.size, width - GUTTER)
        kl = _grouped(update.kl, place)
        rows = columns(kl / top, height, self.charset)
        tick, axis = ("+", "|") if self.charset is Charset.ASCII else ("┤", "│")
        mark = "-" if self.charset is Charset.ASCII else "┄"
        at = {
            height - 1 - min(int(value / top * height), height - 1): value
            for value in (guides or ())
        }
        lines = []
        for index, row in enumerate(rows):
            text = [mark if index in at else " "] * (width - GUTTER)
            roles: list[str] = [Role.GUIDE] * len(text)
            for (start, end), character, value in zip(place, row, kl, strict=True):
                if character == " ":
                    continue
                high = guides is not None and not value <= guides[1]
                for column in range(start, end):
                    text[column], roles[column] = character, Role.WARNING if high else Role.PRIMARY
            label = tick_label(at[index]) + tick if index in at else " " * (GUTTER - 1) + axis
            lines.append((Span(label, Role.MUTED), *runs(text, roles)))
        return lines

    def _arrows(self, update: UpdateView, width: int) -> Line:
        up, down, level = ("^", "v", ".") if self.charset is Charset.ASCII else ("↑", "↓", "·")
        rates = update.learning_rate.astype(np.float64)
        before = np.concatenate([[self._rate_before(rates[0])], rates[:-1]])
        moves = np.sign(np.round(np.log(np.maximum(rates, 1e-30) / np.maximum(before, 1e-30)), 4))
        text = [" "] * (width - GUTTER)
        roles: list[str] = [Role.MUTED] * len(text)
        place = _places(update.kl.size, width - GUTTER)
        for (start, end), group in zip(place, np.array_split(moves, len(place)), strict=True):
            move = group[np.argmax(np.abs(group))]
            column = (start + end - 1) // 2
            text[column] = up if move > 0 else (down if move < 0 else level)
            roles[column] = Role.STRONG if move else Role.MUTED
        return (Span("rate".rjust(GUTTER - 1) + " ", Role.MUTED), *runs(text, roles))

    def _rate_before(self, first: float) -> float:
        """Return the rate that the update before ended with, `first` where it is not known."""
        if self.session is None:
            return first
        curve = self.session.history.curve("Loss/learning_rate")
        single = curve.iteration.size > 1 and curve.iteration[-1] - curve.iteration[-2] == 1
        return float(curve.mean[-2]) if single and np.isfinite(curve.mean[-2]) else first

    def _slider(self, update: UpdateView, width: int) -> Line:
        """Draw where the rate stands between floor and ceiling, on a log scale."""
        rate = float(update.learning_rate[-1])
        left, right = f"{FLOOR:.0e}".replace("e-0", "e-"), f"{CEILING:.0e}".replace("e-0", "e-")
        room = width - GUTTER - len(right) - 2
        if room < 3:
            return fit((Span(f"rate {number(rate, 6)}"),), width)
        ends, line, knob = ("||", "-", "O") if self.charset is Charset.ASCII else ("├┤", "─", "●")
        share = math.log(max(rate, 1e-30) / FLOOR) / math.log(CEILING / FLOOR) if rate > 0 else 0.0
        at = round(min(max(share, 0.0), 1.0) * (room - 1))
        stuck = not FLOOR * 1.01 < rate < CEILING / 1.01
        return (
            Span(left.rjust(GUTTER - 1) + ends[0], Role.MUTED),
            Span(line * at, Role.MUTED),
            Span(knob, Role.WARNING if stuck else Role.PRIMARY),
            Span(line * (room - 1 - at) + ends[1] + " " + right, Role.MUTED),
        )

    def _curve(self, width: int, height: int) -> list[Line]:
        assert self.session is not None
        curve = self.session.history.curve("Loss/learning_rate")
        ends = (
            (float(curve.iteration[0]), float(curve.iteration[-1])) if len(curve.mean) else (0, 1)
        )
        left, right = self.lens.span(*ends)
        start = int(np.searchsorted(curve.iteration, left))
        return line_chart(
            curve.iteration[start:],
            curve.mean[start:],
            width,
            height,
            low=curve.low[start:],
            high=curve.high[start:],
            x_range=(left, right),
            scale=Scale(FLOOR, CEILING, log=True),
            guides=(Guide(FLOOR), Guide(CEILING)),
            x_label="iteration",
            charset=self.charset,
            cursor=self.lens.cursor,
            marks=marks_of(self.session),
        )


def _places(count: int, room: int) -> list[tuple[int, int]]:
    """Return the first and one past the last column of each bar; fewer bars where room is short."""
    bars = max(1, min(count, room))
    pitch = max(1.0, min(room / bars, MOST_PITCH))
    if pitch < EVEN_PITCH:  # a cell more or less would be seen
        pitch = int(pitch)
    starts = [int(i * pitch) for i in range(bars + 1)]
    gap = int(pitch >= 2)
    return [(start, following - gap) for start, following in pairwise(starts)]


def _grouped(values: np.ndarray, place: list[tuple[int, int]]) -> np.ndarray:
    """Return the largest value of each bar's group; NaN where the group holds one."""
    groups = np.array_split(np.asarray(values, np.float64), len(place))
    return np.asarray([group.max() for group in groups])
