"""The rollout rectangle [T, N] while it fills."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trainer.telemetry import RolloutView, RunInfo, SessionView, Snapshot
from tui.draw.bars import bar
from tui.draw.heat import Palette, heat_map, ramp, whole_cells
from tui.draw.numbers import count, known, plural
from tui.draw.spans import Charset, Line, Role, Span, beside, cells, fit, labelled, whole
from tui.panels.base import Panel

Marks: TypeAlias = dict[str, NDArray[np.bool_]]
"""What stands for an end of episodes, each with the cells that it stands in, [T, bins]."""

GUTTER = 4
"""Cells left of the map, for the row's t and the cursor."""


class Quantity(NamedTuple):
    """What the map can show."""

    name: str
    """Of the field in the telemetry."""
    title: str
    palette: Palette = Palette.SEQUENTIAL


QUANTITIES = (
    Quantity("reward", "reward r"),
    Quantity("value", "value V"),
    Quantity("advantage", "advantage A", Palette.DIVERGING),
    Quantity("td_error", "TD error δ", Palette.DIVERGING),
    Quantity("ends", "episode ends, share of worlds"),
    Quantity("action_norm", "action norm |a|"),
    Quantity("log_prob", "log density log π(a)"),
)
"""In the order of the key that goes through them."""


class RolloutPanel(Panel):
    """One quantity of every stored step, time downward, worlds across."""

    MOVES: ClassVar[bool] = True
    HELP: ClassVar[str | None] = """\
## Rollout

The rectangle of experience: T steps downward, N worlds across, gathered under fixed weights.
Worlds are averaged to as many bins as there are columns. Dots are rows not stored yet, `>` is the
cursor. Episodes that ended are marked: `x` where one terminated, such as by a fall, `o` where its
time was over, `+` where one ended while nobody watched, so that its kind is not known.

`v` goes through what is shown, `V` goes back: the reward; the critic's value V; the advantage A,
which is known once a rollout is full, so that the last iteration's stands there while the next one
fills; the TD error δ = r + γ V(next) - V, from which the advantages add up; the share of worlds
whose episode ended; the length of the action as it was sampled; and its log density under the
policy. The line below the map says which colour is which value; where a value has a sign red is
below 0 and blue above.

**Healthy:** rewards get brighter from iteration to iteration, and `x` gets rare beside `o`; values
follow the rewards to come; advantages and TD errors are red and blue in equal parts, without bands.

**If not:** rows that are dark all across mean that all worlds do the same at the same time, often
because their episodes started together (`init_at_random_ep_len`). Many `x`: the robot falls, see
the terminations. Values of one colour: the critic explains nothing, see `expl. var`. TD errors of
one colour: the critic is wrong everywhere in the same way. Actions that grow longer and longer run
against their limits; a log density that rises for long is a policy that narrows, see the entropy.
"""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._quantity = QUANTITIES[0]

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the rollout, and on whether there can be one."""
        of_rollout = id(self._rollout(snapshot)), id(snapshot.info), self._quantity.name
        return *of_rollout, snapshot.state.is_over

    @property
    def quantity(self) -> str:
        """Name of what is shown."""
        return self._quantity.name

    def show_quantity(self, name: str) -> None:
        """Show another quantity, if there is one of that name."""
        self._quantity = next((one for one in QUANTITIES if one.name == name), self._quantity)
        self.redraw()

    def action_cycle(self, by: int = 1) -> None:
        """Show another quantity, one of those that there are."""
        at = QUANTITIES.index(self._quantity)
        others = [QUANTITIES[(at + by * step) % len(QUANTITIES)] for step in range(len(QUANTITIES))]
        known = [one for one in others[1:] if self._is_known(one)]
        self._quantity = known[0] if known else self._quantity
        self.redraw()

    def _is_known(self, quantity: Quantity) -> bool:
        view = self._rollout(self.snapshot, quantity)
        return view is None or quantity.name == "ends" or getattr(view, quantity.name) is not None

    def _rollout(self, snapshot: Snapshot, quantity: Quantity | None = None) -> RolloutView | None:
        """Return the present rollout, or for advantages the last one that has them."""
        view = snapshot.rollout
        if (quantity or self._quantity).name != "advantage":
            return view
        last = snapshot.boundary.rollout if snapshot.boundary is not None else None
        return last if last is not None and last.advantage is not None else view

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the map, and below it the fill, the legend and how many episodes ended."""
        view, info = self._rollout(self.snapshot), self.snapshot.info
        self.caption(title=f"rollout · {self._quantity.title}")
        if view is None or info is None:
            over = self.snapshot.state.is_over
            why = "no rollout was kept" if over else "no rollout yet"
            return [(Span(why, Role.MUTED),)]
        self.caption(
            subtitle=f"T {info.num_steps_per_env} × N {count(info.num_envs)}"
            f" = B {count(info.batch_size)} · v: next"
        )
        numbers = _numbers(view, self._quantity)
        marks = _ends(view)
        foot = [self._fill(view, info, width), *self._legend(view, numbers, marks, width)]
        foot = foot[: 3 if height >= 9 else 2]
        map_height = height - len(foot)
        if map_height < 2:
            return foot[:height]
        return [*self._map(view, numbers, marks, width, map_height), *foot]

    @property
    def _shades(self) -> bool:
        return self.colourless or self.charset is Charset.ASCII

    def _map(
        self, view: RolloutView, numbers: NDArray[np.float32], marks: Marks, width: int, height: int
    ) -> list[Line]:
        steps = numbers.shape[0]
        rows = whole_cells(steps, height * (1 if self._shades else 2))
        lines = -(-rows // (1 if self._shades else 2))
        per_line = steps / max(lines, 1)
        room = max(width - GUTTER, 0)
        picture = heat_map(
            numbers,
            room,
            lines,
            marks=marks,
            palette=self._quantity.palette,
            shades=self._shades,
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

    def _legend(
        self, view: RolloutView, numbers: NDArray[np.float32], marks: Marks, width: int
    ) -> list[Line]:
        """Say which colour is which value, and what the marks mean."""
        finite = numbers[np.isfinite(numbers)]
        low, mean, high = (
            (float(finite.min()), float(finite.mean()), float(finite.max()))
            if finite.size
            else (math.nan,) * 3
        )
        if self._quantity.palette is Palette.DIVERGING:
            high = max(abs(low), abs(high))
            low = -high
        colours: Line = (
            Span(known(low, 7, sign=True)),
            Span(" "),
            *ramp(self._quantity.palette, shades=self._shades, charset=self.charset),
            Span(" "),
            Span(known(high, 7, sign=True)),
        )
        values = [colours, labelled("mean", known(mean, 7, sign=True))]
        worlds = _worlds_of_bins(view)
        ends = [
            labelled(name, f"{_episodes(share[: view.filled], worlds):>4}")
            for name, share in (("x terminated", view.terminated), ("o time-out", view.time_out))
            if share is not None
        ]
        if (untold := int(marks["+"].sum())) or not ends:
            ends.append(labelled("+ ended in", plural(untold, "bin")))
        ends.append(labelled("a bin is", plural(int(worlds.max()), "world")))
        together = [*values, *ends]
        if sum(map(cells, together)) + 2 * len(together) - 2 <= width:
            return [whole(together, width)]
        return [whole(row, width) for row in (values, ends)]


def _numbers(view: RolloutView, quantity: Quantity) -> NDArray[np.float32]:
    """Return what the map shows, [T, bins]; NaN where it is not known yet."""
    if quantity.name == "ends":
        found = None
        if view.terminated is not None and view.time_out is not None:
            found = view.terminated + view.time_out
            found = np.where(np.isnan(found), view.done, found)
    else:
        found = getattr(view, quantity.name)
    numbers = np.full(view.reward.shape, np.nan, np.float32) if found is None else found.copy()
    numbers[view.filled :] = np.nan
    return numbers


def _ends(view: RolloutView) -> Marks:
    """Return the marks of the map."""
    done = view.done.copy()
    done[view.filled :] = False
    if view.terminated is None or view.time_out is None:
        return {"x": np.zeros_like(done), "o": np.zeros_like(done), "+": done}
    fell, over = np.nan_to_num(view.terminated) > 0, np.nan_to_num(view.time_out) > 0
    return {"x": done & fell, "o": done & over, "+": done & ~fell & ~over}


def _episodes(share: NDArray[np.float32], worlds: NDArray[np.int64]) -> int:
    """Return how many episodes a share, [T, bins], of the worlds of every bin stands for."""
    return round(float(np.nansum(share * worlds)))


def _worlds_of_bins(view: RolloutView) -> NDArray[np.int64]:
    """How many worlds share each bin, [bins]."""
    bins = view.reward.shape[1]
    return np.bincount(np.arange(view.num_envs) * bins // view.num_envs, minlength=bins)
