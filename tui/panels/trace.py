"""One stage from the inside: its words and checks, and its formulas with numbers in them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from trainer.stages import Stage
from trainer.telemetry import RunState, SessionView, Snapshot
from trainer.trace import (
    ALL_COLUMNS,
    NEWEST,
    ActStepNumbers,
    FreshNumbers,
    InvariantState,
    ObserveNumbers,
    OptimizeNumbers,
    SampleNumbers,
    StoreNumbers,
    TargetsNumbers,
    Trace,
    TraceRequest,
    Verdict,
)
from tui.draw.collect_numbers import Numbers, act_step_numbers, observe_numbers, store_numbers
from tui.draw.learn_numbers import (
    fresh_numbers,
    optimize_numbers,
    sample_numbers,
    targets_numbers,
)
from tui.draw.numbers import count, short_seconds
from tui.draw.spans import Charset, Line, Role, Span, crop
from tui.draw.stage_words import WORDS, tick
from tui.panels.base import Panel, ScrollingPanel


@dataclass
class TraceState:
    """What a person looks at; the panels of one trace view share it."""

    stage: Stage = Stage.OBSERVE
    world: int = 0
    step: int = NEWEST
    row: int = 0
    column: int = ALL_COLUMNS
    opened: bool = False
    """Whether one tensor takes all the room."""
    preview: bool = False
    """Whether the chosen tensor is shown large beside the list."""
    chosen: dict[Stage, str] = field(default_factory=dict)
    """Name of the chosen tensor of each stage."""

    @property
    def tensor(self) -> str:
        """Name of the chosen tensor; empty before the first list is there."""
        return self.chosen.get(self.stage, "")

    def request(self) -> TraceRequest:
        """What to ask the session for."""
        opened = self.tensor if self.opened or self.preview else ""
        return TraceRequest(self.stage, self.world, self.step, opened, self.row, self.column)

    def trace(self, snapshot: Snapshot) -> Trace | None:
        """Return what a snapshot has to say of the stage looked at."""
        trace = snapshot.trace
        return trace if trace is not None and trace.request.stage is self.stage else None

    def key(self) -> Hashable:
        """Return what a drawing depends on."""
        return self.stage, self.world, self.step, self.row, self.column, self.tensor, self.opened


class TracePanel(Panel):
    """A panel of the trace; all of them look at one state.

    Args:
        state: what is looked at; unset: a state of its own.
    """

    def __init__(
        self,
        state: TraceState | None = None,
        *,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.state = state or TraceState()


class StageCard(TracePanel):
    """Input, transform, output, formula, and the invariants with what checking them has shown."""

    TITLE: ClassVar[str] = "stage"

    HELP: ClassVar[str | None] = """\
## A stage

What the stage takes, does and gives, and its formula. Below it are its invariants: statements that
must hold whatever is trained. They are checked in every iteration, in the running program:

- `✓ ok` it held in the iteration named;
- `✗ BROKEN` it did not: the first iteration where that happened and what was found. This stays for
  the whole run, and stands in the log;
- `·` not checked yet.

**Healthy:** a tick at each.

**If one is broken**, the numbers of that iteration are not PPO's. After a change to the program,
look there first. Otherwise keep the run's folder and report it.

