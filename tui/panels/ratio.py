"""How far the policy moved in one update: probability ratios and what the clip cut off."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from trainer.telemetry import SessionView, Snapshot, UpdateView
from tui.draw.axis import Guide
from tui.draw.histogram import histogram, outside
from tui.draw.numbers import percent
from tui.draw.spans import Line, Role, Span, beside, fit
from tui.panels.base import Panel
from tui.panels.trend import trend

GUTTER = 6


class RatioPanel(Panel):
    """Histogram of the ratio for the first and the last mini-batch, with lines at 1 +- epsilon."""

    TITLE: ClassVar[str] = "ratio π/π_old · clip fraction"

    HELP: ClassVar[str | None] = """\
## Ratio

The ratio of the new to the old probability of the stored actions. In the first mini-batch it is 1
everywhere, because the policy has not moved yet; the last one shows how far one update went. The
lines stand at 1 - ε, 1 and 1 + ε. Beyond the outer ones the surrogate gains nothing more: the
clip bounds the objective, not the ratio. The clip fraction is the share beyond them.

**Healthy:** a bell around 1 in the last mini-batch, clip fraction 5 to 30 %.

**If not:** above 30 %: the update goes too far; lower `learning_rate` or `num_learning_epochs`.
Near 0: the policy hardly learns; the rate may be at its floor, or the advantages all alike. A
first mini-batch that is not a spike at 1 is a fault of the program: stored and recomputed
log-probabilities differ.
"""

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the last update."""
        return id(snapshot.update), id(snapshot.info), len(session.history)

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the figures and both histograms, as far as there is room."""
        update, info = self.snapshot.update, self.snapshot.info
        if update is None or info is None:
            return [(Span("no update yet", Role.MUTED),)]
        low, high = 1 - info.clip_param, 1 + info.clip_param
        clip = self._clip_fraction(update, width)
        if height < 3 or width < GUTTER + 10:
            return [clip]
        if not update.ratio_last.size:
            return [clip, (Span("ratios are not recorded", Role.MUTED),)]
        below, above = outside(update.ratio_edges, update.ratio_last, low, high)
        guides = (Guide(low), Guide(1.0), Guide(high))
        room, sides = width - GUTTER, self._sides(below, above, low, high, width)
        lines: list[Line] = [clip]
        if height >= 6:
            first = histogram(
                update.ratio_edges,
                update.ratio_first,
                room,
                1,
                guides=guides,
                labelled=False,
                charset=self.charset,
                role=Role.TREND,
            )
            lines += beside([_label("first")], first)
        plot = height - len(lines) - 1
        last = histogram(
            update.ratio_edges, update.ratio_last, room, plot, guides=guides, charset=self.charset
        )
        lines += beside([_label("last"), *[_label("")] * (plot - 1)], last)
        return [*lines, sides]

    def _clip_fraction(self, update: UpdateView, width: int) -> Line:
        assert self.session is not None
        now = self.snapshot.metrics.get("Loss/clip_fraction", float("nan"))
        last = float(update.clip_fraction[-1]) if update.clip_fraction.size else float("nan")
        head = (
            Span("clip fraction ", Role.MUTED),
            Span(percent(now), Role.STRONG),
            Span("  last ", Role.MUTED),
            Span(percent(last)),
        )
        room = width - sum(len(span.text) for span in head) - 2
        past = trend(
            self.session.history, "Loss/clip_fraction", min(max(room, 0), 24), self.charset
        )
        return fit((*head, Span("  "), Span(past.line, Role.TREND)), width)

    def _sides(self, below: float, above: float, low: float, high: float, width: int) -> Line:
        left = f"< {low:g}: {percent(below)}"
        right = f"> {high:g}: {percent(above)}"
        middle = f"ε {high - 1:.2g}"
        room = width - GUTTER - len(left) - len(right)
        text = (
            left + (middle.center(room) if room > len(middle) + 2 else " " * max(room, 1)) + right
        )
        return (Span(" " * GUTTER), Span(text, Role.WARNING if below + above > 0.3 else Role.MUTED))


def _label(text: str) -> Line:
    return (Span(text.ljust(GUTTER), Role.MUTED),)
