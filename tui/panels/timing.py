"""Where the time of an iteration goes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from trainer.stages import Phase, Stage
from trainer.telemetry import RunInfo, SessionView, Snapshot
from tui.draw.bars import bar
from tui.draw.numbers import known, percent, short_seconds
from tui.draw.spans import Charset, Line, Role, Span
from tui.draw.table import Column, layout, row
from tui.panels.base import Panel
from tui.panels.trend import trend


class TimingPanel(Panel):
    """The iteration as a tree: two phases and their stages, in seconds and percent."""

    TITLE: ClassVar[str] = "time of an iteration"

    HELP: ClassVar[str | None] = """\
## Timing

The last complete iteration, pauses left out: collecting (observe, act_step, store, T times each)
and learning (targets, sample, optimize, fresh), in seconds and as a share of the whole. Below it
the env steps in a second. The border tells the three scales of simulated time: a physics tick,
times the ticks under one action (decimation), is an env step; an episode has so many at most.

**Healthy:** steps/s stays level; act_step, where the physics runs, takes the most.

**If not:** optimize takes most: smaller networks, fewer epochs or larger mini-batches. All stages
slow down together: another program uses the machine.
"""

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the times of the last iteration, and on the run."""
        return (
            id(snapshot.info),
            snapshot.stage_seconds,
            snapshot.steps_per_second,
            len(session.history),
        )

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the tree; phases only where the room is short."""
        if self.snapshot.info is not None:
            self.caption(subtitle=time_scales(self.snapshot.info, width))
        seconds = dict(zip(Stage, self.snapshot.stage_seconds, strict=True))
        total = sum(seconds.values())
        if not total > 0:
            return [(Span("no iteration done yet", Role.MUTED),)]
        phases = {
            phase: sum(spent for stage, spent in seconds.items() if stage.phase is phase)
            for phase in Phase
        }
        columns = [
            Column("", 12, 0, right=False, grow=2),
            Column("", 7, 1),
            Column("", 4, 0),
            Column("", 6, 2, right=False, grow=60),
        ]
        widths = layout(columns, width)
        branch, corner = ("| ", "` ") if self.charset is Charset.ASCII else ("├ ", "└ ")
        lines = []
        if height >= 4:
            lines.append(self._row("iteration", total, total, Role.STRONG, columns, widths))
        for phase, spent in phases.items():
            lines.append(self._row(phase, spent, total, Role.STRONG, columns, widths))
            stages = [stage for stage in Stage if stage.phase is phase]
            if height >= 10:
                for stage in stages:
                    tree = corner if stage is stages[-1] else branch
                    name = tree + stage.label
                    lines.append(self._row(name, seconds[stage], total, Role.TEXT, columns, widths))
        return [*lines, self._rate(width)]

    def _row(
        self,
        name: str,
        spent: float,
        total: float,
        role: Role,
        columns: Sequence[Column],
        widths: Sequence[int],
    ) -> Line:
        share = spent / total
        filled = Role.PRIMARY if role is Role.TEXT else Role.SECONDARY
        return row(
            [
                (Span(name, role),),
                (Span(short_seconds(spent), role),),
                (Span(percent(share), role),),
                (Span(bar(share, widths[3], self.charset), filled),),
            ],
            columns,
            widths,
        )

    def _rate(self, width: int) -> Line:
        assert self.session is not None
        now = self.snapshot.steps_per_second
        head = f"{known(now, 6)} steps/s  "
        room = max(0, min(width - len(head), 40))
        past = trend(self.session.history, "Perf/total_fps", room, self.charset)
        return (Span(head, Role.MUTED), Span(past.line, Role.TREND))


def time_scales(info: RunInfo, width: int) -> str:
    """Return tick, env step and episode in simulated time; fewer words where there is less room."""
    tick, step = (
        f"{1e3 * seconds:.4g} ms"
        for seconds in (info.step_dt / (info.decimation or 1), info.step_dt)
    )
    ticks = f"{tick} × {info.decimation} = " if info.decimation else ""
    steps = f"{info.max_episode_length:,} steps"
    limit = f"{info.max_episode_length * info.step_dt:g} s"
    name = "tick " if ticks else ""
    full = f"{name}{ticks}env step {step} · episode {steps} = {limit}"
    if len(full) + 4 <= width:
        return full
    short = f"{name}{ticks}step {step} · {steps} = {limit}"
    return short if len(short) + 4 <= width else f"{ticks}{step} · {steps}"
