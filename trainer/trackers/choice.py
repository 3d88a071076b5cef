"""Which trackers a run has, by its settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trainer.config import TrainerConfig
from trainer.rundir import RunDir

if TYPE_CHECKING:
    from trainer.progress import IterationRow
    from trainer.trackers.feed import Feed


class Trackers:
    """All trackers of a run. Nothing runs before `start`.

    Args:
        config: says which; `logger` and `wandb_project`.
        run_dir: the run's folder.
        preset: the preset's name.
        record: told of troubles, as kind and text of an event; called from any thread.
    """

    def __init__(
        self,
        config: TrainerConfig,
        run_dir: RunDir,
        preset: str,
        record: Callable[[str, str], object],
    ) -> None:
        self._config = config
        self._run_dir = run_dir
        self._preset = preset
        self._record = record
        self._feeds: list[Feed] = []

    def start(self, completed_iterations: int) -> None:
        """Open them, each in a thread of its own.

        Args:
            completed_iterations: what the run goes on from.
        """
        from trainer.trackers.feed import Feed
        from trainer.trackers.tensorboard import EventFiles
        from trainer.trackers.wandb import WandbProcess

        folder, config = self._run_dir.folder, self._config
        if config.logger != "none":
            files = EventFiles(folder, completed_iterations, self._record)
            self._feeds.append(Feed("TensorBoard", files, self._record))
        if config.logger == "wandb":
            process = WandbProcess(folder, config.wandb_project, self._preset, self._record)
            self._feeds.append(Feed("W&B", process, self._record))

    def write(self, row: IterationRow) -> None:
        """Hand the metrics of one iteration to all of them, without waiting."""
        for feed in self._feeds:
            feed.write(row)

    def close(self, *, failed: bool) -> None:
        """Let them finish; none can hold up the end of the run for long.

        Args:
            failed: whether the run ended with an error.
        """
        for feed in self._feeds:
            feed.close(failed=failed)
