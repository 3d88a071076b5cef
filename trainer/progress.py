"""The iterations that a run has completed: counted, timed, written down and handed on."""

from __future__ import annotations

import math
import queue
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from trainer.rundir import RunDir
from trainer.telemetry import History

if TYPE_CHECKING:
    from trainer.loop import Trainer
    from trainer.trackers.choice import Trackers


class IterationRow(NamedTuple):
    """One completed iteration, for those who follow the run line by line."""

    iteration: int
    """Completed iterations, this one included."""
    metrics: Mapping[str, float]
    env_steps: int
    elapsed: float
    eta: float


class Progress:
    """What every iteration has brought, since the run began.

    Args:
        run_dir: the run's folder.
        num_iterations: iterations of the whole run.
        trackers: get every row too.
        iteration: completed iterations before this process.
        elapsed: seconds of training before this process.
    """

    def __init__(
        self,
        run_dir: RunDir,
        num_iterations: int,
        trackers: Trackers,
        iteration: int,
        elapsed: float,
    ) -> None:
        self.history = History()
        self.elapsed = elapsed
        """Seconds in which stages have run."""
        self._run_dir = run_dir
        self._num_iterations = num_iterations
        self._trackers = trackers
        self._first_iteration = iteration
        self._first_elapsed = elapsed
        self._metrics: dict[str, float] = {}
        self._followers: list[queue.SimpleQueue[IterationRow | None]] = []

    @property
    def mean_reward(self) -> float:
        """The newest mean reward; NaN before an episode has ended."""
        return self._metrics.get("Train/mean_reward", math.nan)

    def follow(self) -> queue.SimpleQueue[IterationRow | None]:
        """Return a queue that gets a row for every iteration, then None."""
        rows: queue.SimpleQueue[IterationRow | None] = queue.SimpleQueue()
        self._followers.append(rows)
        return rows

    def recall(self, trainer: Trainer) -> tuple[dict[str, Any], dict[int, float]]:
        """Read what was written of the iterations before this process.

        Returns:
            The fields of a snapshot that say it, and the mean reward by iteration.
        """
        mean_rewards = {}
        for row in self._run_dir.read_metrics():
            while len(self.history) + 1 < row.iteration:  # rows that a crash of the machine took
                self.history.append(len(self.history) + 1, {})
            self.history.append(row.iteration, row.metrics)
            self._metrics.update(row.metrics)
            mean_rewards[row.iteration] = row.metrics.get("Train/mean_reward", math.nan)
        fields = {
            "env_steps": trainer.env_steps,
            "steps_per_second": self._metrics.get("Perf/total_fps", math.nan),
            "metrics": MappingProxyType(dict(self._metrics)),
        }
        return fields, mean_rewards

    def complete(self, trainer: Trainer, dwell: float) -> tuple[dict[str, Any], IterationRow]:
        """Count, time and write down the iteration just completed.

        Args:
            trainer: the learner, behind its last stage.
            dwell: seconds that slow motion adds to an iteration.

        Returns:
            The fields of a snapshot that say it, and the row to hand on.
        """
        from trainer.metrics import update_view

        iteration, metrics = trainer.completed_iterations, trainer.metrics()
        view = update_view(trainer.results, trainer.action_std)
        self.elapsed += sum(trainer.stage_seconds)
        self.history.append(iteration, metrics)
        self._metrics.update(metrics)
        parts = {
            "Loss/kl_per_mini_batch": view.kl.tolist(),
            "Loss/learning_rate_per_mini_batch": view.learning_rate.tolist(),
            "Loss/clip_fraction_per_mini_batch": view.clip_fraction.tolist(),
            "Policy/std_per_action": view.action_std.tolist(),
            "Perf/stage_seconds": list(trainer.stage_seconds),
        }
        self._run_dir.append_metrics(
            iteration, trainer.env_steps, self.elapsed, {**metrics, **parts}
        )
        pace = (self.elapsed - self._first_elapsed) / (iteration - self._first_iteration)
        eta = (pace + dwell) * (self._num_iterations - iteration)
        row = IterationRow(iteration, metrics, trainer.env_steps, self.elapsed, eta)
        fields = {
            "completed_iterations": iteration,
            "env_steps": trainer.env_steps,
            "elapsed": self.elapsed,
            "eta": eta,
            "steps_per_second": metrics["Perf/total_fps"],
            "stage_seconds": tuple(trainer.stage_seconds),
            "metrics": MappingProxyType(dict(self._metrics)),
            "update": view,
        }
        return fields, row

    def hand_on(self, row: IterationRow) -> None:
        """Give a row to the trackers and to all who follow, without waiting."""
        self._trackers.write(row)
        for rows in self._followers:
            rows.put(row)

    def close(self) -> None:
        """Tell those who follow that no row will come any more."""
        for rows in self._followers:
            rows.put(None)
