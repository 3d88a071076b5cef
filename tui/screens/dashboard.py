"""The dashboard: a session's stages, and seven views of what they do."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widget import Widget
from textual.widgets import ContentSwitcher

from trainer.telemetry import Command, RunState, SessionView, Snapshot
from tui.panels import (
    AllMetricsPanel,
    CurvePanel,
    EventsPanel,
    Header,
    NotesPanel,
    Panel,
    RobotPanel,
    StageStrip,
)
from tui.screens.base import MINIMUM
from tui.screens.failure import FailureView
from tui.screens.keys import KeyLine
from tui.screens.output import OutputTail
from tui.screens.reading import FilterLine, ReadingScreen
from tui.screens.recalling import recall
from tui.screens.status import StatusLine, ViewBar
from tui.screens.steering import SteeringScreen
from tui.screens.trace import TraceView
from tui.screens.views import panel_views

VIEWS = ("overview", "rollout", "update", "rewards", "curriculum", "timing", "log")
"""Views reached by the digits 1 to 7."""

LASTING = (*VIEWS, "robot", "curve", "episodes")
"""Views that the screen may open with."""

LIVE = "Panel, FailureView, OutputTail"
"""What is handed each new snapshot while it can be seen."""


class DashboardScreen(SteeringScreen, ReadingScreen):
    """Shows one session; the app hands it each new snapshot."""

    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [
        (0, "-tiny"),
        (MINIMUM[0], "-slim"),
        (80, "-narrow"),
        (110, "-medium"),
        (160, "-wide"),
    ]
    CSS_PATH: ClassVar[list[str]] = ["dashboard.tcss", "trace.tcss"]
    AUTO_FOCUS = ""
    ALLOW_IN_MAXIMIZED_VIEW = ".-textual-system, #bottom"
    ESCAPE_TO_MINIMIZE = False  # `action_back` knows what comes first
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "pause", "Pause", tooltip="Pause at the next stage boundary"),
        Binding("space", "run", "Run", tooltip="Run on"),
        Binding("full_stop", "step_stage", "Stage", key_display=".", tooltip="Run one stage"),
        Binding(
            "greater_than_sign",
            "step_iteration",
            "Iteration",
            key_display=">",
            tooltip="Run to the end of the iteration",
        ),
        Binding("t", "trace", "Trace", tooltip="Look into the seven stages, tensor by tensor"),
        Binding("r", "robot", "Robot", show=False, tooltip="Look at one robot while it trains"),
        Binding("h", "episodes", show=False, tooltip="The last episodes: returns and lengths"),
        Binding(
            "c",
            "checkpoint",
            "Checkpoint",
            tooltip="Save a checkpoint when the iteration ends; while paused, at once",
        ),
        Binding(
            "p", "step_phase", "Phase", tooltip="Run to the end of the phase: collect or learn"
        ),
        *(
            Binding(str(number), f"view('{name}')", "Views", show=False)
            for number, name in enumerate(VIEWS, start=1)
        ),
        Binding("8", "view('failure')", "Failure", show=False),
        Binding("left", "turn(-1)", "Previous view", show=False),
        Binding("right", "turn(1)", "Next view", show=False),
        Binding("z", "zoom", "Zoom", show=False, tooltip="Fill the screen with the focused panel"),
        Binding("escape", "back", "Back", show=False, tooltip="One layer out"),
        Binding(
            "d",
            "app.detach",
            "Detach",
            show=False,
            tooltip="Leave the terminal; the training goes on, ppo-tui watch shows it again",
        ),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "app.request_quit", "Quit"),
    ]

    def __init__(self, session: SessionView) -> None:
        super().__init__(session)
        self._before_trace = VIEWS[0]
        self.lasting_view = VIEWS[0]
        """The view on show, or the last one of `LASTING` before it."""
        self._live: list[Panel | FailureView | OutputTail] = []
        self._moving: list[Panel] = []

    def contents(self) -> list[Widget]:
        """Return header, stage strip, views, status line and keys."""
        return [
            Vertical(
                Header(id="header"),
                StageStrip(id="strip"),
                ViewBar(VIEWS, id="views"),
                ContentSwitcher(*self._views(), initial=VIEWS[0], id="switcher"),
                FilterLine(id="filter"),
                id="page",
            ),
            Vertical(*self.last_lines(), id="bottom"),
        ]

    def _views(self) -> list[Widget]:
        return [
            *panel_views(self.lens),
            Container(
                NotesPanel(id="log-notes"),
                EventsPanel(id="log-events"),
                OutputTail(id="log-output"),
                id="log",
            ),
            Container(RobotPanel(id="robot-panel"), id="robot"),
            TraceView(self.session, id="trace"),
            FailureView(id="failure"),
        ]

    def last_lines(self) -> list[Widget]:
        """Return what stays in sight even when one panel fills the screen."""
        return [StatusLine(id="status"), KeyLine()]

    @property
    def view(self) -> str:
        """Name of the view on show."""
        return self.query_one(ContentSwitcher).current or VIEWS[0]

    @property
    def leaving(self) -> bool:
        """Whether the last command was given and the screen waits for the session's end."""
        return self._leaving

    @leaving.setter
    def leaving(self, leaving: bool) -> None:
        self._leaving = leaving
        self._show_status()

    def show(self, snapshot: Snapshot, *, only_moving: bool = False) -> None:
        """Show a new snapshot, in the visible panels alone, or in those of them that move."""
        before, self.snapshot = self.snapshot, snapshot
        if snapshot.failure is not None and before.failure is None:
            self._go_to("failure")
        self.looking_back.take(snapshot)
        self._draw(only_moving=only_moving)
        self.query_one(TraceView).follow(snapshot)
        if snapshot.state is not before.state:
            self.refresh_bindings()

    def on_mount(self) -> None:
        """Let every panel be zoomed and explained, and show what is known so far."""
        for panel in self.query("ContentSwitcher Panel"):
            panel.can_focus = True
        # Found once: a search goes through all of the screen, and a drawing comes with each frame.
        self._live = [
            widget
            for widget in self.query(LIVE)
            if isinstance(widget, Panel | FailureView | OutputTail)
        ]
        self._moving = [
            widget for widget in self._live if isinstance(widget, Panel) and widget.MOVES
        ]
        self._notes = self.query(NotesPanel).first()
        self._status = self.query_one(StatusLine)
        self._view_bar = self.query_one(ViewBar)
        self._draw()
        recall(self, self.app.remembered)

    def on_resize(self) -> None:
        """Fill the panels that a larger size brings to light."""
        self.call_after_refresh(self._draw)

    def redraw(self) -> None:
        """Show what is to be shown now."""
        self._draw()

    def change_charset(self) -> None:
        """Draw all anew, with the characters that the app has now."""
        super().change_charset()
        self._draw()

    def _draw(self, *, only_moving: bool = False) -> None:
        if not (self._live and self._status.is_attached and self._view_bar.is_attached):
            return  # the app is ending, and takes the screen down part by part
        snapshot, session = self.looking_back.shown or (self.snapshot, self.session)
        with self.app.batch_update():
            self._notes.show(snapshot, session)  # has to know when to appear
            for widget in self._moving if only_moving else self._live:
                if is_shown(widget):
                    widget.show(snapshot, session)
            self._show_status()

    def _show_status(self) -> None:
        earlier = self.looking_back.shown
        self._status.show(
            self.snapshot,
            self.view,
            leaving=self._leaving,
            looking_back=None if earlier is None else earlier[0].completed_iterations,
        )
        self._view_bar.show(self.view, failed=self.snapshot.failure is not None)

    # Keys.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Say which keys mean something now; the footer shows only those."""
        state = self.snapshot.state
        paused = state is RunState.PAUSED
        at_work = self.is_at_work
        match action:
            case "pause":
                return at_work and not paused
            case "run":
                return at_work and paused
            case "step_stage" | "step_phase" | "step_iteration" | "checkpoint":
                return at_work
            case "view" if parameters == ("failure",):
                return self.snapshot.failure is not None
            case _:
                return super().check_action(action, parameters)

    def action_pause(self) -> None:
        """Pause behind the stage that runs now."""
        self._command(Command.PAUSE)

    def action_run(self) -> None:
        """Run on."""
        self._command(Command.RUN)

    def action_step_stage(self) -> None:
        """Run one stage, then pause."""
        self._command(Command.STEP_STAGE)

    def action_step_phase(self) -> None:
        """Run to the end of the phase, then pause."""
        self._command(Command.STEP_PHASE)

    def action_step_iteration(self) -> None:
        """Run to the end of the iteration, then pause."""
        self._command(Command.STEP_ITERATION)

    def action_checkpoint(self) -> None:
        """Save the last complete iteration."""
        self._command(Command.CHECKPOINT)

    def open_view(self, name: str) -> None:
        """Go to a view of `LASTING`; of other names nothing comes."""
        if name == "curve":
            self.open_curve("")
        elif name in LASTING:
            self._go_to(name)

    def action_view(self, name: str) -> None:
        """Go to a view."""
        self._go_to(name)

    def action_turn(self, by: int) -> None:
        """Go to the next or the previous view."""
        at = VIEWS.index(self.view) if self.view in VIEWS else 0
        self._go_to(VIEWS[(at + by) % len(VIEWS)])

    def action_trace(self) -> None:
        """Look into the stages, or go back to the view before."""
        if self.view == "trace":
            self._go_to(self._before_trace)
        else:
            self._before_trace = self.view
            self._go_to("trace")

    def action_robot(self) -> None:
        """Look at one robot, or go back to the view before."""
        self._go_aside("robot")

    def action_episodes(self) -> None:
        """Look at the last episodes, or go back to the view before."""
        self._go_aside("episodes")

    def _go_aside(self, name: str) -> None:
        """Go to a view that has no number, or from there back to the one before."""
        if self.view == name:
            self._go_to(self._before_trace)
        else:
            self._before_trace = self.view if self.view in VIEWS else self._before_trace
            self._go_to(name)

    def open_curve(self, tag: str) -> None:
        """Show a metric's curve as large as there is room; the one before where none is named."""
        if self.view != "curve":
            self._before_trace = self.view if self.view in VIEWS else self._before_trace
        if tag:
            self.query_one("#curve-chart", CurvePanel).tag = tag
        chart = self.query_one("#curve-chart", CurvePanel)
        self.query_one("#curve-metrics", AllMetricsPanel).chosen = chart.tag
        self._go_to("curve")
        chart.focus()

    def action_zoom(self) -> None:
        """Fill the screen with the focused panel, or go back."""
        if self.maximized is not None:
            self.minimize()
        elif isinstance(self.focused, Panel):
            self.maximize(self.focused)
        else:
            self.notify("Choose a panel first: tab.")

    def action_back(self) -> None:
        """Leave the past, the zoom, the filter, the view or the focus, in this order."""
        if self.looking_back.shown is not None:
            self.looking_back.return_to_live()
            self._draw()
        elif self.maximized is not None:
            self.minimize()
        elif self.query_one(FilterLine).has_focus:
            self.drop_filter()
        elif self.view in ("trace", "robot", "curve", "episodes"):
            self._go_to(self._before_trace)
        elif self.focused is None and self.is_filtering:
            self.drop_filter()
        elif self.focused is not None:
            self.set_focus(None)
        elif self.view not in VIEWS:
            self._go_to(self._before_trace)

    def action_help(self) -> None:
        """Explain keys, stages and the focused panel."""
        from tui.screens.help import HelpScreen

        focused = self.focused if isinstance(self.focused, Panel) else None
        topics = [panel for panel in self.query(Panel) if is_shown(panel)]
        self.app.push_screen(HelpScreen(self.active_bindings, topics, focused))

    def _command(self, command: Command) -> None:
        self.app.command(command)

    def _go_to(self, name: str) -> None:
        if self.maximized is not None:
            self.minimize()
        self.set_focus(None)
        if name in LASTING:
            self.lasting_view = name
        before, trace = self.view, self.query_one(TraceView)
        self.query_one(ContentSwitcher).current = name
        self.set_class(name == "trace", "-trace")
        if name == "trace":
            trace.enter(self.snapshot)
        elif before == "trace":
            trace.leave()
        robot = self.query_one(RobotPanel)
        if name == "robot":
            robot.enter(self.session)
        elif before == "robot":
            robot.leave(self.session)
        self.call_after_refresh(self._draw)


def is_shown(widget: Widget) -> bool:
    """Whether neither the widget nor anything around it is switched off."""
    return all(node.display for node in widget.ancestors_with_self if isinstance(node, Widget))
