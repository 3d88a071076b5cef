"""The command `runs`: the runs on disk, and how some of them compare."""

from __future__ import annotations

import json
import os
import shutil
import string
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tui.commands.once import OnceEach, OnceEachGroup
from tui.commands.refusing import refuse, refusing_bad_input

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.summary import RunSummary
    from tui.draw.spans import Line
    from tui.draw.table import Column


class _Commands(OnceEachGroup):
    """What `runs` can do beside listing, with a good word for anything else."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - typer's own types
        """Find the command that was asked for."""
        if self.get_command(ctx, args[0]) is None:
            from presets.problems import did_you_mean
            from tui.draw.spans import printable

            hint = did_you_mean(args[0], self.list_commands(ctx))
            ctx.fail(
                printable(
                    f'no command "runs {args[0]}"{hint}\nto list the runs: ppo-tui runs, or of one '
                    "preset: ppo-tui runs --preset PRESET; to compare: ppo-tui runs compare A B"
                )
            )
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Commands, rich_markup_mode=None, help="List the runs, or compare some of them."
)

MARKS = string.ascii_uppercase
"""What the runs of a comparison are called."""

COLOURS = ("cyan", "yellow", "magenta", "green", "red", "blue")
CHART_HEIGHT = 18
NARROWEST = 20
WIDE = 100
"""Columns of a chart that goes into a pipe or a file."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def runs(
    ctx: typer.Context,
    preset: Annotated[
        str | None, typer.Option("--preset", metavar="PRESET", help="Only runs of this preset.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the runs under runs/, the newest first: state, steps, reward. Or compare some."""
    if ctx.invoked_subcommand is not None:
        return
    from presets.runs import require_readable
    from presets.runs import runs as folders_of
    from trainer.summary import summarize_run

    with refusing_bad_input():
        require_readable()
    found = [summarize_run(folder) for folder in folders_of(preset)]
    if as_json:
        print(json.dumps([_as_json(run) for run in found], indent=2))
    elif found:
        _print(run_table(found, _width()))
    else:
        print(_nothing(preset))


@app.command(cls=OnceEach)
def compare(
    names: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Two or more: folder, name, PRESET/name, or latest."),
    ],
    as_json: AsJson = False,
) -> None:
    """Show what differs between runs: settings, metrics, and the curves of the reward."""
    with refusing_bad_input():
        from presets.runs import find_run

        folders = [find_run(name) for name in names]
    _refuse_unless_several(folders)
    from presets.compare import differing_settings
    from trainer.summary import summarize_run

    found = [summarize_run(folder) for folder in folders]
    differing, metrics = differing_settings(folders), _metrics(found)
    if as_json:
        print(
            json.dumps(
                {
                    "runs": [_as_json(run) for run in found],
                    "settings": differing,
                    "metrics": metrics,
                },
                indent=2,
            )
        )
        return
    _print(_legend(found))
    print("\nSettings that differ" + ("" if differing else ": none"))
    _print(_side_by_side(differing, len(found)))
    print("\nMetrics")
    _print(_side_by_side({tag: list(map(_shown, row)) for tag, row in metrics.items()}, len(found)))
    print("\nMean reward by env steps")
    _print_chart(folders)


def run_table(found: Sequence[RunSummary], width: int) -> list[Line]:
    """List runs in a table whose less important columns give way in a narrow terminal.

    Args:
        found: the runs.
        width: cells.
    """
    from tui.draw.numbers import duration, known, number
    from tui.draw.spans import Span
    from tui.draw.table import Column

    def text(value: object) -> str:
        return "-" if value is None else str(value)

    def reward(value: float | None) -> str:
        return "-" if value is None else known(value).strip()

    titles = (
        # title, rank, aligned to the right
        ("preset", 1, False),
        ("run", 0, False),
        ("state", 2, False),
        ("iterations", 3, True),
        ("steps", 5, True),
        ("reward", 4, True),
        ("best", 6, True),
        ("duration", 7, True),
        ("started (UTC)", 8, False),
        ("folder", 9, False),
    )
    cells = [
        (
            run.preset,
            run.folder.name,
            run.state,
            f"{text(run.iterations)}/{text(run.num_iterations)}",
            "-" if run.env_steps is None else number(run.env_steps).strip(),
            reward(run.last_reward),
            reward(run.best_reward),
            "-" if run.elapsed is None else duration(run.elapsed),
            "-" if run.started is None else f"{run.started:%Y-%m-%d %H:%M}",
            str(run.folder),
        )
        for run in found
    ]
    columns = [
        Column(title, max(len(title), *(len(row[i]) for row in cells)), rank, right)
        for i, (title, rank, right) in enumerate(titles)
    ]
    return _table(columns, [[(Span(cell),) for cell in row] for row in cells], width)


def _metrics(found: Sequence[RunSummary]) -> dict[str, list[float | None]]:
    """What is known of each run in numbers: the whole of it first, then each tag's last value."""
    from trainer.summary import REWARD, last_metrics

    whole: dict[str, list[float | None]] = {
        "iterations": [run.iterations for run in found],
        "env steps": [run.env_steps for run in found],
        "seconds of training": [run.elapsed for run in found],
        f"{REWARD} (last)": [run.last_reward for run in found],
        f"{REWARD} (best)": [run.best_reward for run in found],
    }
    last = [last_metrics(run.folder) for run in found]
    tags = sorted(dict.fromkeys(tag for metrics in last for tag in metrics if tag != REWARD))
    return whole | {tag: [_finite(metrics.get(tag)) for metrics in last] for tag in tags}


def _finite(value: float | None) -> float | None:
    return value if value is not None and abs(value) < float("inf") else None


def _shown(value: float | None) -> str:
    from tui.draw.numbers import count, number

    if isinstance(value, int):
        return count(value)
    return "-" if value is None else number(value).strip()


def _side_by_side(rows: dict[str, list[str]], num_runs: int) -> list[Line]:
    """A table with a line for each key and a column for each run."""
    from tui.draw.spans import Span
    from tui.draw.table import GAP, Column

    if not rows:
        return []
    width = _width()
    key = max(map(len, rows))
    values = [max(1, *(len(row[number]) for row in rows.values())) for number in range(num_runs)]
    room = width - key - GAP * num_runs
    if sum(values) > room:  # long values are cropped, all to the same width
        values = [min(value, max(6, room // num_runs)) for value in values]
        key = max(8, min(key, width - sum(values) - GAP * num_runs))
    columns = [Column("", key, 0, False)]
    columns += [Column(MARKS[i], value, i + 1, True) for i, value in enumerate(values)]
    return _table(
        columns, [[(Span(name),), *((Span(v),) for v in row)] for name, row in rows.items()], width
    )


def _table(columns: Sequence[Column], rows: Iterable[Sequence[Line]], width: int) -> list[Line]:
    from tui.draw import table

    widths = table.layout(columns, width)
    return [
        table.head(columns, widths),
        *(table.row(row, columns, widths) for row in rows),
    ]


def _legend(found: Sequence[RunSummary]) -> list[Line]:
    from tui.draw.spans import Span

    lines = []
    for mark, run in zip(MARKS, found, strict=False):
        why = f" ({run.failure})" if run.failure else ""
        lines.append((Span(f"{mark}  {run.folder}  {run.state}{why}"),))
    return lines


def _print_chart(folders: Sequence[Path]) -> None:
    """Draw the curves over each other: in colour on a terminal, else in letters."""
    from rich.console import Console
    from rich.text import Text

    from trainer.summary import curve
    from tui.draw.chart import Series, overlay_chart
    from tui.draw.spans import Charset

    on_terminal = sys.stdout.isatty()
    charset = Charset.ASCII
    if on_terminal:
        from tui.theme import default_charset

        charset = default_charset()
    series = [
        Series(*curve(folder), MARKS[number], COLOURS[number % len(COLOURS)])
        for number, folder in enumerate(folders)
    ]
    width = max(NARROWEST, min(_width(), WIDE))
    lines = overlay_chart(series, width, CHART_HEIGHT, x_label="env steps", charset=charset)
    if not on_terminal:
        _print(lines)
        return
    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        roles = {*COLOURS}
        console.print(
            Text.assemble(*((span.text, span.role if span.role in roles else "") for span in line))
        )


def _print(lines: Iterable[Line]) -> None:
    from tui.draw.spans import ascii_text, plain, printable

    encoding = (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "")
    for line in lines:
        text = printable(plain(line)).rstrip()
        print(text if encoding == "utf8" else ascii_text(text))


def _width() -> int:
    """Cells of the terminal; what goes into a pipe or a file is not shortened."""
    if not sys.stdout.isatty():
        return 10_000
    return shutil.get_terminal_size().columns


def _refuse_unless_several(folders: Sequence[Path]) -> None:
    if len(folders) < 2:
        refuse([f"{folders[0]}: give two or more runs to compare"])
    if len(folders) > len(MARKS):
        refuse([f"{len(folders)} runs: {len(MARKS)} at most can be compared"])
    seen: set[str] = set()
    for folder in folders:
        if (path := os.path.realpath(folder)) in seen:
            refuse([f"{folder}: is named twice"])
        seen.add(path)


def _nothing(preset: str | None) -> str:
    from trainer.rundir import RUNS

    if preset is not None:
        return f"no runs of {preset} in {RUNS}/; train one: ppo-tui run {preset}"
    return f"no runs in {RUNS}/ here; train one: ppo-tui run PRESET (ppo-tui presets lists them)"


def _as_json(run: RunSummary) -> dict[str, Any]:
    import dataclasses

    values = dataclasses.asdict(run)
    started = run.started.isoformat() if run.started is not None else None
    return values | {"folder": str(run.folder), "started": started}
