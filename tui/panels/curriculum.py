"""How hard the task has become: levels of the ground, and what else a curriculum changes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from trainer.telemetry import SessionView, Snapshot
from tui.draw.chart import line_chart
from tui.draw.levels import (
    is_level_tag,
    largest_share,
    level_axis,
    level_bars,
    level_counts,
    level_numbers,
    mean_level,
)
from tui.draw.numbers import number, percent, whole_number
from tui.draw.spans import Line, Role, Span, beside, block, clean
from tui.draw.table import GAP, Column, head, layout, row
from tui.panels.base import ScrollingPanel
from tui.panels.marks import marks_of, num_events
from tui.panels.trend import trend

PREFIX = "Curriculum/"
COMMANDS = "Metrics/"

NAME, WORLDS, MEAN, TREND = 20, 6, 5, 7
"""Cells of the columns beside the bars."""
MOST_CELLS_A_LEVEL = 6
MOST_LINES_A_KIND = 5
LEAST_LINES_OF_CHART = 9
WIDTH_OF_CHART = 48
"""Cells for each of several charts at least."""
WIDTH_WITH_CHART = 150
"""Cells from which on the chart stands beside all else."""


class _Fact(NamedTuple):
    """One line above or below the histograms."""

    name: str
    value: str
    tag: str
    """The metric whose trend is shown."""
    note: str = ""


def _in_words(fact: _Fact) -> str:
    return " ".join(part for part in (fact.name, fact.value.strip(), fact.note) if part)


def _range(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}" if low != high else f"{low:.4g}"


def _wrapped(parts: Sequence[str], width: int) -> list[Line]:
    """Return lines of whole parts, as many to a line as fit; the second line on is set in."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + GAP + len(part) <= width:
            lines[-1] += " " * GAP + part
        else:
            lines.append("  " * bool(lines) + part)
    return [(Span(line, Role.MUTED),) for line in lines]


