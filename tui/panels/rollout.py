"""The rollout rectangle [T, N] while it fills."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainer.telemetry import RolloutView, RunInfo, SessionView, Snapshot
from tui.draw.bars import bar
from tui.draw.heat import Palette, heat_map, whole_cells
from tui.draw.numbers import count, known, plural
from tui.draw.spans import Charset, Line, Role, Span, beside, fit, labelled, whole
from tui.panels.base import Panel

GUTTER = 4
"""Cells left of the map, for the row's t and the cursor."""
ONE_LINE = 72
"""Cells that hold all figures on one line."""


class Quantity(NamedTuple):
    """What the map can show."""

    name: str
    palette: Palette = Palette.SEQUENTIAL


QUANTITIES = (
    Quantity("reward"),
    Quantity("value"),
    Quantity("advantage", Palette.DIVERGING),
    Quantity("done"),
)
"""In the order of the key that goes through them."""


class RolloutPanel(Panel):
    """One quantity of every stored step, time downward, worlds across."""

    HELP: ClassVar[str | None] = """\
## Rollout

The rectangle of experience: T steps downward, N worlds across, gathered under fixed weights.
Worlds are averaged to as many bins as there are columns. `v` goes through what is shown: the
reward, the critic's value, the advantage, and where episodes ended. Dark is the smallest number in
view, bright the largest; advantages are red below 0 and blue above. An `x` marks a bin where an
episode ended, dots are rows not stored yet, `>` is the cursor. Advantages are known once a rollout
is full: those of the last iteration stand there while the next one fills.

**Healthy:** rewards get brighter from iteration to iteration, and the `x` get fewer until they are
mostly time-outs; values follow the rewards to come; advantages are red and blue in equal parts,
without bands.

**If not:** rows that are dark all across mean that all worlds do the same at the same time, often
because their episodes started together (`init_at_random_ep_len`). Many `x`: the robot falls, see
the terminations. Values of one colour: the critic explains nothing, see `expl. var`.
"""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._quantity = QUANTITIES[0]

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the rollout alone."""
        return id(self._rollout(snapshot)), id(snapshot.info), self._quantity.name

    def action_cycle(self) -> None:
        """Show another quantity."""
        at = QUANTITIES.index(self._quantity)
        self._quantity = QUANTITIES[(at + 1) % len(QUANTITIES)]
        self.redraw()

    def _rollout(self, snapshot: Snapshot) -> RolloutView | None:
        """Return the present rollout, or for advantages the last one that has them."""
        view = snapshot.rollout
        if self._quantity.name != "advantage":
            return view
        last = snapshot.boundary.rollout if snapshot.boundary is not None else None
        return last if last is not None and last.advantage is not None else view

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the map, and below it the fill and the figures."""
        view, info = self._rollout(self.snapshot), self.snapshot.info
        self.caption(title=f"rollout · {self._quantity.name}")
        if view is None or info is None:
            return [(Span("no rollout yet", Role.MUTED),)]
        self.caption(
            subtitle=f"T {info.num_steps_per_env} × N {count(info.num_envs)}"
            f" = B {count(info.batch_size)} · v: next"
        )
        numbers = _numbers(view, self._quantity)
        foot = [self._fill(view, info, width), *self._figures(view, numbers, width)]
        foot = foot[: 3 if height >= 9 else 2]
        map_height = height - len(foot)
        if map_height < 2:
            return foot[:height]
        return [*self._map(view, numbers, width, map_height), *foot]

    def _map(
        self, view: RolloutView, numbers: NDArray[np.float32], width: int, height: int
    ) -> list[Line]:
        steps = numbers.shape[0]
        shades = self.colourless or self.charset is Charset.ASCII
        rows = whole_cells(steps, height * (1 if shades else 2))
        lines = -(-rows // (1 if shades else 2))
        per_line = steps / max(lines, 1)
        room = max(width - GUTTER, 0)
        picture = heat_map(
            numbers,
            room,
            lines,
            marks=view.done & (np.arange(steps) < view.filled)[:, None],
            palette=self._quantity.palette,
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

    def _figures(self, view: RolloutView, numbers: NDArray[np.float32], width: int) -> list[Line]:
        stored = numbers[: view.filled]
        finite = stored[np.isfinite(stored)]
        low, mean, high = (
            (float(finite.min()), float(finite.mean()), float(finite.max()))
            if finite.size
            else (math.nan,) * 3
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


def _numbers(view: RolloutView, quantity: Quantity) -> NDArray[np.float32]:
    """Return what the map shows, [T, bins]; NaN where it is not known yet."""
    by_name = {"reward": view.reward, "value": view.value, "advantage": view.advantage}
    found = by_name.get(quantity.name, view.done.astype(np.float32))
    numbers = np.full(view.reward.shape, np.nan, np.float32) if found is None else found.copy()
    numbers[view.filled :] = np.nan
    return numbers
