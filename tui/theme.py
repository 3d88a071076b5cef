"""Colours: calm on dark and on light terminals; no meaning rests on colour alone."""

from __future__ import annotations

import os
from collections.abc import Mapping

from textual.theme import Theme

from tui.commands.terminal import CHARSET_VARIABLE
from tui.draw.spans import Charset

DARK = Theme(
    name="ppo-tui-dark",
    primary="#7aa2c8",
    secondary="#8fb39a",
    accent="#d9a860",
    foreground="#c9ced6",
    background="#14171c",
    surface="#181c22",
    panel="#20252d",
    success="#8fb39a",
    warning="#d9a860",
    error="#d97a7a",
    dark=True,
)
LIGHT = Theme(
    name="ppo-tui-light",
    primary="#2f5f8a",
    secondary="#3c6e4b",
    accent="#8a5a12",
    foreground="#23272e",
    background="#fafaf7",
    surface="#f2f2ee",
    panel="#e6e6e0",
    success="#3c6e4b",
    warning="#8a5a12",
    error="#a83232",
    dark=False,
)


SHORT_NAMES = {"dark": DARK.name, "light": LIGHT.name}
"""What a person types for our own themes."""


def default_charset(
    environment: Mapping[str, str] = os.environ, *, remembered: str = ""
) -> Charset:
    """Choose what to draw with: as is wanted, else what the terminal can show and is remembered.

    What it can show depends on its locale, and on the font of the Linux console. A locale that is
    not set says nothing of the terminal; most of them show braille.

    Args:
        environment: of the process.
        remembered: characters that were chosen before; where the terminal shows less, it decides.
    """
    wanted, known = environment.get(CHARSET_VARIABLE), list(Charset)
    if wanted in known:
        return Charset(wanted)
    able = _able_to_show(environment)
    return max(able, Charset(remembered), key=known.index) if remembered in known else able


def _able_to_show(environment: Mapping[str, str]) -> Charset:
    names = (environment.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next((name for name in names if name), "UTF-8")
    if "UTF8" not in locale.upper().replace("-", ""):
        return Charset.ASCII
    return Charset.BLOCK if environment.get("TERM") == "linux" else Charset.BRAILLE


def default_theme(environment: Mapping[str, str] = os.environ, *, remembered: str = "") -> str:
    """Name the theme to start with: `TEXTUAL_THEME`, or the one that was chosen before.

    Without any the terminal decides. Some put their colours in `COLORFGBG`, as "15;0"; a background
    of 7 or 15 is light.
    """
    if chosen := environment.get("TEXTUAL_THEME"):
        return SHORT_NAMES.get(chosen, chosen)
    if remembered:
        return remembered
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT.name if background in ("7", "15") else DARK.name