Where iterations are so short that the checks would be felt, only every so many is checked; the
lower border says how many, and what the checks cost.
"""

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the stage and on the checks."""
        return self.state.stage, snapshot.invariants

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return words, formula and checks, as many as there is room for."""
        stage, words = self.state.stage, WORDS[self.state.stage]
        states = [state for state in self.snapshot.invariants if state.stage is stage]
        self.caption(title=f"{stage.value} {stage.label}", subtitle=self._cost())
        lines: list[Line] = [
            _said("in", words.input, width),
            _said("do", words.transform, width),
            _said("out", words.output, width),
        ]
        checks = [self._check(state, width) for state in states]
        if height >= len(lines) + 1 + len(checks):
            lines.append((Span(crop(f"    {words.formula}", width), Role.PRIMARY),))
        if height >= len(lines) + 2 * len(checks):
            for state, check in zip(states, checks, strict=True):
                lines += [check, (Span(crop(f"    {state.statement}", width), Role.MUTED),)]
        else:
            lines += checks
        if not states:
            lines.append((Span("    checks begin with the first iteration", Role.MUTED),))
        return lines

    def _check(self, state: InvariantState, width: int) -> Line:
        mark = tick(state.verdict, self.charset)
        name = f"{state.name:<34}"
        if state.verdict is Verdict.BROKEN:
            told = f"BROKEN in iteration {state.iteration}: {state.detail}"
            return (Span(f"  {mark.text} ", mark.role), Span(name), Span(told, Role.ERROR))
        told = "not checked yet"
        if state.verdict is Verdict.HOLDS:
            told = f"ok, iteration {count(state.iteration)}"
        room = max(width - 4 - len(name) - 24, 0)
        return (
            Span(f"  {mark.text} ", mark.role),
            Span(name),
            Span(f"{told:<24}", Role.SUCCESS if state.verdict is Verdict.HOLDS else Role.MUTED),
            Span(crop(state.method, room) if room > 30 else "", Role.MUTED),
        )

    def _cost(self) -> str:
        cost = self.snapshot.check_cost
        if cost is None:
            return ""
        often = "every iteration" if cost.every == 1 else f"every {cost.every} iterations"
        return f"checks {short_seconds(cost.seconds).strip()} {often} · {100 * cost.share:.2f}%"


def _said(label: str, words: str, width: int) -> Line:
    return (Span(f"{label:<4}", Role.MUTED), Span(crop(words, max(width - 4, 0))))


class NumbersPanel(TracePanel, ScrollingPanel, can_focus=True):
    """The stage's formulas with the numbers of one world and one step."""

    TITLE: ClassVar[str] = "numbers"

    HELP: ClassVar[str | None] = """\
## Numbers

The stage's formulas with the numbers of one world n and one step t of this iteration in them. `[`
and `]` choose the step, `{` and `}` the world, shift and the arrows both; `g` goes to any; `0`
follows the newest step. While the loop is paused everything is there; while it runs, the numbers
come from the end of an iteration, a few times a second at most.

- **observe**: what each term put into the row. **act_step**: mean, noise and action; log π summed
  up by hand beside the one that was kept.
- **store**: the row before and after, and the time-out's γ V_t.
- **targets**: the backward scan. At `x` an episode ended: 1-d is 0 and nothing flows past it.
- **sample**: where the transition goes, and a map of which mini-batch reads what.
- **optimize**: the loss added up, the transition's ratio and whether the clip binds, what the KL
  did to the rate, all ratios between the lines at 1 ± ε.
- **fresh**: what stays.

**Healthy:** both sides of every equation agree; the ratio of the first mini-batch is 1; the KL
stays between half and twice the desired one; few ratios lie beyond 1 ± ε.
"""

    def __init__(
        self,
        state: TraceState | None = None,
        *,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(state, id=id, classes=classes)
        self._anchored: Hashable = None
        self._top: list[Line] = []

    def key(self, snapshot: Snapshot, session: SessionView) -> Hashable:
        """Depend on the answer, or on why there is none."""
        return self.state.key(), id(snapshot.trace), snapshot.state, id(snapshot.info)

    def rows(self, width: int) -> Sequence[Sequence[Span]]:
        """Return the formulas; scrolled to the chosen step when that has changed."""
        trace = self.state.trace(self.snapshot)
        self._top = []
        if trace is None:
            self.caption(title=self.TITLE)
            return [(Span(self._why_not(), Role.MUTED),)]
        request, info = trace.request, self.snapshot.info
        worlds = f" of {count(info.num_envs)}" if info is not None else ""
        steps = f" of {info.num_steps_per_env}" if info is not None else ""
        self.caption(
            title=f"numbers · world n {request.world}{worlds} · step t {request.step}{steps}"
        )
        head: list[Line] = []
        if not trace.has_run:
            words = f"{self.state.stage.label} has not run yet in iteration {trace.iteration + 1}"
            older = ": these are of the one before" if trace.iteration else ""
            head.append((Span(words + older, Role.WARNING),))
        numbers = self._numbers(trace, width)
        fixed = numbers.fixed if self.content_size.height >= numbers.fixed + 6 else 0
        self._top = [*head, *numbers.lines[:fixed]]
        anchor = (self.state.stage, request.step, request.world)
        if anchor != self._anchored:
            self._anchored = anchor
            rows = self.content_size.height - len(self._top)
            self._first = max(0, numbers.anchor - fixed - rows // 2) if fixed else 0
        return numbers.lines[fixed:]

    def head(self, width: int) -> Sequence[Sequence[Span]]:
        """Return the formulas, where there is room to scroll the rest below them."""
        return self._top

    def note(self) -> str:
        """Say when this was seen."""
        trace = self.state.trace(self.snapshot)
        if trace is None:
            return ""
        when = f"iteration {trace.iteration + 1}, behind {trace.behind.label}"
        return when if trace.in_full else f"live · {when}"

    def _why_not(self) -> str:
        match self.snapshot.state:
            case RunState.RUNNING:
                return "comes when this iteration ends; space pauses now"
            case RunState.PAUSED:
                return "looking ..."
            case _:
                return "nothing to look at"

    def _numbers(self, trace: Trace, width: int) -> Numbers:
        request = trace.request
        match trace.numbers:
            case ObserveNumbers() as numbers:
                return observe_numbers(numbers, request, width)
            case ActStepNumbers() as numbers:
                return act_step_numbers(numbers, request, width)
            case StoreNumbers() as numbers:
                return store_numbers(numbers, request, width)
            case TargetsNumbers() as numbers:
                return targets_numbers(numbers, request, width)
            case SampleNumbers() as numbers:
                return sample_numbers(numbers, request, width, self.charset)
            case OptimizeNumbers() as numbers:
                return optimize_numbers(numbers, request, width, self.charset)
            case FreshNumbers() as numbers:
                return fresh_numbers(numbers, request, width)
        if request.stage <= Stage.STORE:
            return Numbers([(Span(f"row t {request.step} is not filled yet", Role.MUTED),)])
        return Numbers([(Span(f"{request.stage.label} has not run yet", Role.MUTED),)])


def tab_texts(
    stage: Stage, current: Stage | None, ticks: Sequence[Verdict], width: int, charset: Charset
) -> Line:
    """Write the seven stages in a row, with what their checks have shown.

    Args:
        stage: the one on show, in brackets that stand in the gaps beside it.
        current: the one where the loop is, with ">" behind its number.
        ticks: a verdict for each.
        width: cells there are.
        charset: what the font can show.
    """
    labels = [f"{each.value}{'>' if each is current else ' '}{each.label}" for each in Stage]
    gap = " " if sum(map(len, labels)) + 5 * len(labels) + 1 <= width else ""
    if sum(map(len, labels)) + 2 * len(labels) + 1 > width:
        labels = [
            label if each is stage else label[:1] for each, label in zip(Stage, labels, strict=True)
        ]
    spans = [Span("[" if stage is Stage.OBSERVE else " ", Role.STRONG)]
    for each, label, verdict in zip(Stage, labels, ticks, strict=True):
        role = Role.CURRENT if each is stage else Role.TEXT
        spans += [Span(label, role), Span(gap), tick(verdict, charset)]
        closing = "]" if each is stage else ("[" if each + 1 == stage and not gap else " ")
        spans.append(Span(closing, Role.STRONG))
        if gap:
            spans += [Span(gap), Span("[" if each + 1 == stage else " ", Role.STRONG)]
    return tuple(span for span in spans if span.text)
