"""The seven stages in a row: where the loop is and where its time goes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from trainer.stages import Stage
from trainer.telemetry import RunInfo, RunState, SessionView, Snapshot
from trainer.trace import worst
from tui.draw.bars import bar
from tui.draw.numbers import percent, short_seconds
from tui.draw.spans import Charset, Line, Role, Span, crop, pad
from tui.draw.stage_words import tick
from tui.panels.base import Panel


def next_stage(snapshot: Snapshot) -> Stage:
    """Return the stage that follows the present one."""
    at, info = snapshot.position, snapshot.info
    match at.stage:
        case Stage.STORE if info is not None and at.step < info.num_steps_per_env:
            return Stage.OBSERVE
        case Stage.OPTIMIZE if info is not None and not _is_last_mini_batch(snapshot, info):
            return Stage.OPTIMIZE
        case Stage.FRESH:
            return Stage.OBSERVE
        case stage:
            return Stage(stage + 1)


def _is_last_mini_batch(snapshot: Snapshot, info: RunInfo) -> bool:
    at = snapshot.position
    last = (info.num_learning_epochs - 1, info.num_mini_batches - 1)
    return (at.epoch, at.mini_batch) == last


def _widths(width: int) -> tuple[list[int], list[str]]:
    """Return the cells and the label of each stage for a strip of `width` cells."""
    for labels in (
        [f"{stage.value} {stage.label}" for stage in Stage],
        [stage.label for stage in Stage],
        [str(stage.value) for stage in Stage],
    ):
        least = [len(label) + 2 for label in labels]
        if sum(least) <= width:
            break
    spare = width - sum(least)
    if spare < 0:
        return [max(0, (width + 6 - i) // len(Stage)) for i in range(len(Stage))], labels
    share, rest = divmod(spare, len(Stage))
    return [n + share + (i < rest) for i, n in enumerate(least)], labels


class StageStrip(Panel):
    """The stages, their time and what goes on, a line each; with room a line of bars as well."""

    MOVES: ClassVar[bool] = True
    TITLE: ClassVar[str] = "stages"

    HELP: ClassVar[str | None] = """\
## Stages

One PPO iteration is seven stages. The present one stands in `> <`. Below each: its share of the
last iteration's time and the seconds it took, pauses left out.

| stage | what happens |
| --- | --- |
| 1 observe | the worlds' state becomes observations [N, O] |
| 2 act_step | the policy samples actions [N, A]; physics runs; rewards and dones come back |
| 3 store | the step becomes row t of the rollout [T, N]; t grows by one |
| 4 targets | V of the last observation, then advantages and returns backward in time |
| 5 sample | the rollout is flattened to B = N T and shuffled once into mini-batches |
| 6 optimize | epochs over the mini-batches, one optimizer step each |
| 7 fresh | t goes back to 0; the weights and the running episodes stay |

**Healthy:** act_step takes most of the time. If optimize does, use fewer epochs or smaller
networks; if observe or targets do, look at their terms.

A tick behind a stage's name says that its invariants held when they were last checked, a cross that
one is broken: `t` says which.

