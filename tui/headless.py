"""The plain front end: one line an iteration, no matter what is at the other end of the output."""

from __future__ import annotations

import contextlib
import queue
import signal
import sys
from typing import TextIO

from trainer.progress import IterationRow
from trainer.session import Session
from trainer.telemetry import Command, Event, RunInfo
from tui.detached import served, watch_command
from tui.draw.numbers import duration, number, plural
from tui.draw.spans import printable
from tui.exit_codes import exit_code
from tui.farewell import farewell
from tui.output import is_reader_gone
from tui.stopping import Signals, listening

LOOK_INTERVAL = 0.1
"""Seconds after which a signal is noticed at the latest."""

SHOWN_EVENTS = ("checkpoint", "command", "fault", "alert")


def run_headless(session: Session, stream: TextIO | None = None) -> int:
    """Train `session` and print a line for every iteration; returns the exit code.

    The first SIGINT or SIGTERM saves the last completed iteration and ends the run, the second ends
    the process at once. A reader that goes away does not end the training, and neither does SIGHUP.

    Args:
        session: made, not started.
        stream: where to print; unset: the standard output.

    Returns:
        0: done. 1: failed. 3: out of memory. 128 + n: ended by signal n.
    """
    out = _Output(stream or sys.stdout, session)
    rows = session.follow()
    known, _ = session.events.since(sys.maxsize)  # of a run that is gone on with
    with listening() as signals, served(session):
        session.start()
        _follow(session, rows, out, signals, known)
        session.join()
    snapshot = session.snapshot()
    out.print(farewell(snapshot, session.events, ended=True))
    if snapshot.failure is not None:
        why = printable(snapshot.failure.message)
        print(f"{why}; see {session.run_dir.path / session.run_dir.log.name}", file=sys.stderr)
    if signals.first is not None:
        return 128 + signals.first
    return exit_code(snapshot)


def _follow(
    session: Session,
    rows: queue.SimpleQueue[IterationRow | None],
    out: _Output,
    signals: Signals,
    seen_events: int,
) -> None:
    """Print what the session reports until its end, and of its events those not seen."""
    info, stopping, hung_up = None, False, False
    out.print("starting ...")
    over = False
    while not over:
        if signals.first is not None and not stopping:
            stopping = True
            session.command(Command.STOP_NOW)
            out.print(f"{signal.Signals(signals.first).name}: saves and stops")
        if signals.hung_up and not hung_up:
            hung_up = True
            watch = watch_command(session.run_dir.path)
            session.note("terminal", f"terminal lost, training goes on; {watch}")
        row = None
        with contextlib.suppress(queue.Empty):
            row = rows.get(timeout=LOOK_INTERVAL)
            over = row is None
        if info is None and (info := session.snapshot().info) is not None:
            out.print(header(info))
        if row is not None and info is not None:
            out.print(iteration_line(row, info))
        seen_events, events = session.events.since(seen_events)
        for event in events:
            if event.kind in SHOWN_EVENTS:
                out.print(event_line(event))


def header(info: RunInfo) -> str:
    """Say in a few lines what is trained, how, and where it is kept."""
    lines = [
        f"{info.preset}  {info.device}  seed {info.seed}",
        f"  {plural(info.num_envs, 'world')} x {plural(info.num_steps_per_env, 'step')} = "
        f"{plural(info.batch_size, 'sample')} an iteration, "
        f"{plural(info.num_iterations, 'iteration')}",
        f"  run directory  {info.run_dir}",
        *(f"  note: {note}" for note in info.notes),
    ]
    return "\n".join(lines)


def iteration_line(row: IterationRow, info: RunInfo) -> str:
    """Write one iteration in a line whose columns stay where they are."""
    width = len(str(info.num_iterations))

    def metric(tag: str) -> str:
        return number(row.metrics[tag]) if tag in row.metrics else "-".rjust(7)

    return "  ".join(
        (
            f"it {row.iteration:>{width}}/{info.num_iterations}",
            f"steps {row.env_steps:>10}",
            f"steps/s {metric('Perf/total_fps')}",
            f"reward {metric('Train/mean_reward')}",
            f"length {metric('Train/mean_episode_length')}",
            f"kl {metric('Loss/kl_mean')}",
            f"lr {metric('Loss/learning_rate')}",
            f"clip {metric('Loss/clip_fraction')}",
            duration(row.elapsed),
            f"eta {duration(row.eta)}",
        )
    )


def event_line(event: Event) -> str:
    """Write an event in a line."""
    return f"  {event.kind}: {event.text}"


class _Output:
    """A stream whose reader may go away at any moment; the run's log is told once."""

    def __init__(self, stream: TextIO, session: Session) -> None:
        self._stream = stream
        self._session = session
        self._is_open = True

    def print(self, text: str) -> None:
        """Print lines at once, or not at all."""
        if not self._is_open:
            return
        try:
            print(printable(text), file=self._stream, flush=True)
        except (OSError, ValueError) as error:
            self._is_open = False
            said = f"the output cannot be written any more ({error}); training goes on without it"
            self._session.run_dir.append_log(said)
            if not (isinstance(error, OSError) and is_reader_gone(error)):
                print(said, file=sys.stderr)
