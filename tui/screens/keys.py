"""The last line of a screen: the keys that mean something now, as many as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget

from tui.draw.spans import Charset, ascii_text

KEPT = ("question_mark", "q", "escape")
"""Keys that find help and the way out; they are shown before all others."""


class Key(NamedTuple):
    """A key and what it does."""

    name: str
    text: str
    is_kept: bool

    @property
    def width(self) -> int:
        """Cells that it takes."""
        return len(self.name) + 1 + len(self.text)


class KeyLine(Widget):
    """The keys of the screen's bindings that are valid now and meant to be shown."""

    DEFAULT_CSS = """
    KeyLine {
        dock: bottom; height: 1; width: 1fr;
        color: $footer-description-foreground; background: $footer-background;
    }
    """

    def on_mount(self) -> None:
        """Follow the bindings."""
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        if screen is self.screen:
            self.refresh()

    def render(self) -> Content:
        """Write whole keys, none of them cut."""
        parts = []
        for key in fitting_keys(self._keys(), self.size.width):
            parts += [Content.styled(key.name, "$footer-key-foreground bold"), Content(key.text)]
        return Content(" ").join(parts)

    def _keys(self) -> list[Key]:
        in_ascii = getattr(self.app, "charset", None) is Charset.ASCII
        shown: dict[str, Key] = {}
        for active in self.screen.active_bindings.values():
            binding = active.binding
            if binding.show and active.enabled:
                name, text = self.app.get_key_display(binding), binding.description
                name = "enter" if binding.key == "enter" else name  # its sign is in few fonts
                if in_ascii:
                    name, text = ascii_text(name), ascii_text(text)
                shown.setdefault(binding.action, Key(name, text, binding.key in KEPT))
        return list(shown.values())


def fitting_keys(keys: Sequence[Key], width: int) -> list[Key]:
    """Return the keys that fit beside each other: those that are kept, then from the left."""
    left = width + 1 - sum(key.width + 1 for key in keys if key.is_kept)
    found = []
    for key in keys:
        if not key.is_kept:
            left -= key.width + 1
            if left < 0:
                continue
        found.append(key)
    return found
