"""An app with a theme and characters of a person's choice, which remembers how it was left."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Generic

from textual.binding import Binding, BindingType

from tui import remembered
from tui.draw.spans import Charset
from tui.driver import TerminalDriver
from tui.painting import PaintingApp, Result
from tui.theme import DARK, LIGHT, default_charset, default_theme

THEMES = (DARK.name, LIGHT.name, "ansi-dark", "ansi-light")
"""In the order of the key that goes through them; the last two have the terminal's own colours."""


class LooksApp(PaintingApp[Result], Generic[Result]):
    """Opens as it was left: what an option says counts first, then the environment, then memory."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "T", "next_theme", show=False, tooltip="Theme: dark, light, or the terminal's colours"
        ),
        Binding("A", "next_charset", show=False, tooltip="Draw in braille, blocks or ASCII"),
    ]

    def __init__(self) -> None:
        super().__init__(driver_class=TerminalDriver)
        self._kept = self.remembered = remembered.read()
        """How the screen was left the last time, with what was chosen by key since."""
        self.charset = default_charset(remembered=self.remembered.charset)
        """What every panel draws with."""
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        theme = self.remembered.theme
        wanted = default_theme(remembered=theme if theme in self.available_themes else "")
        self.theme = "textual-dark"  # a theme named by TEXTUAL_THEME counts only when it changes
        self.theme = wanted if wanted in self.available_themes else DARK.name

    def on_mount(self) -> None:
        """Have the style sheets know of the characters."""
        self.set_class(self.charset is Charset.ASCII, "-ascii")

    def action_next_theme(self) -> None:
        """Change the colours."""
        at = THEMES.index(self.theme) if self.theme in THEMES else -1
        self.theme = THEMES[(at + 1) % len(THEMES)]
        self.remembered = replace(self.remembered, theme=self.theme)
        self.notify(f"Theme: {self.theme}", timeout=2)

    def action_next_charset(self) -> None:
        """Change the characters."""
        from tui.screens.base import SizedScreen

        order = list(Charset)
        self.charset = order[(order.index(self.charset) + 1) % len(order)]
        self.remembered = replace(self.remembered, charset=str(self.charset))
        self.set_class(self.charset is Charset.ASCII, "-ascii")
        for screen in self.screen_stack:
            if isinstance(screen, SizedScreen):
                screen.change_charset()
        self.notify(f"Characters: {self.charset}", timeout=2)

    def gathered(self) -> remembered.Remembered:
        """Return how the screen looks now."""
        return self.remembered

    def exit(self, *arguments: object, **options: object) -> None:
        """Remember how the screen looks, if that changed, and leave; asked again, only leave."""
        # The second time the screen may be half taken down.
        if not self._exit and (looks := self.gathered()) != self._kept:
            remembered.write(looks)
        super().exit(*arguments, **options)  # type: ignore[arg-type]
