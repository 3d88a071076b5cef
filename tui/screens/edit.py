"""The form over a preset: every key with its value, its meaning, and what the checks say of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Label, Static

from presets.form import FormField
from presets.problems import PresetError
from tui.draw.spans import Charset, ascii_text
from tui.screens.base import SizedScreen
from tui.screens.choices import Choices
from tui.screens.keys import KeyLine
from tui.screens.preset_text import command_line

WIDEST_KEY = 46

Check = Callable[[Sequence[str]], object]
"""Raises PresetError where the preset with these `key=value` changes cannot be."""


class FieldList(Choices):
    """Choices whose lines change."""

    def set_lines(self, lines: Sequence[str]) -> None:
        """Show other lines; the cursor stays where it is, if there is a line."""
        self.lines = tuple(lines)
        self.cursor = self.validate_cursor(self.cursor)
        self.refresh(layout=True)


class EditScreen(SizedScreen):
    """Changes a preset key by key; gives the changes back when it is left.

    Args:
        name: the preset's.
        fields: all keys, with the preset's own values.
        changes: key to value of what is changed already.
        check: refuses what cannot be, with the words of `--set`.
        done: told of the changes, and whether the run is to start.
    """

    CSS_PATH = "edit.tcss"
    AUTO_FOCUS = "#fields"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "edit", "Change", key_display="enter", priority=True),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("r", "reset", "Preset's own", tooltip="Take the preset's own value again"),
        Binding("R", "reset_all", "All own", tooltip="Take all of the preset's own values again"),
        Binding("c", "changed_only", "Only changes", tooltip="Show only what is changed, or all"),
        Binding("y", "copy", "Copy command"),
        Binding("s", "start", "Start training"),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("escape", "back", "Back", priority=True),
    ]

    def __init__(
        self,
        name: str,
        fields: Sequence[FormField],
        changes: Mapping[str, str],
        check: Check,
        done: Callable[[dict[str, str], bool], None],
    ) -> None:
        super().__init__()
        self._preset = name
        self._fields = tuple(fields)
        self._changes = dict(changes)
        self._check = check
        self._done = done
        self._shown: list[FormField] = []
        self._only_changes = False
        self._editing: FormField | None = None
        self._problem = ""

    def contents(self) -> list[Widget]:
        """Return the list, the field under the cursor, and the command."""
        return [
            Static(id="title", markup=False),
            FieldList([], id="fields"),
            Static(id="help", markup=False),
            Horizontal(
                Label("", id="label", markup=False),
                Input(id="value", compact=True, select_on_focus=False),
                id="row",
            ),
            Static(id="problem", markup=False),
            Static(id="command", markup=False),
            KeyLine(),
        ]

    def on_mount(self) -> None:
        """Show all fields."""
        self.query_one("#value", Input).cursor_blink = False
        self._filter("")
        self._validate(self.settings())

    def on_resize(self) -> None:
        """Fit the columns."""
        self.call_after_refresh(self._list)

    def settings(self) -> list[str]:
        """The changes as `key=value`."""
        return [f"{key}={value}" for key, value in self._changes.items()]

    @property
    def filtering(self) -> bool:
        """Whether what is typed picks fields."""
        return isinstance(self.focused, Input) and self._editing is None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Say which keys mean something now; while a value is typed they are letters."""
        typing = isinstance(self.focused, Input)
        match action:
            case "edit":
                return bool(self._shown) or typing
            case "back":
                return True
            case "start":
                return not typing and not self._problem
            case "copy":
                return not typing and not self._problem
            case "reset":
                return not typing and self._here is not None and self._here.key in self._changes
            case "reset_all" | "changed_only":
                return not typing and bool(self._changes)
            case "filter" | "page":
                return not typing
        return True

    @property
    def _here(self) -> FormField | None:
        cursor = self.query_one(FieldList).cursor
        return self._shown[cursor] if cursor < len(self._shown) else None

    # Keys.

    def action_edit(self) -> None:
        """Change the field under the cursor; pressed again, take what was typed."""
        field = self.query_one("#value", Input)
        if self._editing is not None:
            self._take(self._editing, field.value.strip())
        elif self.filtering:
            self._leave_input()
        elif (here := self._here) is not None:
            self._editing = here
            self.query_one("#label", Label).update(f"{here.key} = ")
            field.value = self._changes.get(here.key, here.value)
            field.cursor_position = len(field.value)
            self.query_one("#row").display = True
            self.set_focus(field)
            self.refresh_bindings()

    def action_filter(self) -> None:
        """Type a part of a key or of its help."""
        field = self.query_one("#value", Input)
        self.query_one("#label", Label).update("filter: ")
        self._editing = None
        field.value = ""
        self.query_one("#row").display = True
        self.set_focus(field)
        self.refresh_bindings()

    def action_back(self) -> None:
        """Leave the value as it was, the filter, or the form; in this order."""
        if self._editing is not None:
            self._leave_input()
            self._validate(self.settings())
        elif self.filtering:
            self.query_one("#value", Input).value = ""
            self._leave_input()
        elif len(self._shown) < len(self._fields):
            self._only_changes = False
            self._filter("")
        else:
            self._give_back(start=False)

    def action_reset(self) -> None:
        """Take the preset's own value of this field again."""
        if (here := self._here) is not None:
            self._changes.pop(here.key, None)
            self._validate(self.settings())

    def action_reset_all(self) -> None:
        """Take all of the preset's own values again."""
        self._changes.clear()
        self._only_changes = False
        self._filter("")
        self._validate([])

    def action_changed_only(self) -> None:
        """Show only what is changed, or all."""
        self._only_changes = not self._only_changes
        self._filter("")

    def action_page(self, by: int) -> None:
        """Move the cursor by a page."""
        fields = self.query_one(FieldList)
        fields.cursor += by * max(1, fields.size.height - 1)

    def action_copy(self) -> None:
        """Copy the command."""
        self.app.copy_to_clipboard(command_line(self._preset, self.settings()))
        self.notify("Copied, if your terminal allows it.")

    def action_start(self) -> None:
        """Start the run as it is shown."""
        self._give_back(start=True)

    def _give_back(self, *, start: bool) -> None:
        self.dismiss()
        self._done(dict(self._changes), start)

    # What happens.

    @on(Choices.Moved)
    def _moved(self) -> None:
        self._explain()
        self.refresh_bindings()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        if self._editing is not None:
            self._validate(self._with(self._editing, event.value.strip()))
        elif self.filtering:
            self._filter(event.value)

    def _with(self, field: FormField, value: str) -> list[str]:
        """All changes, with one more."""
        changes = {**self._changes, field.key: value}
        if value == field.value:
            del changes[field.key]
        return [f"{key}={text}" for key, text in changes.items()]

    def _take(self, field: FormField, value: str) -> None:
        if not self._validate(self._with(field, value)):
            return
        if value == field.value:
            self._changes.pop(field.key, None)
        else:
            self._changes[field.key] = value
        self._leave_input()
        self._list()

    def _leave_input(self) -> None:
        self._editing = None
        self.query_one("#row").display = False
        self.set_focus(self.query_one(FieldList))
        self.refresh_bindings()

    def _filter(self, text: str) -> None:
        words = text.lower().split()
        found = [
            field
            for field in self._fields
            if all(word in f"{field.key} {field.help}".lower() for word in words)
            and (not self._only_changes or field.key in self._changes)
        ]
        # keys that have the words stand before those whose help alone has them
        self._shown = sorted(
            found, key=lambda field: not all(word in field.key.lower() for word in words)
        )
        self.query_one(FieldList).cursor = 0
        self._list()

    def _validate(self, settings: Sequence[str]) -> bool:
        """Show what the checks say of these changes; returns whether they can be."""
        try:
            self._check(settings)
            self._problem = ""
        except PresetError as error:
            self._problem = str(error)
        problem = self.query_one("#problem", Static)
        problem.update(self._text(self._problem))
        problem.display = bool(self._problem)
        command = "" if self._problem else command_line(self._preset, settings)
        self.query_one("#command", Static).update(self._text(command))
        self._list()
        self.refresh_bindings()
        return not self._problem

    # Showing.

    def _list(self) -> None:
        fields = self.query_one(FieldList)
        longest = max((len(field.key) for field in self._shown), default=0)
        width = min(longest, WIDEST_KEY, max(16, fields.size.width // 2))
        fields.set_lines([self._text(self._line(field, width)) for field in self._shown])
        count = f"{len(self._shown)} of {len(self._fields)}" if self._narrowed else "all"
        changed = f", {len(self._changes)} changed (*)" if self._changes else ""
        title = f"{self._preset}: {count} settings{changed}"
        self.query_one("#title", Static).update(title)
        self._explain()

    @property
    def _narrowed(self) -> bool:
        return len(self._shown) < len(self._fields)

    def _line(self, field: FormField, width: int) -> str:
        key = field.key if len(field.key) <= width else f"..{field.key[2 - width :]}"
        if field.key not in self._changes:
            return f"  {key:<{width}}  {field.value or 'unset'}"
        own = field.value or "unset"
        return f"* {key:<{width}}  {self._changes[field.key]}   (preset: {own})"

    def _explain(self) -> None:
        here = self._here
        text = "no setting has these words" if here is None else here.help or here.key
        if here is not None and len(here.key) > WIDEST_KEY:
            text = f"{here.key}: {text}"
        self.query_one("#help", Static).update(self._text(text))

    def _text(self, text: str) -> str:
        if getattr(self.app, "charset", None) is not Charset.ASCII:
            return text
        return "\n".join(map(ascii_text, text.splitlines()))
