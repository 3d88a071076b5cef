"""PPO's vital signs, each with its healthy range."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from trainer.telemetry import History, SessionView, Snapshot
from tui.draw.numbers import number
from tui.draw.spans import Line, Role, Span
from tui.draw.table import Column, layout, row
from tui.panels.learning_rate import CEILING, FLOOR
from tui.panels.tag_table import TagRow, TagTable
from tui.panels.trend import trend

MARKS = (("ok", Role.SUCCESS), ("! ", Role.WARNING), ("!!", Role.ERROR))
"""Text and role of a sign that is healthy, off its range, and far off."""


class Sign(NamedTuple):
    """One line of the panel."""

    name: str
    value: str
    severity: int
    """Index into `MARKS`."""
    healthy: str
    tag: str = ""
    """The metric whose trend is shown."""


def above(value: float, warn: float, alarm: float) -> int:
    """Return how bad a value is that should stay below `warn`; one that is not finite is worst."""
    if not math.isfinite(value):
        return 2
    return int(value > warn) + int(value > alarm)


def below(value: float, warn: float, alarm: float) -> int:
    """Return how bad a value is that should stay above `warn`; one that is not finite is worst."""
    return above(-value, -warn, -alarm)


def signs(snapshot: Snapshot, history: History) -> list[Sign]:
    """Judge the metrics of the last iteration; a metric that was never seen is left out."""
    info, metrics, found = snapshot.info, snapshot.metrics, []

    def add(name: str, tag: str, severity: int, healthy: str) -> None:
        found.append(Sign(name, number(metrics[tag]), severity, healthy, tag))

    desired = info.desired_kl if info is not None else None
    aim = desired or 0.01
    cap = info.max_grad_norm if info is not None else 1.0
    if "Loss/kl_mean" in metrics:
        bad = above(metrics["Loss/kl_mean"], 2 * aim, 5 * aim)
        add("KL mean", "Loss/kl_mean", bad, f"up to {2 * aim:g}")
    if "Loss/kl_max" in metrics:
        bad = above(metrics["Loss/kl_max"], 4 * aim, 10 * aim)
        add("KL max", "Loss/kl_max", bad, f"up to {4 * aim:g}")
    if (rate := metrics.get("Loss/learning_rate")) is not None:
        bad = above(rate, math.inf, math.inf)
        if desired is not None and not bad:
            bad = int(not FLOOR * 1.01 < rate < CEILING / 1.01)
        add("rate", "Loss/learning_rate", bad, "off 1e-5 and 1e-2")
    if "Loss/clip_fraction" in metrics:
        bad = above(metrics["Loss/clip_fraction"], 0.3, 0.5)
        add("clip frac", "Loss/clip_fraction", bad, "up to 0.3")
    if "Loss/explained_variance" in metrics:
        bad = below(metrics["Loss/explained_variance"], 0.5, 0.0)
        add("expl. var", "Loss/explained_variance", bad, "0.5 to 1, later on")
    if "Loss/entropy" in metrics:
        bad = above(abs(metrics["Loss/entropy"]), math.inf, math.inf)
        add("entropy", "Loss/entropy", bad, "falls slowly")
    found += _action_std(snapshot)
    for name in ("actor", "critic"):
        tag = f"Loss/{name}_grad_norm"
        if tag in metrics:
            add(
                f"|g| {name}",
                tag,
                above(metrics[tag], 5 * cap, 50 * cap),
                f"around {cap:g}, its cap",
            )
    if (loss := metrics.get("Loss/value")) is not None:
        past = history.curve("Loss/value").mean[-50:]
        past = past[np.isfinite(past)]
        usual = float(np.median(past)) if past.size else loss
        add("value loss", "Loss/value", above(loss, 10 * usual, 100 * usual), "level or falling")
    if "Loss/surrogate" in metrics:
        bad = above(abs(metrics["Loss/surrogate"]), 0.2, 1.0)
        add("surrogate", "Loss/surrogate", bad, "slightly below 0")
    broken = [tag for tag, value in metrics.items() if not math.isfinite(value)]
    found.append(
        Sign("non-finite", f"{len(broken):>7}", 2 if broken else 0, ", ".join(broken) or "none")
    )
    return found


def _action_std(snapshot: Snapshot) -> list[Sign]:
    """Judge the smallest and largest standard deviation over the actions."""
    if snapshot.update is not None and snapshot.update.action_std.size:
        std = snapshot.update.action_std
        low, high = float(std.min()), float(std.max())
    elif "Policy/min_std" in snapshot.metrics:
        low = snapshot.metrics["Policy/min_std"]
        high = snapshot.metrics.get("Policy/mean_std", low)
    else:
        return []
    return [
        Sign("σ min", number(low), below(low, 0.05, 0.01), "above 0.05", "Policy/min_std"),
        Sign("σ max", number(high), above(high, 2.0, 5.0), "up to 2", "Policy/mean_std"),
    ]


class HealthPanel(TagTable):
    """A line a sign: mark, value, trend and healthy range."""

    TITLE: ClassVar[str] = "health"

    HELP: ClassVar[str | None] = """\
