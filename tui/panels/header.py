"""The first line of the screen: which run this is, how far it is, how fast it goes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import PurePath
from typing import ClassVar, NamedTuple

from trainer.telemetry import RunState, SessionView, Snapshot
from tui.draw.numbers import duration, known, whole_number
from tui.draw.spans import Role, Span, cells, clean, labelled
from tui.panels.base import Panel

STATE_ROLES = {
    RunState.STARTING: Role.WARNING,
    RunState.RUNNING: Role.SUCCESS,
    RunState.PAUSED: Role.CURRENT,
    RunState.STOPPING: Role.WARNING,
    RunState.FINISHED: Role.SUCCESS,
    RunState.FAILED: Role.ERROR,
    RunState.KILLED: Role.ERROR,
}


class _Field(NamedTuple):
    rank: int
    """Fields of higher rank are left out first."""
    spans: tuple[Span, ...]


class Header(Panel):
    """A line of facts, as many as there is room for."""

    MOVES: ClassVar[bool] = True
    HELP: ClassVar[str | None] = """\
## Run

Preset, name, seed and device of the run; iterations done of all; the state; env steps of all
worlds in a second and in the whole run; time of training (pauses left out) and the time still to
go.

**Healthy:** steps/s stays level. If it falls, look at the timing panel: other programs may use
the processor.
"""

    DEFAULT_CSS = """
    Header, Header.-ascii { height: 1; border: none; }
    """

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the counters and the state."""
        return (
            snapshot.state,
            snapshot.position.iteration,
            snapshot.completed_iterations,
            snapshot.env_steps,
            round(snapshot.elapsed),
            snapshot.eta,
            snapshot.steps_per_second,
            id(snapshot.info),
            snapshot.control.dwell,
        )

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the line of facts."""
        fields = self._fields()
        for rank in range(len(fields), -1, -1):
            kept = [field for field in fields if field.rank <= rank]
            used = sum(cells(field.spans) for field in kept)
            gaps = len(kept) - 1
            if used + 2 * gaps <= width or rank == 0:
                break
        gap, rest = divmod(max(width - used, 0), gaps) if gaps > 0 else (0, 0)
        gap, rest = (4, 0) if gap > 4 else (gap, rest)
        line: list[Span] = []
        for place, field in enumerate(kept):
            if place:
                line.append(Span(" " * (gap + (place <= rest))))
            line.extend(field.spans)
        return [line]

    def _fields(self) -> list[_Field]:
        snapshot, info = self.snapshot, self.snapshot.info
        state = Span(f" {snapshot.state.upper():^8} ", STATE_ROLES[snapshot.state])
        if info is None:
            return [_Field(1, (Span("ppo-tui", Role.PRIMARY),)), _Field(0, (state,))]
        digits = len(str(info.num_iterations))
        at = f"{snapshot.completed_iterations:>{digits}}/{info.num_iterations}"
        name = clean(PurePath(info.run_dir).name)
        dwell = snapshot.control.dwell
        slow = [_Field(1, labelled("slow", f"{1000 * dwell:.0f} ms"))] if dwell else []
        eta = [] if snapshot.state.is_over else [_Field(3, labelled("ETA", duration(snapshot.eta)))]
        return [
            _Field(9, (Span("ppo-tui", Role.PRIMARY),)),
            _Field(2, (Span(clean(info.preset), Role.STRONG),)),
            _Field(8, (Span(name, Role.MUTED),)),
            _Field(6, labelled("seed", str(info.seed))),
            _Field(5, (Span(clean(info.device)),)),
            _Field(1, labelled("it", at)),
            _Field(0, (state,)),
            *slow,
            _Field(4, (Span(known(snapshot.steps_per_second, 6)), Span(" steps/s", Role.MUTED))),
            _Field(7, (Span(whole_number(snapshot.env_steps, 6)), Span(" steps", Role.MUTED))),
            _Field(6, labelled("elapsed", duration(snapshot.elapsed))),
            *eta,
        ]
