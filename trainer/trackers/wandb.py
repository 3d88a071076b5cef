"""Weights & Biases, in a process of its own.

The library asks questions, starts helpers, hooks into the end of the program and may wait for the
network. None of that can reach a training that only writes lines into a pipe; and when the training
is killed the pipe ends, so that what was logged is still finished in good order.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.progress import IterationRow

ANSWER_TIME = 4.0
"""Seconds after which a person is told that W&B has not answered."""

FINISH_TIME = 4.0
"""Seconds for the last rows to be passed on; after these the process finishes on its own."""


class WandbProcess:
    """Passes rows to `trainer.trackers.wandb_process`.

    Args:
        folder: the run's folder; W&B's own files go to `wandb` in it.
        project: W&B project.
        preset: the preset's name.
        record: told what becomes of it, as kind and text of an event.
    """

    def __init__(
        self, folder: Path, project: str, preset: str, record: Callable[[str, str], object]
    ) -> None:
        self._folder = folder
        self._project = project
        self._preset = preset
        self._record = record
        self._process: subprocess.Popen[str] | None = None
        self._patience = threading.Timer(ANSWER_TIME, self._tell_of_silence)
        self._patience.daemon = True

    def open(self) -> None:
        """Start the process. What it answers is told when it comes; rows need not wait for it."""
        log = (self._folder / "log.txt").open("a", encoding="utf-8")
        with log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "trainer.trackers.wandb_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                start_new_session=True,  # keys such as Ctrl+C are for the training alone
            )
        assert self._process.stdout is not None
        threading.Thread(
            target=self._listen,
            args=(self._process.stdout,),
            name="tracker W&B answers",
            daemon=True,
        ).start()
        run = self._folder.resolve()
        self._send(
            {
                "folder": str(run),
                "project": self._project,
                "group": self._preset,
                "name": run.name,
                "id": run_id(f"{self._preset}-{run.name}"),
            }
        )
        self._patience.start()

    def write(self, row: IterationRow) -> None:
        """Pass on the metrics of one iteration."""
        numbers = {tag: value for tag, value in row.metrics.items() if math.isfinite(value)}
        about = {"env_steps": row.env_steps, "elapsed": row.elapsed}
        self._send({"step": row.iteration - 1, "metrics": about | numbers})

    def flush(self) -> None:
        """Do nothing: what was passed on is out of this process."""

    def close(self, *, failed: bool) -> None:
        """Let the process finish; where it has much to upload it goes on after us."""
        assert self._process is not None
        self._send({"exit_code": int(failed)})
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(FINISH_TIME)
        except subprocess.TimeoutExpired:
            number = self._process.pid
            self._record("alert", f"W&B has not finished; process {number} ends when it has")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except OSError:
            code = self._process.wait()
            raise OSError(f"its process ended with code {code}; see log.txt") from None

    def _listen(self, answers: IO[str]) -> None:
        """Record what the process says, a line each."""
        for line in answers:
            self._patience.cancel()
            self._record("alert", line.strip())
        self._patience.cancel()

    def _tell_of_silence(self) -> None:
        self._record("alert", f"W&B has not answered for {ANSWER_TIME:.0f} s; training goes on")


def run_id(name: str) -> str:
    """An identifier that W&B accepts, the same for every process of a run."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name)[:120]
