"""The trace: any of the seven stages from the inside, with all its tensors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from trainer.stages import Stage
from trainer.telemetry import Position, RunState, SessionView, Snapshot
from trainer.trace import ALL_COLUMNS, NEWEST, TensorView, worst
from tui.draw.spans import Line, Span
from tui.panels.base import Panel
from tui.panels.tensor_large import TensorLarge
from tui.panels.tensors import TensorTable
from tui.panels.trace import NumbersPanel, StageCard, TraceState, tab_texts
from tui.screens.base import FollowsTerminal
from tui.screens.steering import SteeringScreen

if TYPE_CHECKING:
    from tui.app import DashboardApp


class TraceTabs(Panel):
    """The seven stages: which one is on show, where the loop is, what the checks have shown."""

    MOVES: ClassVar[bool] = True
    DEFAULT_CSS = "TraceTabs, TraceTabs.-ascii { height: 1; border: none; }"

    def __init__(self, state: TraceState, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state = state

    def key(self, snapshot: Snapshot, session: SessionView) -> object:
        """Depend on both places and on the verdicts."""
        return self.state.stage, snapshot.position.stage, snapshot.state, snapshot.invariants

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the line of tabs."""
        snapshot = self.snapshot
        at_work = snapshot.state in (RunState.RUNNING, RunState.PAUSED)
        current = snapshot.position.stage if at_work else None
        verdicts = [worst(snapshot.invariants, stage) for stage in Stage]
        line: Line = tab_texts(self.state.stage, current, verdicts, width, self.charset)
        return [line]