class CurriculumPanel(ScrollingPanel):
    """Worlds by kind of ground and level, moves between levels, weights and command ranges."""

    TITLE: ClassVar[str] = "curriculum"

    HELP: ClassVar[str | None] = """\
## Curriculum

How hard the task has become. A robot that walks off its tile is **promoted** to the next level, one
that makes less than half of the way that it was told is **demoted**; both are counted over the
iteration. Each kind of ground has its histogram: the part of its worlds at each level, bars of all
kinds on one scale, and their mean.

**The mean level saturates.** A robot that masters the last level goes to a random one, so that no
level is forgotten: even perfect walkers keep the mean near the middle of the levels. A mean that no
longer rises does not mean that learning stopped. Look at `reached the top`, the part of the worlds
that ever stood at the last level: it can only grow.

Other rows are what a curriculum changes beside levels, such as the weight of a reward term, and the
ranges that commands are drawn from.

**Healthy:** worlds leave level 0 once robots walk; promotions stay above demotions until the top is
reached, then both balance.

**If not:** all worlds fall to level 0 and stay: the robots do not walk yet (look at the tracking
terms), or the first level is too hard (`env.terrain.difficulty_range`, `step_height_range`). One
kind stays behind: it is harder than the others at the same level.
"""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._height = 0

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the metrics of the last iteration."""
        parts = id(snapshot.metrics), id(snapshot.info), len(session.history)
        return *parts, num_events(session)

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return all rows that fit; the bars grow with the height."""
        self._height = height
        return super().draw(width, height)

    def rows(self, width: int) -> Sequence[Sequence[Span]]:
        """Return facts, histograms, command ranges, and a chart where room is left."""
        assert self.session is not None
        metrics = self.snapshot.metrics
        tags = [tag for tag in metrics if tag.startswith(PREFIX)]
        ranges = self._ranges(width)
        if not tags:
            return self._without_curriculum(ranges, width)
        histograms = level_counts(metrics)
        facts = [fact for tag in tags if (fact := self._fact(tag, histograms)) is not None]
        has_chart = width >= WIDTH_WITH_CHART and self._height >= LEAST_LINES_OF_CHART
        room = width - width // 3 - GAP if has_chart else width
        least = len(ranges) + sum(1 + len(kinds) for kinds in histograms.values())
        is_short = histograms and len(facts) + least > self._height
        lines = _wrapped([_in_words(fact) for fact in facts], room) if is_short else []
        lines = lines or self._facts(facts, room)
        free = self._height - len(lines) - len(ranges)
        for term, kinds in histograms.items():
            lines += self._histograms(term, kinds, room, free // len(histograms))
        lines += ranges
        if not has_chart:
            return [*lines, *self._chart(tags[0], width, self._height - len(lines))]
        height = max(len(lines), self._height)
        chart = self._chart(tags[0], width // 3, self._height)
        return beside(block(lines, room, height), block(chart, width // 3, height), GAP)

    def _without_curriculum(self, ranges: Sequence[Line], width: int) -> list[Line]:
        """Return why there is none, and how the commands are followed, over the run."""
        lines = [(Span(self._why_empty(), Role.MUTED),), *ranges]
        tags = [tag for tag in self.snapshot.metrics if tag.startswith(COMMANDS)]
        tags = tags[: max(1, width // WIDTH_OF_CHART)]
        height = self._height - len(lines) - 1
        if not tags or height < LEAST_LINES_OF_CHART:
            return lines
        room = (width - GAP * (len(tags) - 1)) // len(tags)
        charts = [block(self._chart(tag, room, height), room, height) for tag in tags]
        together = charts[0]
        for chart in charts[1:]:
            together = beside(together, chart, GAP)
        return [*lines, (), *together]

    def _why_empty(self) -> str:
        if not self.snapshot.metrics:
            return "no iteration done yet"
        if not any(tag.startswith("Episode_") for tag in self.snapshot.metrics):
            return "no episode has ended yet"
        return "n/a: this run has no curriculum, its task is as hard from the first step on"

    # Single numbers.

    def _fact(
        self, tag: str, histograms: Mapping[str, Mapping[str, Sequence[float]]]
    ) -> _Fact | None:
        """Word a tag; None for those that the histograms show."""
        value, (term, _, rest) = self.snapshot.metrics[tag], tag.removeprefix(PREFIX).partition("/")
        if is_level_tag(tag) or rest in histograms.get(term, ()):
            return None
        if term not in histograms:
            name = clean(f"{term}/{rest}" if rest else term)
            return _Fact(name, number(value), tag, self._note(term if not rest else ""))
        levels = max(map(len, histograms[term].values()))
        match rest:
            case "":
                return _Fact("mean level", number(value), tag, f"of 0 to {levels - 1}")
            case "reached_top":
                return _Fact("reached the top", percent(value, 7), tag, "of the worlds, ever")
            case "promotions" | "demotions":
                moves = whole_number(round(value)) if math.isfinite(value) else number(value)
                return _Fact(rest, moves, tag, "in this iteration")
            case _:
                return _Fact(clean(rest), number(value), tag)

    def _note(self, term: str) -> str:
        """Say what a number is if the term is called after the reward whose weight it sets."""
        info = self.snapshot.info
        return "weight in force" if info is not None and term in info.reward_terms else ""

    def _facts(self, facts: Sequence[_Fact], width: int) -> list[Line]:
        assert self.session is not None
        columns = [
            Column("", NAME, 0, right=False),
            Column("", 7, 1),
            Column("", 19, 3, right=False),
            Column("", 8, 2, right=False, grow=60),
        ]
        widths = layout(columns, width)
        lines = []
        for fact in facts:
            past = trend(self.session.history, fact.tag, max(widths[3], 1), self.charset)
            lines.append(
                row(
                    [
                        (Span(fact.name),),
                        (Span(fact.value, Role.STRONG),),
                        (Span(fact.note, Role.MUTED),),
                        (Span(past.line, Role.TREND),),
                    ],
                    columns,
                    widths,
                )
            )
        return lines

    # Histograms.

    def _histograms(
        self, term: str, kinds: Mapping[str, Sequence[float]], width: int, height: int
    ) -> list[Line]:
        """Return a title and the bars of each kind, which share the height evenly."""
        levels = max(map(len, kinds.values()))
        beside = NAME + MEAN + WORLDS + TREND + 4 * GAP
        cell = max(3 if levels <= 10 else 1, min(MOST_CELLS_A_LEVEL, (width - beside) // levels))
        columns = [
            Column("ground", NAME, 0, right=False),
            Column(level_axis(levels, cell), cell * levels, 1, right=False),
            Column("mean", MEAN, 2),
            Column("worlds", WORLDS, 3),
            Column("trend", TREND, 4, right=False, grow=40),
        ]
        top = largest_share(kinds.values())
        each = max(1, min(MOST_LINES_A_KIND, (height - 1) // len(kinds)))
        widths = layout(columns, width)
        lines = [head(columns, widths)]
        for kind, counts in kinds.items():
            padded = [*counts, *[0.0] * (levels - len(counts))]
            beside_bars = self._beside_bars(f"{PREFIX}{term}/{kind}", kind, counts, widths[-1])
            numbered = each > 2
            bars = level_bars(padded, top, cell, each - numbered, self.charset)
            middle = [Span(bar, Role.PRIMARY) for bar in bars]
            if numbered:
                middle.append(Span(level_numbers(padded, cell), Role.MUTED))
            for y, span in enumerate(middle):
                name, *right = beside_bars if y == len(bars) - 1 else [()] * 4
                lines.append(row([name, (span,), *right], columns, widths))
        return lines

    def _beside_bars(
        self, tag: str, kind: str, counts: Sequence[float], width: int
    ) -> list[tuple[Span, ...]]:
        """Return what stands on the line of a kind: its name, mean, worlds and trend."""
        assert self.session is not None
        worlds, past = sum(counts), trend(self.session.history, tag, max(width, 1), self.charset)
        number_of = whole_number(round(worlds), WORLDS) if math.isfinite(worlds) else "?"
        return [
            (Span(clean(kind)),),
            (Span(number(mean_level(counts), MEAN), Role.STRONG),),
            (Span(number_of, Role.MUTED),),
            (Span(past.line, Role.TREND),),
        ]

    # Commands, and the chart.

    def _ranges(self, width: int) -> list[Line]:
        """Return what commands are drawn from, as many to a line as fit."""
        info = self.snapshot.info
        lines: list[Line] = []
        for command, ranges in (info.command_ranges if info is not None else {}).items():
            parts = [f"{name} {_range(*limits)}" for name, limits in ranges.items()]
            lines += _wrapped([clean(part) for part in (f"{command}:", *parts)], width)
        return lines

    def _chart(self, tag: str, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return a number over the run, if the room is worth it."""
        assert self.session is not None
        if height < LEAST_LINES_OF_CHART:
            return ()
        curve = self.session.history.curve(tag)
        known = np.flatnonzero(np.isfinite(curve.mean))
        if known.size == 0:
            return ()
        first, last = float(curve.iteration[0]), float(curve.iteration[-1])
        chart = line_chart(
            curve.iteration[known[0] :],
            curve.mean[known[0] :],
            width,
            height - 1,
            low=curve.low[known[0] :],
            high=curve.high[known[0] :],
            x_range=(first, max(last, first + 1)),
            x_label="iteration",
            charset=self.charset,
            marks=marks_of(self.session),
        )
        name = clean(tag.removeprefix(PREFIX).removeprefix(COMMANDS))
        return [(Span(f"{name} over the run", Role.MUTED),), *chart]
