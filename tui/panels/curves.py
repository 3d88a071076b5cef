"""One metric over the run."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np
from textual.binding import Binding, BindingType

from trainer.telemetry import SessionView, Snapshot
from tui.draw.chart import line_chart
from tui.draw.levels import is_level_tag
from tui.draw.numbers import number
from tui.draw.spans import Role, Span, clean
from tui.panels.base import Panel

TITLES = {
    "Train/mean_reward": "reward · mean of the last 100 episodes",
    "Train/mean_episode_length": "episode length · steps, mean of the last 100 episodes",
}


class CurvePanel(Panel, can_focus=True):
    """A curve of any metric; `tag` chooses it, keys go through all of them."""

    HELP: ClassVar[str | None] = """\
## Curve

One metric against the iteration, over the whole run. Where several iterations share a column, all
from the smallest to the largest value is drawn. An `x` on the lower axis marks iterations without
a value or with one that is not finite. `m` and `M` go through all metrics, `y` switches to a log
axis.

**Healthy:** the reward rises and levels off; the episode length rises to its limit for a robot
that should stay up.

**If not:** a reward that falls after it rose: look at KL, clip fraction and explained variance at
that iteration. A flat reward from the start: look at which reward terms move.
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "cycle(1)", "next metric"),
        Binding("M", "cycle(-1)", "previous metric", show=False),
        Binding("y", "toggle_log", "log axis"),
    ]

    DEFAULT_TAG: ClassVar[str] = "Train/mean_reward"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._tag = self.DEFAULT_TAG
        self._log = False

    @property
    def tag(self) -> str:
        """The metric shown."""
        return self._tag

    @tag.setter
    def tag(self, tag: str) -> None:
        self._tag = tag
        self.redraw()

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the length of the history."""
        return len(session.history), snapshot.metrics.get(self._tag)

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the chart; the newest value stands in the border."""
        assert self.session is not None
        curve = self.session.history.curve(self._tag)
        now = self.snapshot.metrics.get(self._tag)
        title = TITLES.get(self._tag, clean(self._tag))
        self.caption(
            title=title + (" · log" if self._log else ""),
            subtitle=number(now, 7).strip() if now is not None else "",
        )
        if curve.iteration.size == 0:
            return [(Span("no iteration done yet", Role.MUTED),)]
        first, last = float(curve.iteration[0]), float(curve.iteration[-1])
        # Iterations before the first value are no gap: the metric was not there yet.
        known = np.flatnonzero(np.isfinite(curve.mean))
        start = known[0] if known.size else 0
        return line_chart(
            curve.iteration[start:],
            curve.mean[start:],
            width,
            height,
            low=curve.low[start:],
            high=curve.high[start:],
            x_range=(first, max(last, first + 1)),
            log=self._log,
            x_label="iteration",
            charset=self.charset,
        )

    def action_cycle(self, steps: int) -> None:
        """Show the next or an earlier metric."""
        tags = self.session.history.tags if self.session is not None else ()
        tags = tuple(tag for tag in tags if not is_level_tag(tag))
        if tags:
            at = tags.index(self._tag) if self._tag in tags else -1
            self.tag = tags[(at + steps) % len(tags)]

    def action_toggle_log(self) -> None:
        """Switch between a linear and a logarithmic axis."""
        self._log = not self._log
        self.redraw()


class EpisodeLengthPanel(CurvePanel):
    """The curve of the mean episode length."""

    DEFAULT_TAG: ClassVar[str] = "Train/mean_episode_length"
