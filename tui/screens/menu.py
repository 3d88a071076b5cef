"""The menu: which presets there are, what each would train, and the two sizes one plays with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Footer, Input, Label, Static

from presets.problems import PresetError
from presets.schema import Preset
from trainer.rundir import RunDirError
from tui.screens.base import SizedScreen
from tui.screens.choices import Choices
from tui.screens.preset_text import Sizes, command_line, preset_text

KEYS = {"worlds": "env.num_envs", "steps": "trainer.num_steps_per_env"}
"""Input field to the key it sets."""


Load = Callable[[str, Sequence[str]], tuple[Preset, Sizes]]
"""Returns a preset by name with `key=value` changes, and its widths; raises PresetError."""

Start = Callable[[str, Sequence[str]], None]
"""Begins the run of a preset with `key=value` changes; raises PresetError."""


class NumberField(Input):
    """A field for a whole number; letters stay keys of the screen."""

    def __init__(self, id: str, digits: int) -> None:
        super().__init__(id=id, type="integer", compact=True, max_length=digits)
        self.cursor_blink = False

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Say that only digits are typed here."""
        return character is not None and character.isdecimal()


class MenuScreen(SizedScreen):
    """Presets on the left, the chosen one on the right; enter starts it.

    Args:
        names: the presets.
        load: reads one.
        start: begins its run.
        device: where a run would train, for a person to read.
    """

    CSS_PATH = "menu.tcss"
    AUTO_FOCUS = "#presets"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "start", "Start training", key_display="enter", priority=True),
        Binding("n", "edit('worlds')", "N worlds", priority=True),
        Binding("t", "edit('steps')", "T steps", priority=True),
        Binding("r", "reset", "Preset's own N, T", priority=True),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("escape", "back", "Back to the list", priority=True),
        Binding("q", "app.request_quit", "Quit", priority=True),
    ]

    def __init__(self, names: Sequence[str], load: Load, start: Start, device: str) -> None:
        super().__init__()
        self._names = tuple(names)
        self._load = load
        self._start = start
        self._device = device
        self._preset = self._names[0]
        self._own: dict[str, int] = {}
        self._problem = ""

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
                Vertical(Choices(self._names, id="presets"), id="left"),
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
            Footer(compact=True, show_command_palette=False),
        ]

    def on_mount(self) -> None:
        """Show the first preset."""
        self._choose(self._preset)

    def on_resize(self) -> None:
        """Fold the text anew."""
        self.call_after_refresh(self._describe)

    def settings(self) -> list[str]:
        """The changes made here, as `key=value`."""
        return [
            f"{KEYS[field]}={value}"
            for field in KEYS
            if (value := self._value(field)) != str(self._own.get(field, ""))
        ]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Say which keys mean something now; the footer shows only those."""
        if action == "start":
            return not self._problem
        if action == "reset":
            return bool(self.settings())
        if action == "back":
            return isinstance(self.focused, Input)
        return True

    # What happens.

    @on(Choices.Moved, "#presets")
    def _moved(self, event: Choices.Moved) -> None:
        self._choose(self._names[event.index])

    @on(Input.Changed)
    def _changed(self) -> None:
        self._describe()

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
        for field, value in self._own.items():
            self.query_one(f"#{field}", Input).value = str(value)
        self._describe()

    def _describe(self) -> None:
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
        details = preset_text(preset, sizes, self._device, max(40, width - 2))
        self._show_text(preset.description or self._preset, details)

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
