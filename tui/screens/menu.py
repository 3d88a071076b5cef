"""The menu: presets and what each would train, changes before a run, and the runs of the past."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Label, Static
from textual.worker import Worker, WorkerState

from presets.form import FormField, form_fields
from presets.problems import PresetError
from presets.schema import Preset
from trainer.rundir import RunDirError
from trainer.summary import RunSummary
from tui.screens.base import SizedScreen
from tui.screens.choices import Choices
from tui.screens.edit import EditScreen, FieldList
from tui.screens.keys import KeyLine
from tui.screens.number_field import NumberField
from tui.screens.past_runs import PastRuns
from tui.screens.preset_text import Sizes, command_line, preset_text
from tui.screens.run_text import is_live, resume_line, run_line, run_text

KEYS = {"worlds": "env.num_envs", "steps": "trainer.num_steps_per_env"}
"""Input field to the key it sets."""


Load = Callable[[str, Sequence[str]], tuple[Preset, Sizes]]
"""Returns a preset by name with `key=value` changes, and its widths; raises PresetError."""

Start = Callable[[str, Sequence[str]], None]
"""Begins the run of a preset with `key=value` changes; raises PresetError."""


class MenuScreen(SizedScreen):
    """Presets and runs on the left, the chosen one on the right; enter starts or resumes it.

    Args:
        names: the presets.
        load: reads one.
        start: begins its run.
        device: where a run would train, for a person to read.
        past: the runs of the past; unset: they are not shown.
        own: names of presets that are a person's own.
    """

    CSS_PATH = "menu.tcss"
    AUTO_FOCUS = "#presets"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "start", "Start training", key_display="enter", priority=True),
        Binding("enter", "resume", "Go on", key_display="enter", priority=True),
        Binding("w", "watch", "Watch", priority=True),
        Binding("p", "play", "Play", priority=True),
        Binding("e", "form", "Edit", priority=True, tooltip="Change any setting before the run"),
        Binding("n", "edit('worlds')", "N worlds", priority=True),
        Binding("t", "edit('steps')", "T steps", priority=True),
        Binding("r", "reset", "Undo changes", priority=True),
        Binding("y", "copy", "Copy command", priority=True),
        Binding("tab", "other_list", "Runs", key_display="tab", priority=True),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("escape", "back", "Back to the list", priority=True),
        Binding("q", "app.request_quit", "Quit", priority=True),
    ]

    def __init__(
        self,
        names: Sequence[str],
        load: Load,
        start: Start,
        device: str,
        past: PastRuns | None = None,
        own: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._past = past
        self._mine = frozenset(own)
        self._runs: tuple[RunSummary, ...] = ()
        self._edits: dict[str, str] = {}
        self._fields: list[FormField] = []
        self._busy = False
        self._names = tuple(names)
        self._load = load
        self._start = start
        self._device = device
        self._preset = self._names[0]
        self._own: dict[str, int] = {}
        self._problem = ""
        self._trouble: tuple[Path | None, str] = (None, "")
        """The run that was to be gone on with, watched or played, and why that cannot be."""

    def contents(self) -> list[Widget]:
        """Return list, description and keys."""
        sizes = Horizontal(
            Label("N worlds "),
            NumberField("worlds", digits=9),
            Label("  T steps "),
            NumberField("steps", digits=6),
            id="sizes",
        )
        return [
            Static(f"ppo-tui  {self._device}", id="title", markup=False),
            Horizontal(
                Vertical(
                    Choices([self._label(name) for name in self._names], id="presets"),
                    Static("recent runs (tab)", id="recent", markup=False),
                    FieldList([], id="runs"),
                    id="left",
                ),
                Vertical(
                    Static(id="about", markup=False),
                    sizes,
                    Static(id="problem", markup=False),
                    VerticalScroll(Static(id="details"), id="scroll", can_focus=False),
                    Static(id="command", markup=False),
                    id="right",
                ),
                id="page",
            ),
            KeyLine(),
        ]

    def on_mount(self) -> None:
        """Show the first preset, and look for runs meanwhile."""
        self._choose(self._preset)
        if self._past is not None:
            self.run_worker(self._past.find, name="find", thread=True, exit_on_error=False)

    def on_resize(self) -> None:
        """Fold the text anew."""
        self.call_after_refresh(self._describe)

    def settings(self) -> list[str]:
        """The changes made here, as `key=value`."""
        sizes = [
            f"{KEYS[field]}={value}"
            for field in KEYS
            if (value := self._value(field)) != str(self._own.get(field, ""))
        ]
        return sizes + [f"{key}={value}" for key, value in self._edits.items()]

    @property
    def run_here(self) -> RunSummary | None:
        """The run under the cursor, where the cursor is among the runs."""
        runs = self.query_one("#runs", FieldList)
        return self._runs[runs.cursor] if self._runs and runs.has_focus else None

    def _label(self, name: str) -> str:
        return f"{name} (own)" if name in self._mine else name

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Say which keys mean something now; the footer shows only those."""
        if self._busy:
            return action in ("app.request_quit", "request_quit")
        run, typing = self.run_here, isinstance(self.focused, Input)
        match action:
            case "start":
                return run is None and not self._problem
            case "resume":
                return run is not None and not is_live(run)
            case "watch":
                return run is not None
            case "play":
                return run is not None and bool(run.iterations)
            case "form":
                return run is None and bool(self._fields) and not typing
            case "edit":
                return run is None
            case "reset":
                return run is None and bool(self.settings())
            case "copy":
                return not typing and not self._problem
            case "other_list":
                return bool(self._runs)
            case "back":
                return typing or run is not None
        return True

    # What happens.

    @on(Choices.Moved, "#presets")
    def _moved(self, event: Choices.Moved) -> None:
        self._choose(self._names[event.index])

    @on(Choices.Moved, "#runs")
    def _moved_among_runs(self) -> None:
        self._describe()

    @on(Input.Changed)
    def _changed(self) -> None:
        self._describe()

    def on_descendant_focus(self) -> None:
        """Show what the cursor is on."""
        self._describe()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Show the runs that were found, or go on with the one whose checkpoint was read."""
        worker = event.worker
        if worker.name == "find" and event.state is WorkerState.SUCCESS:
            self._show_runs(tuple(worker.result or ()))
        elif worker.name == "prepare" and event.state in (WorkerState.SUCCESS, WorkerState.ERROR):
            self._busy = False
            if event.state is WorkerState.SUCCESS and worker.result is not None:
                worker.result()
            else:
                self._trouble = (self._trouble[0], str(worker.error))
                self._describe()

    def _show_runs(self, found: tuple[RunSummary, ...]) -> None:
        self._runs = found
        now = dt.datetime.now(dt.UTC)
        runs = self.query_one("#runs", FieldList)
        runs.set_lines([run_line(run, now) for run in found])
        self.set_class(bool(found), "-runs")
        self.refresh_bindings()
        past = self._past
        folders = [run.folder for run in found]
        if past is not None and past.at in folders:
            runs.cursor = folders.index(past.at)
            self.set_focus(runs)
            self._trouble = (past.at, past.problem)

    def _resume_line(self, run: RunSummary) -> str:
        return resume_line(run, self._past.machine if self._past is not None else "")

    def action_other_list(self) -> None:
        """Go from the presets to the runs, and back."""
        there = "#presets" if self.run_here is not None else "#runs"
        self.set_focus(self.query_one(there))

    def action_resume(self) -> None:
        """Go on with the run under the cursor."""
        if self._past is not None:
            self._prepare(self._past.resume, "reading the checkpoint ...")

    def action_watch(self) -> None:
        """Watch the run under the cursor, live or as it was recorded."""
        if self._past is not None:
            self._prepare(self._past.watch, "reaching the run ...")

    def action_play(self) -> None:
        """Play the policy of the run under the cursor."""
        if self._past is not None:
            self._prepare(self._past.play, "reading the checkpoint ...")

    def _prepare(self, prepare: Callable[[RunSummary], Callable[[], None]], words: str) -> None:
        """Make ready beside the screen what takes a while, then do it."""
        if (run := self.run_here) is None:
            return
        self._busy, self._trouble = True, (run.folder, "")
        self._show_problem("")
        self.query_one("#command", Static).update(words)
        self.refresh_bindings()
        self.run_worker(lambda: prepare(run), name="prepare", thread=True, exit_on_error=False)

    def action_copy(self) -> None:
        """Copy the command that does this without the menu."""
        run = self.run_here
        text = (
            command_line(self._preset, self.settings()) if run is None else self._resume_line(run)
        )
        self.app.copy_to_clipboard(text)
        self.notify("Copied, if your terminal allows it.")

    def action_form(self) -> None:
        """Change any setting."""
        sizes = {
            KEYS[field]: value
            for field in KEYS
            if (value := self._value(field)) != str(self._own[field])
        }
        self.app.push_screen(
            EditScreen(
                self._preset,
                self._fields,
                {**sizes, **self._edits},
                lambda settings: self._load(self._preset, settings),
                self._take_changes,
            )
        )

    def _take_changes(self, changes: dict[str, str], start: bool) -> None:
        for field, key in KEYS.items():
            value = changes.pop(key, str(self._own[field]))
            self.query_one(f"#{field}", Input).value = value
        self._edits = changes
        self._describe()
        if start:
            self.call_after_refresh(self.action_start)

    def action_edit(self, field: str) -> None:
        """Go to a field."""
        self.set_focus(self.query_one(f"#{field}", Input))

    def action_back(self) -> None:
        """Go back to the list."""
        self.set_focus(self.query_one("#presets"))

    def action_page(self, by: int) -> None:
        """Scroll the description."""
        pages = self.query_one("#scroll")
        pages.scroll_relative(y=by * pages.size.height, animate=False)

    def action_reset(self) -> None:
        """Take the preset's own sizes again."""
        self._choose(self._preset)

    def action_start(self) -> None:
        """Start the run as described."""
        try:
            self._start(self._preset, self.settings())
        except (PresetError, RunDirError) as error:
            self._show_problem(str(error))

    # Showing.

    def _choose(self, name: str) -> None:
        self._preset = name
        self._edits, self._fields = {}, []
        try:
            preset, _ = self._load(name, [])
        except PresetError as error:
            self._own = {}
            self._show_problem(str(error))
            self._show_text("", Content(""))
            return
        self._own = {
            "worlds": preset.env.num_envs,
            "steps": preset.trainer.num_steps_per_env,
        }
        self._fields = form_fields(preset)
        for field, value in self._own.items():
            self.query_one(f"#{field}", Input).value = str(value)
        self._describe()

    def _describe(self) -> None:
        if (run := self.run_here) is not None:
            self._describe_run(run)
            return
        self.remove_class("-run")
        if not self._own:
            return
        if not all(self._value(field) for field in KEYS):
            self._show_problem("N and T are whole numbers, at least 1")
            return
        try:
            preset, sizes = self._load(self._preset, self.settings())
        except PresetError as error:
            self._show_problem(str(error))
            return
        self._show_problem("")
        width = self.query_one("#scroll").size.width
        details = preset_text(preset, sizes, self._device, max(20, width - 2))
        self._show_text(preset.description or self._preset, details)

    def _describe_run(self, run: RunSummary) -> None:
        self.add_class("-run")
        folder, trouble = self._trouble
        self._show_problem(trouble if folder == run.folder else "")
        width = self.query_one("#scroll").size.width
        text = run_text(run, dt.datetime.now(dt.UTC), max(20, width - 2))
        self.query_one("#about", Static).update(f"a run of {run.preset}")
        self.query_one("#details", Static).update(text)
        self.query_one("#command", Static).update("" if is_live(run) else self._resume_line(run))

    def _show_text(self, about: str, details: Content) -> None:
        self.query_one("#about", Static).update(about)
        self.query_one("#details", Static).update(details)
        self.query_one("#command", Static).update(command_line(self._preset, self.settings()))

    def _show_problem(self, problem: str) -> None:
        self._problem = problem
        field = self.query_one("#problem", Static)
        field.update(problem)
        field.display = bool(problem)
        if problem:  # there is no command for what cannot be run
            self.query_one("#command", Static).update("")
        self.refresh_bindings()

    def _value(self, field: str) -> str:
        return self.query_one(f"#{field}", Input).value.strip()