A pause takes effect at the next boundary between two stages; the line below says which. `m`
chooses stages behind which the loop pauses every time that it runs past them; `‖` marks them.
"""

    DEFAULT_CSS = """
    StageStrip, StageStrip.-ascii { height: 3; border: none; }
    """

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the position, the state and the times."""
        return (
            snapshot.position,
            snapshot.state,
            snapshot.pending,
            snapshot.progress,
            id(snapshot.stage_seconds),
            snapshot.invariants,
            snapshot.control.mask,
        )

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return names, shares, bars and status, as many as there is room for."""
        widths, labels = _widths(width)
        lines = [self._names(widths, labels), self._times(widths)]
        if height >= 4:
            lines.append(self._bars(widths))
        lines.append(self._status(width))
        return lines

    def _names(self, widths: list[int], labels: list[str]) -> Line:
        snapshot, spans = self.snapshot, []
        active = not snapshot.state.is_over and snapshot.state is not RunState.STARTING
        for stage, width, label in zip(Stage, widths, labels, strict=True):
            current = active and stage is snapshot.position.stage
            mark = "=" if self.charset is Charset.ASCII else "‖"
            label = label + mark if stage in snapshot.control.mask else label
            role = Role.CURRENT if current else Role.TEXT
            if width < len(label) + 2:
                arrow = ">" * (current and width > 1)
                text = next(
                    (t for t in (arrow + label, label) if len(t) <= width), arrow + str(stage.value)
                )
                spans.append(Span(crop(text, width).center(width), role))
                continue
            # A cell before and behind each label, so that none moves when the marks come and go.
            text = f">{label}<" if current else f" {label} "
            after: Line = ()
            if snapshot.invariants:
                after = (tick(worst(snapshot.invariants, stage), self.charset),)
                text = text if width > len(text) else text[:-1]
            left = (width - len(text) - len(after)) // 2
            right = width - len(text) - len(after) - left
            spans += [Span(" " * left), Span(text, role), *after, Span(" " * right)]
        return tuple(spans)

    def _times(self, widths: list[int]) -> Line:
        seconds = self.snapshot.stage_seconds
        total, spans = sum(seconds), []
        for width, spent in zip(widths, seconds, strict=True):
            share = percent(spent / total if total > 0 else float("nan"), 4).lstrip().rjust(3)
            text = f"{share} {short_seconds(spent, 7).replace(' ', ''):>5}"
            if total <= 0 or width <= len(text):
                text = share if total > 0 else "-"
            spans.append(Span(pad(text.center(width), width), Role.MUTED))
        return tuple(spans)

    def _bars(self, widths: list[int]) -> Line:
        seconds, spans = self.snapshot.stage_seconds, []
        total = sum(seconds)
        for width, spent in zip(widths, seconds, strict=True):
            share = spent / total if total > 0 else 0.0
            text = f" {bar(share, max(0, width - 2), self.charset)} "
            spans.append(Span(pad(text, width), Role.PRIMARY))
        return tuple(spans)

    def _status(self, width: int) -> Line:
        snapshot = self.snapshot
        at, info = snapshot.position, snapshot.info
        match snapshot.state:
            case RunState.STARTING | RunState.STOPPING:
                spans = [Span(f"{snapshot.state}: {snapshot.progress or '...'}", Role.WARNING)]
            case RunState.PAUSED:
                text = f"paused behind {at.stage.label} · next {next_stage(snapshot).label}"
                spans = [Span(text, Role.WARNING)]
            case RunState.FINISHED:
                spans = [Span("finished", Role.SUCCESS)]
            case RunState.FAILED:
                message = snapshot.failure.message if snapshot.failure else ""
                where = (
                    f" in {snapshot.failure.stage.label}"
                    if (snapshot.failure and snapshot.failure.stage)
                    else ""
                )
                spans = [Span(f"failed{where}: {message}", Role.ERROR)]
            case RunState.KILLED:
                spans = [Span("killed: its process is gone without a farewell", Role.ERROR)]
            case _:
                spans = [Span(f"{at.stage.phase:<8}", Role.STRONG)]
        if info is not None and snapshot.state in (RunState.RUNNING, RunState.PAUSED):
            joint = "" if snapshot.state is RunState.RUNNING else " · "
            spans.append(Span(joint + self._progress(), Role.MUTED))
        if snapshot.pending:
            spans.append(Span(f" · {snapshot.pending}", Role.WARNING))
        total = sum(snapshot.stage_seconds)
        right = f"{short_seconds(total)} an iteration" if total > 0 else ""
        used = sum(len(span.text) for span in spans)
        if right and used + len(right) + 3 <= width:
            spans.append(Span(right.rjust(width - used - 1), Role.MUTED))
        return (Span(" "), *spans)

    def _progress(self) -> str:
        """Return the counter of the present stage; of the rollout while collecting."""
        at, info = self.snapshot.position, self.snapshot.info
        assert info is not None
        if at.stage is Stage.OPTIMIZE:
            return (
                f"epoch {at.epoch + 1}/{info.num_learning_epochs} "
                f"mini-batch {at.mini_batch + 1}/{info.num_mini_batches}"
            )
        if at.stage is Stage.FRESH:
            return f"iteration {at.iteration + 1} done"
        digits = len(str(info.num_steps_per_env))
        return f"t {at.step:>{digits}}/{info.num_steps_per_env}"