## Health

`ok` within the healthy range, `!` off it, `!!` far off or not finite. Where the room is short,
the signs that are off come first. `enter` opens a sign's curve. What to do about one that is off:

- **KL mean, max**: up to 2 and 4 times the desired KL. Wait for the rate to fall; if it does not
  help, fewer epochs.
- **rate**, the learning rate: off its floor 1e-5 (updates too large) and its ceiling 1e-2 (the
  policy hardly changes).
- **clip frac**, the share of ratios beyond 1 ± ε: 0.05 to 0.3. Above: lower the rate or the epochs.
- **expl. var**, how much of the returns' variance the critic explains: above 0.5 once learning
  goes; below 0 in the first iterations is normal. Later on: a larger critic, or smaller rewards.
- **entropy** of the policy: falls slowly. Collapse: raise `entropy_coef`; growth: lower it.
- **σ min, max**, the actions' standard deviation: 0.05 to 2. Too small: the policy explores no
  more; raise `entropy_coef` or `std_range`. Too large: lower `entropy_coef`.
- **|g| actor, critic**, gradient norms before clipping: around the cap or below. Far above: scale
  the rewards down, look for outliers in the observations.
- **value loss**: level or falling. A jump: rewards or observations jumped.
- **surrogate** loss: slightly below 0. Large: the advantages are not normalised.
- **non-finite**: none. Otherwise pause and open the tensors: those with NaN stand first.
"""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._off = 0
        """Signs that are off, filtered out or not."""

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the metrics of the last iteration."""
        return id(snapshot.metrics), id(snapshot.update), id(snapshot.info), len(session.history)

    @property
    def nothing(self) -> str:
        """What stands there before the first update."""
        return "no update yet"

    def note(self) -> str:
        """Say how many signs are off, whether they can be seen or not."""
        if not self.snapshot.metrics:
            return ""
        more = super().note()
        return (f"{self._off} off" if self._off else "all ok") + (f" · {more}" if more else "")

    def tag_rows(self, width: int) -> Sequence[TagRow]:
        """Return a row for each sign; those that are off first where not all fit."""
        assert self.session is not None
        if not self.snapshot.metrics:
            return []
        found = signs(self.snapshot, self.session.history)
        self._off = sum(sign.severity > 0 for sign in found)
        if len(found) > self.content_size.height:
            found.sort(key=lambda sign: sign.severity == 0)
        columns = [
            Column("", 13, 0, right=False),
            Column("", 7, 1),
            Column("", 5, 2, right=False, grow=19),
            Column("", 18, 3, right=False, grow=12),
        ]
        widths = layout(columns, width)
        return [TagRow(sign.tag, self._row(sign, columns, widths)) for sign in found]

    def _row(self, sign: Sign, columns: Sequence[Column], widths: Sequence[int]) -> Line:
        assert self.session is not None
        mark, role = MARKS[sign.severity]
        line = ""
        if sign.tag and widths[2]:
            line = trend(self.session.history, sign.tag, widths[2], self.charset).line
        spans = [
            (Span(mark, role), Span(f" {sign.name}")),
            (Span(sign.value, role if sign.severity else Role.STRONG),),
            (Span(line, Role.TREND),),
            (Span(sign.healthy, role if sign.severity else Role.MUTED),),
        ]
        return row(spans, columns, widths)
