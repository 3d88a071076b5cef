"""A line to type a whole number into."""

from __future__ import annotations

from textual.widgets import Input


class NumberField(Input):
    """A field for a whole number; letters stay keys of the screen."""

    def __init__(self, id: str, digits: int) -> None:
        super().__init__(id=id, type="integer", compact=True, max_length=digits)
        self.cursor_blink = False

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Say that only digits are typed here."""
        return character is not None and character.isdecimal()
