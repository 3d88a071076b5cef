"""The terminal: what it can show, and what stands between it and this program."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Iterator
from pathlib import Path

from tui.commands.terminal import COLOURFUL, PLAIN_TERMINALS, has_screen
from tui.doctor.findings import Finding, Verdict

NOTE, PROBLEM = Verdict.NOTE, Verdict.PROBLEM

MINIMUM = (60, 15)
"""Columns and rows of the smallest screen, see `tui.screens.base`, which is slow to import."""

QUESTION = b"\x1b[?2026$p\x1b[c"
"""Whether synchronized output is known; and who are you, which every terminal answers."""
ANSWER_TIME = 0.5


def terminal() -> Iterator[Finding]:
    """Size, colours and characters."""
    term = os.environ.get("TERM", "")
    if term in PLAIN_TERMINALS:
        yield Finding(
            "TERM",
            repr(term) if term else "unset",
            "no full screen: run prints a line an iteration",
            NOTE,
            "export TERM=xterm-256color, if the terminal is a usual one",
        )
    else:
        yield Finding("TERM", term)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield Finding(
            "screen", "none: input or output is no terminal", "run prints lines instead", NOTE
        )
    else:
        yield _size()
    yield _colours(term)
    yield _characters()


def _size() -> Finding:
    columns, rows = shutil.get_terminal_size()
    value = f"{columns} x {rows}"
    if columns < MINIMUM[0] or rows < MINIMUM[1]:
        smallest = "{} x {}".format(*MINIMUM)
        return Finding("size", value, "too small for any screen", PROBLEM, f"{smallest} or larger")
    if columns < 100 or rows < 30:
        return Finding("size", value, "one view at a time; 120 x 40 shows more at once")
    return Finding("size", value)


def _colours(term: str) -> Finding:
    if os.environ.get("NO_COLOR"):
        return Finding("colours", "none: NO_COLOR is set", "nothing rests on colour alone", NOTE)
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return Finding("colours", "16 million (COLORTERM)")
    if term in COLOURFUL:
        return Finding("colours", "16 million (TERM)")
    if term.endswith(("-256color", "-kitty")):
        return Finding("colours", "256 (TERM)", "SSH does not pass COLORTERM on: this is usual")
    if term in PLAIN_TERMINALS:
        return Finding("colours", "none")
    return Finding(
        "colours",
        "16 (TERM)",
        "heat maps are drawn with characters",
        NOTE,
        "export COLORTERM=truecolor, or run with --color 256, if the terminal knows them",
    )


def _characters() -> Finding:
    from tui.theme import default_charset  # imports textual's theme

    charset = default_charset()
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    locale = next((f"{name}={os.environ[name]}" for name in names if os.environ.get(name)), "")
    if charset == "ascii":
        return Finding(
            "characters",
            f"ASCII ({locale})",
            "charts are drawn with + - | #",
            NOTE,
            "export LC_ALL=C.UTF-8, if the terminal shows UTF-8",
        )
    sample = "⣀⣤⣶⣿ ▁▄█ ─│╭╮" if charset == "braille" else "▁▄█ ─│"
    return Finding(
        "characters",
        f"{charset}: {sample}" + (f" ({locale})" if locale else " (no locale is set)"),
        "if the sample shows boxes, the font lacks them: LC_ALL=C ppo-tui draws in ASCII",
    )


def between() -> Iterator[Finding]:
    """What the pictures pass through on their way."""
    if os.environ.get("TMUX"):
        yield Finding("tmux", "inside", "survives a lost connection; keys and colours are tmux's")
    if os.environ.get("STY"):
        yield Finding("screen", "inside GNU screen", "16 or 256 colours, no synchronized output")
    if _ancestor("mosh-server"):
        yield Finding("mosh", "inside", "survives a lost connection; shows the newest picture only")
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
        yield Finding(
            "SSH",
            "inside",
            "a lost connection ends no training; ppo-tui watch latest shows it again",
        )
    if has_screen():
        known = _synchronized()
        yield Finding(
            "synchronized output",
            {True: "yes", False: "no", None: "no answer"}[known],
            "pictures appear whole" if known else "fast changes may be seen half drawn",
        )


def _ancestor(name: str) -> bool:
    """Whether a process of this name is above this one."""
    pid = os.getppid()
    while pid > 1:
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        command, _, rest = text.partition("(")[2].rpartition(")")
        if command == name:
            return True
        pid = int(rest.split()[1])
    return False


def _synchronized() -> bool | None:
    """Ask the terminal; None where it does not answer."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    answer, deadline = b"", time.monotonic() + ANSWER_TIME
    try:
        tty.setcbreak(descriptor)
        os.write(sys.stdout.fileno(), QUESTION)
        while not re.search(rb"\x1b\[\?[\d;]*c", answer):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                break
            answer += os.read(descriptor, 256)
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)
    found = re.search(rb"\x1b\[\?2026;(\d)\$y", answer)
    if found is None:
        return False if answer else None
    return found[1] in b"123"
