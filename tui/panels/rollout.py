"""The rollout rectangle [T, N] while it fills."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from trainer.telemetry import RolloutView, RunInfo, SessionView, Snapshot
from tui.draw.bars import bar
from tui.draw.heat import heat_map, whole_cells
from tui.draw.numbers import count, known, plural
from tui.draw.spans import Charset, Line, Role, Span, beside, fit, labelled, whole
from tui.panels.base import Panel

GUTTER = 4
"""Cells left of the map, for the row's t and the cursor."""
ONE_LINE = 72
"""Cells that hold all figures on one line."""


class RolloutPanel(Panel):
    """Reward of every stored step, time downward, worlds across."""

    TITLE: ClassVar[str] = "rollout · reward"

    HELP: ClassVar[str | None] = """\
## Rollout

The rectangle of experience: T steps downward, N worlds across, gathered under fixed weights.
Worlds are averaged to as many bins as there are columns. Dark is the smallest reward in view,
bright the largest; an `x` marks a bin where an episode ended, dots are rows not stored yet, `>`
is the cursor.

**Healthy:** it gets brighter from iteration to iteration, and the `x` get fewer until they are
mostly time-outs. Rows that are dark all across mean that all worlds do the same at the same time,
often because their episodes started together (`init_at_random_ep_len`). Many `x`: the robot
falls, see the terminations.
"""

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the rollout alone."""
        return id(snapshot.rollout), id(snapshot.info)

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the map, and below it the fill and the figures."""
        view, info = self.snapshot.rollout, self.snapshot.info
        if view is None or info is None:
            return [(Span("no rollout yet", Role.MUTED),)]
        self.caption(
            subtitle=f"T {info.num_steps_per_env} × N {count(info.num_envs)}"
            f" = B {count(info.batch_size)}"
        )
        foot = [self._fill(view, info, width), *self._figures(view, width)]
        foot = foot[: 3 if height >= 9 else 2]
        map_height = height - len(foot)
        if map_height < 2:
            return foot[:height]
        return [*self._map(view, width, map_height), *foot]

    def _map(self, view: RolloutView, width: int, height: int) -> list[Line]:
        steps = view.reward.shape[0]
        shades = self.colourless or self.charset is Charset.ASCII
        reward = view.reward.copy()
        reward[view.filled :] = np.nan
        rows = whole_cells(steps, height * (1 if shades else 2))
        lines = -(-rows // (1 if shades else 2))
        per_line = steps / max(lines, 1)
        room = max(width - GUTTER, 0)
        picture = heat_map(
            reward,
            room,
            lines,
            marks=view.done & (np.arange(steps) < view.filled)[:, None],
            shades=shades,
            charset=self.charset,
        )
        cursor = min(int(view.filled / per_line), lines - 1) if view.filled < steps else -1
        labels: list[Line] = []
        for line in range(lines):
            if line == cursor:
                labels.append((Span(f"{view.filled:>2}> "[-GUTTER:], Role.STRONG),))
            else:
                at = int(line * per_line)
                is_said = cursor >= 0 and at == view.filled  # by the cursor, a line above
                text = f"{at:>2}" if line % 2 == 0 and not is_said else ""
                labels.append((Span(text.ljust(GUTTER), Role.MUTED),))
        return beside([fit(label, min(GUTTER, width)) for label in labels], picture)

    def _fill(self, view: RolloutView, info: RunInfo, width: int) -> Line:
        steps = info.num_steps_per_env
        text = f"t {view.filled:>{len(str(steps))}}/{steps} "
        return fit(
            (
                Span(text),
                Span(bar(view.filled / steps, width - len(text), self.charset), Role.PRIMARY),
            ),
            width,
        )

    def _figures(self, view: RolloutView, width: int) -> list[Line]:
        stored = view.reward[: view.filled]
        finite = stored[np.isfinite(stored)]
        low, mean, high = (
            (finite.min(), finite.mean(), finite.max()) if finite.size else (float("nan"),) * 3
        )
        rows = [
            [
                labelled("min", known(low, 7, sign=True)),
                labelled("mean", known(mean, 7, sign=True)),
                labelled("max", known(high, 7, sign=True)),
            ],
            [
                labelled("x done in", f"{int(view.done[: view.filled].sum()):>3} bins"),
                labelled("a bin is", plural(-(-view.num_envs // view.reward.shape[1]), "world")),
            ],
        ]
        if width >= ONE_LINE:
            rows = [[*rows[0], *rows[1]]]
        return [whole(row, width) for row in rows]
