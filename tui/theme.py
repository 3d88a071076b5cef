"""Colours: calm on dark and on light terminals; no meaning rests on colour alone."""

from __future__ import annotations

import os
from collections.abc import Mapping

from textual.theme import Theme

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


def default_charset(environment: Mapping[str, str] = os.environ) -> Charset:
    """Choose what the terminal can show: by its locale, and by the font of the Linux console.

    A locale that is not set says nothing of the terminal; most of them show braille.
    """
    names = (environment.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next((name for name in names if name), "UTF-8")
    if "UTF8" not in locale.upper().replace("-", ""):
        return Charset.ASCII
    return Charset.BLOCK if environment.get("TERM") == "linux" else Charset.BRAILLE


def default_theme(environment: Mapping[str, str] = os.environ) -> str:
    """Name the theme to start with: `TEXTUAL_THEME`, or what the terminal says of itself.

    Some terminals put their colours in `COLORFGBG`, as "15;0"; a background of 7 or 15 is light.
    """
    chosen = environment.get("TEXTUAL_THEME")
    if chosen:
        return chosen
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT.name if background in ("7", "15") else DARK.name
