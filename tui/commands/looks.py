"""What the command line says of the screen's looks: it counts for this process, before all else."""

from __future__ import annotations

import os

from tui.commands.refusing import refuse
from tui.commands.terminal import CHARSET_VARIABLE, COLOURFUL

COLOURS = {"auto": "", "16": "standard", "256": "256", "truecolor": "truecolor"}
"""What a person types, and what Textual calls it."""


def choose_looks(theme: str | None, charset: str | None, color: str | None) -> None:
    """Put what was chosen into the environment, where the screen finds it however it is opened.

    Call it before Textual is imported, which looks for the number of colours only then. What there
    is none of is refused, with the nearest name there is.

    Args:
        theme: `dark`, `light`, or one of Textual's; None says nothing, as below.
        charset: one of `Charset`.
        color: one of `COLOURS`.
    """
    if color is not None:
        _check("--color", color, list(COLOURS))
    if charset is not None:
        from tui.draw.spans import Charset  # imports rich

        _check("--charset", charset, list(Charset))
    _choose_colours(color)
    if charset is not None:
        os.environ[CHARSET_VARIABLE] = charset
    if theme is not None:
        if theme not in ("dark", "light"):
            _check("--theme", theme, _themes())
        os.environ["TEXTUAL_THEME"] = theme


def _choose_colours(color: str | None) -> None:
    system = COLOURS[color or "auto"]
    if system:
        os.environ.pop("NO_COLOR", None)
    elif color or not os.environ.get("TEXTUAL_COLOR_SYSTEM"):
        known = os.environ.get("COLORTERM") or os.environ.get("TERM") not in COLOURFUL
        system = "auto" if known else "truecolor"
    if system:
        os.environ["TEXTUAL_COLOR_SYSTEM"] = system


def _themes() -> list[str]:
    from textual.theme import BUILTIN_THEMES

    from tui.theme import SHORT_NAMES  # imports textual

    return [*SHORT_NAMES, *SHORT_NAMES.values(), *BUILTIN_THEMES]


def _check(option: str, value: str, known: list[str]) -> None:
    if value not in known:
        from presets.problems import did_you_mean

        refuse([f"{option} {value}: must be one of {', '.join(known)}{did_you_mean(value, known)}"])
