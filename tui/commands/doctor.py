"""The command `doctor`: whether this machine and this terminal have what a training needs."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tui.doctor.findings import Check, Finding

PATIENCE = 5.0
"""Seconds that a check may take."""
LABEL = 22
VERDICT = 9
WIDEST = 100


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Look at terminal, packages, processors, memory, GPU and disk, and say what each means.

    Ends with 0 where everything works, with 1 where something is a problem.
    """
    from tui.doctor.findings import Verdict, run_check

    found: list[tuple[str, Finding]] = []
    for area, checks in _areas():
        if not as_json:
            _print(f"{area}")
        for check, patience in checks:
            for finding in run_check(check.__name__.replace("_", " "), check, patience):
                found.append((area, finding))
                if not as_json:
                    _print(_line(finding))
    problems = sum(finding.verdict is Verdict.PROBLEM for _, finding in found)
    notes = sum(finding.verdict is Verdict.NOTE for _, finding in found)
    if as_json:
        print(json.dumps([_as_json(area, finding) for area, finding in found], indent=2))
    else:
        _print(f"\n{_count(problems, 'problem')}, {_count(notes, 'note')}")
    raise typer.Exit(1 if problems else 0)


def _areas() -> Iterator[tuple[str, list[tuple[Check, float]]]]:
    """The checks, quick ones first; each area is imported when its turn has come."""
    from tui.doctor import terminal

    yield "terminal", [(terminal.terminal, PATIENCE), (terminal.between, PATIENCE)]
    from tui.doctor import software

    yield "packages", [(software.python, PATIENCE)]
    from tui.doctor import machine

    yield (
        "machine",
        [
            (machine.processors, PATIENCE),
            (machine.main_memory, PATIENCE),
            (machine.disk, PATIENCE),
            (machine.warp_cache, PATIENCE),
            (machine.engines, machine.PROBE_TIME + PATIENCE),
        ],
    )
    yield "extras", [(software.extras, PATIENCE)]
    from tui.doctor import runs

    yield "runs", [(runs.live_runs, PATIENCE)]


def _line(finding: Finding) -> str:
    """Verdict, name and value in a line; below it what that means and what to do."""
    start = f"  {finding.verdict:<{VERDICT}}{finding.name:<{LABEL}}"
    room = min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns) - VERDICT - 4
    more = [finding.meaning, f"to do: {finding.remedy}" if finding.remedy else ""]
    folded = [part for text in more if text for part in textwrap.wrap(text, max(20, room))]
    return "\n".join([f"{start} {finding.value}", *(" " * (VERDICT + 4) + part for part in folded)])


def _print(text: str) -> None:
    from tui.draw.spans import ascii_text, printable

    encoding = (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "")
    text = printable(text)
    print(text if encoding == "utf8" else "\n".join(map(ascii_text, text.splitlines())), flush=True)


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _as_json(area: str, finding: Finding) -> dict[str, str]:
    return {
        "area": area,
        "name": finding.name,
        "verdict": str(finding.verdict),
        "value": finding.value,
        "meaning": finding.meaning,
        "remedy": finding.remedy,
    }