class TraceView(Vertical):
    """Words, checks, numbers and tensors of one stage; a person moves among them.

    Args:
        session: told what is looked at.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", tooltip="Open the chosen tensor large"),
        Binding("escape", "close", "Close", show=False, tooltip="Close the tensor, or the trace"),
        Binding("g", "go_to", "Go to n, t", tooltip="Go to a world n and a step t"),
        *(
            Binding(str(stage.value), f"stage({stage.value})", "Stages", show=False)
            for stage in Stage
        ),
        Binding("left", "turn(-1)", "Previous stage", show=False),
        Binding("right", "turn(1)", "Next stage", show=False),
        Binding("up", "cursor(-1)", "Up", show=False),
        Binding("down", "cursor(1)", "Down", show=False),
        Binding("left_curly_bracket,shift+left", "world(-1)", "World n - 1", show=False),
        Binding("right_curly_bracket,shift+right", "world(1)", "World n + 1", show=False),
        Binding("left_square_bracket,shift+up", "step(-1)", "Step t - 1", show=False),
        Binding("right_square_bracket,shift+down", "step(1)", "Step t + 1", show=False),
        Binding("0", "newest", "Follow the newest step", show=False),
        Binding("v", "column(1)", "Next column of the last axis", show=False),
        Binding("V", "column(-1)", "Previous column", show=False),
        Binding("exclamation_mark", "first_bad", "First entry not finite", show=False),
    ]
    app: DashboardApp

    def __init__(self, session: SessionView, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._session = session
        self.state = TraceState()
        self._snapshot = Snapshot()
        self._looking = False
        self._followed: Position | None = None

    def compose(self) -> ComposeResult:
        """Yield the tabs, the card, and the panels below it."""
        yield TraceTabs(self.state, id="trace-tabs")
        yield StageCard(self.state, id="trace-card")
        with Container(id="trace-body"):
            yield NumbersPanel(self.state, id="trace-numbers")
            yield TensorTable(self.state, id="trace-tensors")
            yield TensorLarge(self.state, id="trace-large")

    # What the dashboard calls.

    def enter(self, snapshot: Snapshot) -> None:
        """Begin to look, at the stage where a paused loop is."""
        self._snapshot = snapshot
        if snapshot.state is RunState.PAUSED:
            self.state.stage = snapshot.position.stage
            self._followed = snapshot.position
        self._looking = True
        self._focus()
        self._look()

    def leave(self) -> None:
        """Look no more."""
        self._looking = False
        self._session.look(None)

    def follow(self, snapshot: Snapshot) -> None:
        """Take a new snapshot: a loop that is stepped takes the view along."""
        self._snapshot = snapshot
        if not self._looking:
            return
        if snapshot.state is RunState.PAUSED and snapshot.position != self._followed:
            self._followed = snapshot.position
            if not self.state.opened:
                self._go_to_stage(snapshot.position.stage)
        preview = self.query_one(TensorLarge).display
        table = self.query_one(TensorTable)
        chosen = table.chosen()
        if preview != self.state.preview or (chosen and not self.state.tensor):
            self.state.preview = preview
            if chosen is not None:
                self.state.chosen.setdefault(self.state.stage, chosen.name)
            self._look()

    # Keys.

    def action_stage(self, number: int) -> None:
        """Show a stage."""
        self._go_to_stage(Stage(number))

    def action_turn(self, by: int) -> None:
        """Show the next or the previous stage; in an opened tensor move the cursor."""
        if self.state.opened:
            self._move(0, by * self._stride()[1])
        else:
            self._go_to_stage(Stage((self.state.stage - 1 + by) % len(Stage) + 1))

    def action_cursor(self, by: int) -> None:
        """Move the cursor of the opened tensor by cells of the map, downward."""
        if self.state.opened:
            self._move(by * self._stride()[0], 0)

    def action_world(self, by: int) -> None:
        """Choose the next or the previous world."""
        self._move(0, by)

    def action_step(self, by: int) -> None:
        """Choose the next or the previous step."""
        self._move(by, 0)

    def action_newest(self) -> None:
        """Follow the newest step."""
        self.state.step = NEWEST
        self._look()

    def action_column(self, by: int) -> None:
        """Show another column of the last axis in the map."""
        view = self.query_one(TensorLarge).view()
        if view is None or not view.depth.size:
            return
        places = len(view.depth) + 1  # all of them is a place too
        self.state.column = (view.depth_column + 1 + by) % places - 1
        self._look()

    def action_open(self) -> None:
        """Open the chosen tensor large."""
        chosen = self.query_one(TensorTable).chosen()
        if chosen is None:
            return
        self.state.chosen[self.state.stage] = chosen.name
        self.state.opened = True
        self._arrange()

    def action_close(self) -> None:
        """Leave the past, close the tensor, or leave the trace."""
        screen = self.screen
        if isinstance(screen, SteeringScreen) and screen.looking_back.shown is not None:
            self.call_later(screen.run_action, "back")
        elif screen.maximized is not None:
            self.screen.minimize()
            self._focus()
        elif self.state.opened:
            self.state.opened = False
            self._arrange()
        else:
            self.call_later(self.screen.run_action, "back")

    def action_go_to(self) -> None:
        """Ask for a world and a step."""
        info = self._snapshot.info
        if info is not None:
            self.app.push_screen(GoToScreen(info.num_envs, info.num_steps_per_env), self._go_to)

    def action_first_bad(self) -> None:
        """Go to the first entry of the chosen tensor that is not finite."""
        chosen = self.query_one(TensorTable).chosen()
        if chosen is None or not chosen.bad_index:
            self.app.notify("All entries of this tensor are finite.")
            return
        letters = chosen.symbols.strip("[]").split(",")
        places = dict(zip(letters, chosen.bad_index, strict=False))
        self.state.world = places.get("N", self.state.world)
        self.state.step = places.get("T", self.state.step)
        if len(chosen.bad_index) > 1:
            self.state.column = chosen.bad_index[-1]
            self.state.row = chosen.bad_index[0 if "out" in places else -1]
        self._look()

    @on(TensorTable.Chosen)
    def _on_chosen(self) -> None:
        if self.state.preview or self.state.opened:
            self._look()

    # Inside.

    def _stride(self) -> tuple[int, int]:
        """Entries that a cell of the map stands for, downward and across."""
        large = self.query_one(TensorLarge)
        view = large.view()
        if view is None:
            return 1, 1
        return (
            max(1, view.num_rows // max(large.cells_down, 1)),
            max(1, view.num_columns // max(large.cells_across, 1)),
        )

    def _move(self, down: int, across: int) -> None:
        """Move through steps and worlds; in a picture of other axes through these."""
        view = self.query_one(TensorLarge).view() if self.state.opened else None
        request = self._snapshot.trace.request if self._snapshot.trace is not None else None
        info = self._snapshot.info
        if info is None or request is None:
            return
        if down and (view is None or view.rows == "t"):
            now = self.state.step if self.state.step != NEWEST else request.step
            self.state.step = min(max(now + down, 0), info.num_steps_per_env - 1)
        elif down and view is not None:
            self.state.row = min(max(view.row + down, 0), view.num_rows - 1)
        if across and (view is None or view.columns == "n"):
            self.state.world = min(max(self.state.world + across, 0), info.num_envs - 1)
        elif across and view is not None:
            self._move_in(view, across)
        self._look()

    def _move_in(self, view: TensorView, across: int) -> None:
        """Move across a layer's inputs, or across a single row."""
        at = min(max(view.column + across, 0), view.num_columns - 1)
        if view.rows:
            self.state.column = at
        else:
            self.state.row = at

    def _go_to(self, place: tuple[int, int | None] | None) -> None:
        if place is not None:
            self.state.world = place[0]
            self.state.step = self.state.step if place[1] is None else place[1]
            self._look()

    def _go_to_stage(self, stage: Stage) -> None:
        if stage is self.state.stage:
            return
        self.state.stage, self.state.opened = stage, False
        self.state.row, self.state.column = 0, ALL_COLUMNS
        self._arrange()

    def _arrange(self) -> None:
        """Give the room to what is open."""
        self.set_class(self.state.opened, "-opened")
        self._focus()
        self._look()

    def _focus(self) -> None:
        wanted = self.query_one("#trace-large" if self.state.opened else "#trace-tensors")
        self.call_after_refresh(self.screen.set_focus, wanted)

    def _look(self) -> None:
        """Tell the session, and show at once what is known already."""
        if not self._looking:
            return
        self._session.look(self.state.request())
        for panel in self.query(Panel):
            if panel.display:
                panel.show(self._snapshot, self._session)
        self.app.hurry()


