"""A run of training in a thread of its own: started, watched, paused and stopped from outside.

The session's thread alone touches torch, the physics engine and the run's folder; torch is not
even imported before it starts. Others read snapshots and give commands, and never wait.
"""

from __future__ import annotations

import contextlib
import gc
import math
import queue
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from trainer.config import TrainerConfig
from trainer.describe import run_info, status
from trainer.env import Env
from trainer.keeping import CheckpointKeeper, copied
from trainer.rundir import RunDir
from trainer.stages import GateMode, Stage, StageGate, StopRequested
from trainer.telemetry import (
    Command,
    EventLog,
    Failure,
    History,
    Position,
    RolloutView,
    RunState,
    Snapshot,
    TensorSummary,
)
from trainer.threads import let_torch_threads_sleep

if TYPE_CHECKING:
    from trainer.loop import Trainer

_ROLLOUT_VIEW_INTERVAL = 0.1
"""Seconds between two pictures of a filling rollout."""

_STATUS_INTERVAL = 1.0
"""Seconds between two writings of the status while iterations go by."""

_BUILDING = "building the worlds"

_GATE_MODES = {
    Command.RUN: GateMode.RUN,
    Command.PAUSE: GateMode.PAUSE,
    Command.STEP_STAGE: GateMode.ONE_STAGE,
    Command.STEP_PHASE: GateMode.ONE_PHASE,
    Command.STEP_ITERATION: GateMode.ONE_ITERATION,
}


class IterationRow(NamedTuple):
    """One completed iteration, for those who follow the run line by line."""

    iteration: int
    """Completed iterations, this one included."""
    metrics: Mapping[str, float]
    env_steps: int
    elapsed: float
    eta: float


