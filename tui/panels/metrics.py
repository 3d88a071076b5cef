"""Metrics that commands and curricula report, and why episodes end."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import ClassVar

from trainer.telemetry import SessionView, Snapshot
from tui.draw.bars import bar
from tui.draw.levels import is_level_tag
from tui.draw.numbers import number, percent
from tui.draw.spans import Role, Span, clean
from tui.draw.table import Column, head, layout, row
from tui.panels.tag_table import TagRow, TagTable
from tui.panels.trend import trend

LONGEST_NAME = 34
"""Cells of a metric's name at most."""


class TerminationsPanel(TagTable):
    """The share of each reason among the episodes that ended last."""

    TITLE: ClassVar[str] = "episodes end by"

    HELP: ClassVar[str | None] = """\
## Terminations

For each reason its share among the last finished episodes of all worlds, and how it went over the
run. `enter` opens its curve.

**Healthy** for a robot that should stay up: `time_out` grows towards 100 %.

**If not:** falls that stay above 20 % late in a run: look at the reward terms that punish motion,
at the strength of pushes and at the command ranges. 100 % time-outs from the start with a flat
reward: the robot stands still, because moving costs more than tracking brings.
"""

    PREFIX: ClassVar[str] = "Episode_Termination/"

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the metrics of the last iteration."""
        return id(snapshot.metrics), len(session.history)

    @property
    def nothing(self) -> str:
        """What stands there before the first episode has ended."""
        return "no episode has ended yet"

    def tag_rows(self, width: int) -> Sequence[TagRow]:
        """Return a row for each reason."""
        assert self.session is not None
        shares = {
            tag: value
            for tag, value in self.snapshot.metrics.items()
            if tag.startswith(self.PREFIX)
        }
        if not shares:
            return []
        total = sum(value for value in shares.values() if math.isfinite(value))
        columns = [
            Column("", 14, 0, right=False, grow=6),
            Column("", 4, 1),
            Column("", 10, 2, right=False, grow=20),
            Column("", 8, 3, right=False, grow=16),
        ]
        widths = layout(columns, width)
        lines = []
        for tag, value in shares.items():
            share = value / total if total > 0 else value
            past = trend(self.session.history, tag, max(widths[3], 1), self.charset)
            spans = [
                (Span(clean(tag.removeprefix(self.PREFIX))),),
                (Span(percent(share), Role.STRONG),),
                (Span(bar(share, widths[2], self.charset), Role.SECONDARY),),
                (Span(past.line, Role.TREND),),
            ]
            lines.append(TagRow(tag, row(spans, columns, widths)))
        return lines


class MetricsPanel(TagTable):
    """What commands and curricula measure, such as the error of the commanded velocity."""

    TITLE: ClassVar[str] = "commands · curriculum"

    HELP: ClassVar[str | None] = """\
## Metrics

What the commands and the curriculum report, averaged over the episodes that ended in the
iteration; `mean` is over the last 20 iterations. Levels by kind of ground are in the curriculum's
own view. Velocity errors are in m/s (`error_vel_xy`) and rad/s (`error_vel_yaw`). `enter` opens
the chosen one's curve, `/` filters.

**Healthy:** errors fall. `error_vel_xy` below 0.35 m/s is a robot that follows its command.

**If not:** errors that stay where they began mean that the robot ignores its command: check that
the command is among the observations and that the tracking terms weigh more than the penalties.
"""

    PREFIXES: ClassVar[tuple[str, ...]] = ("Metrics/", "Curriculum/")

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the metrics of the last iteration."""
        return id(snapshot.metrics), len(session.history)

    def head(self, width: int) -> Sequence[Sequence[Span]]:
        """Return the titles."""
        if not self._shown_tags():
            return ()
        columns = self._columns()
        return [head(columns, layout(columns, width))]

    @property
    def nothing(self) -> str:
        """What stands there before the first report."""
        return "none reported yet"

    def tag_rows(self, width: int) -> Sequence[TagRow]:
        """Return a row for each metric."""
        assert self.session is not None
        tags = self._shown_tags()
        if not tags:
            return []
        columns = self._columns()
        widths = layout(columns, width)
        lines = []
        for tag in tags:
            past = trend(self.session.history, tag, max(widths[2], 1), self.charset)
            value = self.snapshot.metrics[tag]
            spans = [
                (Span(clean(tag.split("/", 1)[1])),),
                (Span(number(value), Role.STRONG if math.isfinite(value) else Role.ERROR),),
                (Span(past.line, Role.TREND),),
                (Span(number(past.mean), Role.MUTED),),
            ]
            lines.append(TagRow(tag, row(spans, columns, widths)))
        return lines

    def _shown_tags(self) -> list[str]:
        """Return the tags in the order of `PREFIXES`, but for those of histograms of levels."""
        metrics = self.snapshot.metrics
        of_kinds = {tag.rpartition("/")[0] for tag in metrics if is_level_tag(tag)}
        return [
            tag
            for prefix in self.PREFIXES
            for tag in metrics
            if tag.startswith(prefix) and not is_level_tag(tag) and tag not in of_kinds
        ]

    def _columns(self) -> list[Column]:
        # Names differ in their ends: what is left out for them is a column, not a letter.
        names = (tag.split("/", 1)[1] for tag in self._shown_tags())
        longest = min(max(map(len, names), default=0), LONGEST_NAME)
        return [
            Column("metric", longest, 0, right=False, grow=3),
            Column("now", 7, 1),
            Column("trend", 8, 2, right=False, grow=20),
            Column("mean", 7, 3),
        ]
