"""The last finished episodes one by one: how their returns and their lengths are spread."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from trainer.telemetry import EpisodesView, Floats, SessionView, Snapshot
from tui.draw.axis import round_range
from tui.draw.histogram import histogram
from tui.draw.numbers import number, plural
from tui.draw.spans import Line, Role, Span, labelled, whole
from tui.panels.base import Panel

MOST_BARS = 40
"""Of a hundred episodes more would be a comb."""


class EpisodeHistogramPanel(Panel):
    """How one number of each of the last episodes is spread."""

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the episodes alone."""
        return id(_episodes(snapshot)), id(snapshot.info), snapshot.state.is_over

    def values(self, episodes: EpisodesView) -> Floats:
        """Return the number of each episode, [K]."""
        raise NotImplementedError

    def limits(self, values: Floats) -> tuple[float, float]:
        """Return both ends of the axis for finite values, of which there is at least one."""
        raise NotImplementedError

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return figures, and the histogram below them."""
        episodes = _episodes(self.snapshot)
        if episodes is None:
            over = self.snapshot.state.is_over
            why = "single episodes are not recorded" if over else "seen when an iteration has ended"
            return [(Span(why, Role.MUTED),)]
        values = self.values(episodes)
        finite = values[np.isfinite(values)].astype(np.float64)
        if not finite.size:
            return [(Span("no episode has ended yet", Role.MUTED),)]
        low, high = self.limits(finite)
        bars = max(1, min(width, MOST_BARS))
        counts, edges = np.histogram(np.clip(finite, low, high), bars, (low, high))
        figures = _figures(finite, values.size - finite.size, int(counts.max()), width)
        return [figures, *histogram(edges, counts, width, height - 1, charset=self.charset)]


class ReturnHistogramPanel(EpisodeHistogramPanel):
    """The returns of the last episodes."""

    TITLE: ClassVar[str] = "returns of the last episodes"
    HELP: ClassVar[str | None] = """\
## Returns

The sum of the rewards of each of the last hundred finished episodes; the curve of the reward shows
their mean alone. With several processes they are those of the first one.

**Healthy:** one hump that moves to the right and gets narrower.

**If not:** two humps are two kinds of episodes, such as robots that fall and robots that walk, or
easy and hard ground: the mean lies where no episode is. A long tail to the left are rare falls.
"""

    def values(self, episodes: EpisodesView) -> Floats:
        """Return the return of each episode, [K]."""
        return episodes.returns

    def limits(self, values: Floats) -> tuple[float, float]:
        """Return round numbers around all returns, so that the axis moves seldom."""
        return round_range(float(values.min()), float(values.max()))


class LengthHistogramPanel(EpisodeHistogramPanel):
    """The lengths of the last episodes."""

    TITLE: ClassVar[str] = "lengths of the last episodes"
    HELP: ClassVar[str | None] = """\
## Lengths

The env steps of each of the last hundred finished episodes, from 0 to the longest that there can
be. With several processes they are those of the first one.

**Healthy** for a robot that should stay up: all of them at the right end, where time-outs are.

**If not:** a hump near 0 are robots that fall as soon as they begin: look at how episodes begin.
Among the last to finish short episodes are more frequent than among all that run.
"""

    def values(self, episodes: EpisodesView) -> Floats:
        """Return the steps of each episode, [K]."""
        return episodes.lengths

    def limits(self, values: Floats) -> tuple[float, float]:
        """Return 0 and the longest that there can be."""
        info = self.snapshot.info
        longest = info.max_episode_length if info is not None else 1
        return 0.0, float(max(longest, values.max(), 1))


def _episodes(snapshot: Snapshot) -> EpisodesView | None:
    """Return those of the last iteration that has ended."""
    if snapshot.episodes is not None or snapshot.boundary is None:
        return snapshot.episodes
    return snapshot.boundary.episodes


def _figures(values: np.ndarray, odd: int, tallest: int, width: int) -> Line:
    parts: list[Line] = [(Span(plural(values.size, "episode"), Role.STRONG),)]
    if odd:
        parts.append((Span(f"and {odd} not finite", Role.ERROR),))
    for name, value in (
        ("median", np.median(values)),
        ("mean", values.mean()),
        ("min", values.min()),
        ("max", values.max()),
    ):
        parts.append(labelled(name, number(float(value), 6)))
    parts.append(labelled("tallest bar", f"{tallest:>3}"))
    return whole(parts, width)