class Session:
    """Trains one preset in a thread named "session".

    Args:
        preset: the preset's name.
        build_env: makes the worlds; called in the session's thread.
        config: the learner's settings, with a seed.
        run_dir: the run's folder.
        device: name of the device, as a person reads it.
        notes: what a person should know of this run, a sentence each.
        resume: the state of a checkpoint of this run, to go on from.
    """

    def __init__(
        self,
        preset: str,
        build_env: Callable[[], Env],
        config: TrainerConfig,
        run_dir: RunDir,
        device: str = "cpu",
        notes: tuple[str, ...] = (),
        resume: Mapping[str, Any] | None = None,
    ) -> None:
        self.history = History()
        self.events = EventLog()
        self.run_dir = run_dir
        self.run_dir.on_trouble = self._trouble
        self._preset = preset
        self._build_env = build_env
        self._config = config
        self._device = device
        self._notes = notes
        self._resume = resume
        self._trainer: Trainer | None = None
        self._gate = StageGate(self._paused, self._do_chores, self._resumed)
        self._checkpoint_wanted = False
        self._finish_wanted = False
        self._followers: list[queue.SimpleQueue[IterationRow | None]] = []
        self._thread = threading.Thread(target=self._run, name="session")

        self._first_iteration = resume["completed_iterations"] if resume is not None else 0
        self._first_elapsed = resume["elapsed"] if resume is not None else 0.0
        # replaced at iterations and changes of state
        self._snapshot = Snapshot(
            completed_iterations=self._first_iteration, elapsed=self._first_elapsed
        )
        self._seq = 0
        self._position = Position()  # replaced at every boundary
        self._rollout_view: RolloutView | None = None
        self._rollout_view_time = 0.0
        self._metrics: dict[str, float] = {}
        self._elapsed = self._first_elapsed
        self._boundary_state: dict[str, Any] | None = None  # after the last completed iteration
        self._keeper = CheckpointKeeper(
            run_dir, config.keep_checkpoints, self._record, resumed_from=self._first_iteration
        )
        self._status_time = 0.0

    # What other threads call.

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the thread's end; returns whether it has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def follow(self) -> queue.SimpleQueue[IterationRow | None]:
        """Return a queue that gets a row for every iteration, then None. Call before `start`."""
        rows: queue.SimpleQueue[IterationRow | None] = queue.SimpleQueue()
        self._followers.append(rows)
        return rows

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot. Never blocks."""
        return replace(
            self._snapshot,
            seq=self._seq,
            position=self._position,
            rollout=self._rollout_view,
            pending=self._pending(),
        )

    def command(self, command: Command) -> None:
        """Ask for something; it happens at the next stage or iteration boundary."""
        match command:
            case Command.CHECKPOINT:
                self._checkpoint_wanted = True
                self._gate.wake()
            case Command.FINISH:
                self._finish_wanted = True
                self._gate.set_mode(GateMode.RUN)
            case Command.STOP_NOW:
                self._gate.stop()
            case _:
                self._gate.set_mode(_GATE_MODES[command])
        self._seq += 1

    # What the loop calls, in the session's thread.

    def entering(self, position: Position) -> None:
        """Publish where the loop is."""
        self._position = position
        self._seq += 1

    def leaving(self, position: Position, *, phase_ends: bool) -> None:
        """Publish what the stage brought, and wait here if a pause was asked for."""
        self._position = position
        if position.stage is Stage.STORE:
            self._look_at_rollout()
        elif position.stage is Stage.FRESH:
            self._complete_iteration()
        self._gate.passing(position.stage, phase_ends=phase_ends)

    # What the worlds call, from the session's thread or while that waits for them.

    def progress(self, text: str) -> None:
        """Publish what is being waited for, and end the waiting if a person has ended the run.

        Raises:
            StopRequested: in the session's own thread, before the first iteration.
        """
        building = self._trainer is None
        self._publish(progress=text or (_BUILDING if building else ""))
        ended = self._gate.stopping or self._finish_wanted
        if building and ended and threading.current_thread() is self._thread:
            raise StopRequested

    def notice(self, text: str) -> None:
        """Keep a sentence about the worlds with the run's events."""
        self._record("alert", text)

    # The thread.

    def _run(self) -> None:
        let_torch_threads_sleep()
        try:
            how = self._train_until_the_end()
            self._save_boundary()
            self._require_saved()
            self._end(how)
        except BaseException as error:  # the thread's last chance to say what happened
            self._fail(error)
        finally:
            if self._trainer is not None:
                self._trainer.env.close()
            for rows in self._followers:
                rows.put(None)

    def _train_until_the_end(self) -> str:
        """Build and train; returns how it ended."""
        try:
            self._write_status()  # from now on the folder is taken
            self._publish(progress="importing torch")
            self._build()
            self._train()
        except StopRequested:
            return "stopped"
        return "finished"

    def _build(self) -> None:
        from trainer.loop import Trainer  # imports torch

        self._publish(progress=_BUILDING)
        env = self._build_env()
        self._trainer = trainer = Trainer(env, self._config, self)
        if self._resume is not None:
            trainer.load_state_dict(self._resume)
            self._resume = None
            self._recall(trainer)
        self._keep_boundary()
        info = run_info(trainer, self._preset, self.run_dir.path, self._device, self._notes)
        self._publish(info=info, progress="")
        gc.collect()
        gc.freeze()  # what exists now lives as long as the run: keep collections short

    def _recall(self, trainer: Trainer) -> None:
        """Put back what was shown of the iterations before this process."""
        mean_rewards = {}
        for row in self.run_dir.read_metrics():
            while len(self.history) + 1 < row.iteration:  # rows that a crash of the machine took
                self.history.append(len(self.history) + 1, {})
            self.history.append(row.iteration, row.metrics)
            self._metrics.update(row.metrics)
            mean_rewards[row.iteration] = row.metrics.get("Train/mean_reward", math.nan)
        self._keeper.recall(mean_rewards)
        self._position = trainer.position
        self._publish(
            env_steps=trainer.env_steps,
            steps_per_second=self._metrics.get("Perf/total_fps", math.nan),
            metrics=MappingProxyType(dict(self._metrics)),
        )

    def _train(self) -> None:
        trainer = self._trainer
        assert trainer is not None
        self._publish(state=RunState.RUNNING)
        self._record("start", f"{self._preset}, seed {self._config.seed}, {self._device}")
        if done := trainer.completed_iterations:
            self._record("checkpoint", f"model_{done}.pt loaded, goes on after {done} iterations")
        while trainer.completed_iterations < self._config.num_iterations:
            trainer.iterate()
            if self._finish_wanted:
                return

    def _complete_iteration(self) -> None:
        """Report the iteration that has just ended, and keep its state."""
        trainer = self._trainer
        assert trainer is not None
        self._elapsed += sum(trainer.stage_seconds)
        self._report(trainer)
        self._keep_boundary()
        if trainer.completed_iterations % self._config.save_interval == 0:
            self._checkpoint_wanted = True
        self._do_chores()

    def _report(self, trainer: Trainer) -> None:
        """Write and publish the metrics of the iteration just completed."""
        from trainer.metrics import update_view

        iteration, metrics = trainer.completed_iterations, trainer.metrics()
        view = update_view(trainer.results, trainer.actor.std)
        self.history.append(iteration, metrics)
        self._metrics.update(metrics)
        per_mini_batch = {
            "Loss/kl_per_mini_batch": view.kl.tolist(),
            "Loss/learning_rate_per_mini_batch": view.learning_rate.tolist(),
        }
        self.run_dir.append_metrics(
            iteration, trainer.env_steps, self._elapsed, {**metrics, **per_mini_batch}
        )
        for fault in trainer.faults:
            self._record("fault", fault)
        pace = (self._elapsed - self._first_elapsed) / (iteration - self._first_iteration)
        eta = pace * (self._config.num_iterations - iteration)
        self._publish(
            completed_iterations=iteration,
            env_steps=trainer.env_steps,
            elapsed=self._elapsed,
            eta=eta,
            steps_per_second=metrics["Perf/total_fps"],
            stage_seconds=tuple(trainer.stage_seconds),
            metrics=MappingProxyType(dict(self._metrics)),
            update=view,
        )
        if time.monotonic() - self._status_time >= _STATUS_INTERVAL:
            self._write_status()
        for rows in self._followers:
            rows.put(IterationRow(iteration, metrics, trainer.env_steps, self._elapsed, eta))

    # Chores between iterations, or while paused.

    def _do_chores(self) -> None:
        if self._checkpoint_wanted:
            self._checkpoint_wanted = False
            self._save_boundary()
            self._write_status()  # names the checkpoint and the best one

    def _keep_boundary(self) -> None:
        """Copy the state of this iteration boundary: what any later stop or crash can save."""
        assert self._trainer is not None
        self._boundary_state = {
            **copied(self._trainer.state_dict()),
            "preset": self._preset,
            "device": self._device,
            "elapsed": self._elapsed,
            "mean_reward": self._metrics.get("Train/mean_reward", math.nan),
        }

    def _save_boundary(self) -> None:
        """Save the last completed iteration, unless it is on disk already."""
        if self._boundary_state is not None:
            self._keeper.save(self._boundary_state)

    def _require_saved(self) -> None:
        """Fail a run whose last iterations are nowhere: nobody may believe them safe."""
        state = self._boundary_state
        if state is not None and (lost := state["completed_iterations"] - self._keeper.newest):
            raise OSError(
                f"the last {_iterations(lost)} could not be saved in "
                f"{self.run_dir.checkpoints}: is the disk full, or the folder read-only?"
            )

    # Pausing.

    def _paused(self) -> None:
        self._publish(state=RunState.PAUSED, tensors=self._look_closely())

    def _resumed(self) -> None:
        self._publish(state=RunState.RUNNING, tensors=())

    def _pending(self) -> str:
        """What has been asked for and is not done yet."""
        if self._snapshot.state.is_over:
            return ""
        if self._gate.stopping:
            return "stops at the next stage boundary"
        if self._finish_wanted:
            return "finishes this iteration, saves and stops"
        wanted = [] if self._gate.paused_behind else [self._gate.mode.pending]
        if self._checkpoint_wanted:
            wanted.append("saves a checkpoint when this iteration ends")
        return ", ".join(part for part in wanted if part)

    # Publishing.

    def _publish(self, **changes: Any) -> None:  # noqa: ANN401 - fields of Snapshot
        self._snapshot = replace(self._snapshot, **changes)
        self._seq += 1

    def _look_at_rollout(self, *, even_if_recent: bool = False) -> None:
        now = time.perf_counter()
        if even_if_recent or now - self._rollout_view_time >= _ROLLOUT_VIEW_INTERVAL:
            from trainer.views import rollout_view

            assert self._trainer is not None
            self._rollout_view = rollout_view(self._trainer.rollout, self._position.step)
            self._rollout_view_time = now

    def _look_closely(self) -> tuple[TensorSummary, ...]:
        """Publish the rollout as it is, and describe the tensors of the present stage."""
        from trainer.tensors import stage_tensors, summarize

        assert self._trainer is not None
        self._look_at_rollout(even_if_recent=True)
        entries = stage_tensors(self._trainer, self._position.stage)
        return tuple(summarize(entry) for entry in entries)

    def _record(self, kind: str, text: str) -> None:
        self.run_dir.append_event(self.events.add(kind, text))

    def _trouble(self, sentence: str) -> None:
        self.events.add("alert", sentence)

    def _write_status(self) -> None:
        self._status_time = time.monotonic()
        self.run_dir.write_status(
            status(self._snapshot, self._preset, self._config.num_iterations, self._keeper)
        )

    def _end(self, how: str) -> None:
        done = self._snapshot.completed_iterations
        self._record("end", f"{how} after {_iterations(done)}")
        self._publish(state=RunState.FINISHED, tensors=())
        self._write_status()

    def _fail(self, error: BaseException) -> None:
        """Keep what was learnt, and say what went wrong and where."""
        trace = "".join(traceback.format_exception(error))
        stage = self._position.stage if self._trainer is not None else None
        iteration = self._position.iteration + 1
        message = f"{type(error).__name__}: {error}"
        self.run_dir.append_log(trace)
        tensors: tuple[TensorSummary, ...] = ()
        if self._trainer is not None:
            self._save_boundary()
            with contextlib.suppress(Exception):  # a picture of the ruins, if there can be one
                tensors = self._look_closely()
        self._record("error", f"{message} (iteration {iteration})")
        failure = Failure(message, trace, stage, iteration)
        self._publish(state=RunState.FAILED, failure=failure, tensors=tensors, progress="")
        self._write_status()


def _iterations(number: int) -> str:
    return f"{number} iteration{'' if number == 1 else 's'}"