class GoToScreen(FollowsTerminal, ModalScreen[tuple[int, int | None] | None]):
    """Asks for a world and, if one likes, a step.

    Args:
        num_envs: N.
        num_steps: T.
    """

    CSS_PATH = "trace.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel")]

    def __init__(self, num_envs: int, num_steps: int) -> None:
        super().__init__()
        self._num_envs = num_envs
        self._num_steps = num_steps

    def compose(self) -> ComposeResult:
        """Yield the question and the line to answer in."""
        with Vertical(id="dialog"):
            yield Static(
                f"World n, 0 to {self._num_envs - 1}; then, if you like, "
                f"step t, 0 to {self._num_steps - 1}",
                id="question",
                markup=False,
            )
            yield Input(placeholder="33 17", id="place")
            yield Static("", id="problem", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go there, or say what is wrong."""
        place = parse_place(event.value, self._num_envs, self._num_steps)
        if isinstance(place, str):
            self.query_one("#problem", Static).update(place)
        else:
            self.dismiss(place)


def parse_place(text: str, num_envs: int, num_steps: int) -> tuple[int, int | None] | str:
    """Read "33", "33 17" or "n 33, t 17"; returns world and step, or what is wrong."""
    numbers = [int(digits) for digits in re.findall(r"-?\d+", text)]
    if not 1 <= len(numbers) <= 2:
        return "one or two whole numbers, such as 33 or 33 17"
    if not 0 <= numbers[0] < num_envs:
        return f"there is no world {numbers[0]}; the last one is {num_envs - 1}"
    if len(numbers) == 2 and not 0 <= numbers[1] < num_steps:
        return f"there is no step {numbers[1]}; the last one is {num_steps - 1}"
    return numbers[0], numbers[1] if len(numbers) == 2 else None
