"""Editing a value while a run goes on: which one, then what, and why."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Label, Static

from trainer.control import Adjustable, Control, Edit, read_value, write_value
from trainer.live import changes_for
from tui.screens.base import Dialog
from tui.screens.choices import Choices


def matching(adjustables: tuple[Adjustable, ...], text: str) -> tuple[Adjustable, ...]:
    """Return those whose keys hold all the words of `text`."""
    words = text.lower().split()
    return tuple(one for one in adjustables if all(word in one.key.lower() for word in words))


class EditScreen(Dialog[Edit | None]):
    """Asks which value to edit, then for the value; dismissed with the edit, or None.

    Args:
        control: says what can be edited.
    """

    CSS_PATH = "control.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "move(-8)", show=False),
        Binding("pagedown", "move(8)", show=False),
        Binding("escape", "dismiss(None)", "Cancel"),
    ]

    def __init__(self, control: Control) -> None:
        super().__init__()
        self._control = control
        self._found = control.adjustables

    def compose(self) -> ComposeResult:
        """Yield the list, the line that narrows it, and what the chosen value is."""
        with Vertical(id="dialog", classes="wide"):
            yield Static("Edit which value?", id="question")
            yield Input(placeholder="letters of its name", id="filter")
            yield Choices((), id="values")
            yield Static("", id="about", markup=False)
            yield Static("up and down choose;  enter edits;  esc cancels", id="hint")

    def on_mount(self) -> None:
        """Be ready to narrow the list."""
        self.query_one(Choices).can_focus = False
        self.query_one(Input).focus()
        self._explain()

    def on_resize(self) -> None:
        """Fit the columns."""
        self.call_after_refresh(self._list)

    def _list(self) -> None:
        choices = self.query_one(Choices)
        choices.lines = tuple(self._lines(choices.size.width - 2))
        choices.cursor = choices.cursor
        choices.refresh(layout=True)

    def _lines(self, width: int) -> list[str]:
        """Write keys and values; of a key that is too long its end, which tells it from others."""
        values = [write_value(one.value) for one in self._found]
        room = max(width - 2 - max(map(len, values), default=0), 12)
        keys = [
            one.key if len(one.key) <= room else f"..{one.key[2 - room :]}" for one in self._found
        ]
        longest = max(map(len, keys), default=0)
        return [f"{key:<{longest}}  {value}" for key, value in zip(keys, values, strict=True)]

    @property
    def _chosen(self) -> Adjustable | None:
        return self._found[self.query_one(Choices).cursor] if self._found else None

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        self._found = matching(self._control.adjustables, event.value)
        self.query_one(Choices).cursor = 0
        self._list()
        self._explain()

    @on(Choices.Moved)
    def _explain(self) -> None:
        one = self._chosen
        if one is None:
            text = "no value has such a name"
        elif one.refusal:
            text = f"! no effect: {one.refusal}"
        else:
            text = " ".join(f"{one.about} {one.note}".split())
        about = self.query_one("#about", Static)
        about.set_class(one is not None and bool(one.refusal), "-refused")
        about.update(text)

    def on_screen_suspend(self) -> None:
        """Step out of the picture while the value is typed."""
        self.query_one("#dialog").visible = False

    def on_screen_resume(self) -> None:
        """Come back."""
        self.query_one("#dialog").visible = True

    def action_move(self, by: int) -> None:
        """Choose another value."""
        self.query_one(Choices).cursor += by

    @on(Input.Submitted)
    def _open(self) -> None:
        one = self._chosen
        if one is not None and not one.refusal:
            self.app.push_screen(ValueScreen(one, self._control), self._close)

    def _close(self, edit: Edit | None) -> None:
        if edit is not None:
            self.dismiss(edit)


class ValueScreen(Dialog[Edit | None]):
    """Asks for a value and a reason; dismissed with the edit, or None.

    Args:
        adjustable: what is edited.
        control: with all values in force, which must fit together.
    """

    CSS_PATH = "control.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Back")]

    def __init__(self, adjustable: Adjustable, control: Control) -> None:
        super().__init__()
        self._adjustable = adjustable
        self._control = control

    def compose(self) -> ComposeResult:
        """Yield what it is, and the two lines to fill in."""
        one = self._adjustable
        with Vertical(id="dialog", classes="wide"):
            yield Static(f"{one.key}, now {write_value(one.value)}", id="question", markup=False)
            yield Static(" ".join(one.about.split()), id="about", markup=False)
            if one.note:
                yield Static(f"! {one.note}", id="note", markup=False)
            with Horizontal(classes="row"):
                yield Label("new value")
                yield Input(write_value(one.value), id="value")
            with Horizontal(classes="row"):
                yield Label("why")
                yield Input(placeholder="for the log, may stay empty", id="reason", max_length=200)
            yield Static("", id="problem", markup=False)
            yield Static("enter: next; applies at the iteration's end; esc back", id="hint")

    def on_mount(self) -> None:
        """Begin with the value."""
        self.query_one("#value", Input).focus()

    def _edit(self) -> Edit | None:
        """Return the edit that stands in the form; None, and what is wrong, where it is none."""
        one, problem = self._adjustable, self.query_one("#problem", Static)
        try:
            value = read_value(self.query_one("#value", Input).value, one.value)
            edit = Edit(one.key, value, self.query_one("#reason", Input).value.strip())
            changes_for(edit, self._control.adjustables)
        except ValueError as error:
            problem.update(f"! {error}")
            return None
        problem.update("")
        return edit

    @on(Input.Submitted, "#value")
    def _to_reason(self) -> None:
        if self._edit() is not None:
            self.query_one("#reason", Input).focus()

    @on(Input.Submitted, "#reason")
    def _apply(self) -> None:
        edit = self._edit()
        if edit is None:
            self.query_one("#value", Input).focus()
        else:
            self.dismiss(edit)
