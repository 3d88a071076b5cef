"""A run of training in a thread of its own: started, watched, paused and stopped from outside.

The session's thread alone touches torch, the physics engine and the run's folder; torch is not
even imported before it starts. Others read snapshots and give commands, and never wait.
"""

from __future__ import annotations

import contextlib
import gc
import queue
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trainer.board import Board
from trainer.boundary import Boundary, counted
from trainer.config import TrainerConfig
from trainer.control import Request
from trainer.describe import run_info
from trainer.env import Env
from trainer.failing import failure_of
from trainer.keeping import CheckpointKeeper
from trainer.looking import Looking
from trainer.progress import IterationRow, Progress
from trainer.ranks import RankError
from trainer.robot_watch import RobotWatch
from trainer.rundir import RunDir
from trainer.stages import GateMode, Stage, StageGate, StopRequested
from trainer.steering import Steering
from trainer.telemetry import (
    Command,
    EventLog,
    History,
    Position,
    RunState,
    Snapshot,
    TensorSummary,
)
from trainer.threads import keep_torch_to_its_cores, let_torch_threads_sleep
from trainer.trackers.choice import Trackers
from trainer.wire import to_json

if TYPE_CHECKING:
    from trainer.checker import InvariantChecker
    from trainer.distributed import Group
    from trainer.loop import Trainer
    from trainer.pose import RobotRequest
    from trainer.trace import TraceRequest

Join = Callable[[Callable[[], None], Callable[[], bool]], "Group"]
"""Brings several ranks together. Its arguments: what to call, from any thread, when a rank is lost;
and what tells whether the run must end now."""

_MOST_FAULTS = 8
"""Bad worlds that an iteration names; thousands may go bad on every step."""
_BUILDING = "building the worlds"

_GATE_MODES = {
    Command.RUN: GateMode.RUN,
    Command.PAUSE: GateMode.PAUSE,
    Command.STEP_STAGE: GateMode.ONE_STAGE,
    Command.STEP_PHASE: GateMode.ONE_PHASE,
    Command.STEP_ITERATION: GateMode.ONE_ITERATION,
}


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
        join: brings the ranks of this run together, where it has several.
        num_envs: N, for a message where memory does not suffice to build them; 0: not known.
        own_terms: a person's own files with parts of the worlds, which a resume must name again.
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
        join: Join | None = None,
        num_envs: int = 0,
        own_terms: tuple[str, ...] = (),
    ) -> None:
        self.run_dir = run_dir
        self._preset = preset
        self._build_env = build_env
        self._config = config
        self._device = device
        self._notes = notes
        self._own_terms = own_terms
        self._resume = resume
        self._join = join
        self._num_envs = num_envs
        self._group: Group | None = None  # alone, it is never made
        self._trainer: Trainer | None = None
        self._checker: InvariantChecker | None = None

        iteration = resume["completed_iterations"] if resume is not None else 0
        elapsed = resume.get("elapsed", 0.0) if resume is not None else 0.0
        first = Snapshot(completed_iterations=iteration, elapsed=elapsed)
        self._board = Board(run_dir, preset, config.num_iterations, first)
        self._record = self._board.record
        self._trackers = Trackers(config, run_dir, preset, self._record)
        self._progress = Progress(
            run_dir, config.num_iterations, self._trackers, iteration, elapsed
        )
        self._keeper = CheckpointKeeper(
            run_dir, config.keep_checkpoints, self._record, resumed_from=iteration
        )
        self._boundary = Boundary(self._keeper, self._record)
        self._looking = Looking()
        self._robot = RobotWatch()
        self._gate = StageGate(self._paused, self._woken, self._resumed, self._dwelling)
        self._steering = Steering(self._gate, self._record, self._board.changed)
        self._checkpoint_wanted = False
        self._finish_wanted = False
        self._stop_wanted = False  # by a person; the gate also stops for a rank that is lost
        self._thread = threading.Thread(target=self._run, name="session")

    @property
    def history(self) -> History:
        """The curves of the run."""
        return self._progress.history

    @property
    def events(self) -> EventLog:
        """What has happened."""
        return self._board.events

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
        return self._progress.follow()

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot. Never blocks."""
        self._looking.looked_at()
        return self._read()

    def _read(self) -> Snapshot:
        return self._board.read(
            rollout=self._looking.rollout,
            robot=self._robot.pose,
            control=self._steering.control,
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
                self._steering.let_go()  # nothing may hold up the end
                self._gate.set_mode(GateMode.RUN)
            case Command.STOP_NOW:
                self._stop_wanted = True
                self._gate.stop()
            case Command.LET_GO:
                self._steering.let_go()
            case _:
                self._gate.set_mode(_GATE_MODES[command])
        self._board.changed()

    def control(self, request: Request) -> None:
        """Ask for something that takes an argument; edits are done between two iterations."""
        self._steering.take(request)

    def note(self, kind: str, text: str) -> None:
        """Keep an event that concerns the run but is not the loop's, such as a lost terminal."""
        self._record(kind, text)
        self.run_dir.append_log(text)

    def look(self, request: TraceRequest | None) -> None:
        """Say what a person looks at; answered at once while paused, else between iterations."""
        self._looking.request = request
        self._gate.wake()

    def watch_robot(self, request: RobotRequest | None) -> None:
        """Say which robot a person looks at; nothing is drawn of the worlds where nobody does."""
        self._robot.request = request
        self._gate.wake()

    # What the loop calls, in the session's thread.

    def entering(self, position: Position) -> None:
        """Publish where the loop is."""
        self._board.moved(position)
        if self._checker is not None:
            self._checker.entering(position)
        self._looking.entering(position, pauses_soon=self._gate.mode is not GateMode.RUN)

    def leaving(self, position: Position, *, phase_ends: bool) -> None:
        """Publish what the stage brought, and wait here if a pause was asked for."""
        self._board.moved(position)
        if self._checker is not None:
            self._checker.leaving(position)
        if position.stage is Stage.STORE:
            self._looking.refresh_rollout(position)
            self._robot.refresh()
        elif position.stage is Stage.TARGETS:
            self._looking.refresh_rollout(position)
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
        self._board.publish(progress=text or (_BUILDING if building else ""))
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
            self._boundary.save()
            self._boundary.require_saved()
            self._end(how)
        except BaseException as error:  # the thread's last chance to say what happened
            self._fail(error)
        finally:
            if self._group is not None:
                self._group.close()
            if self._trainer is not None:
                self._close(self._trainer.env)
            self._trackers.close(failed=self._board.newest.state is RunState.FAILED)
            self._progress.close()
            self.run_dir.release()

    def _close(self, env: Env) -> None:
        """Give the worlds back; if they refuse, all the rest is given back nevertheless."""
        try:
            env.close()
        except Exception as error:
            self._record("alert", f"the worlds did not close: {type(error).__name__}: {error}")

    def _train_until_the_end(self) -> str:
        """Build and train; returns how it ended."""
        try:
            self._board.write_status(self._keeper)  # from now on the folder is taken
            self._board.publish(progress="importing torch")
            self._build()
            self._train()
        except (StopRequested, RankError) as error:
            if not self._stop_wanted:  # then a rank may be the cause
                if self._group is not None:
                    self._group.raise_loss()
                if isinstance(error, RankError):
                    raise
            return "stopped"
        return "finished"

    def _build(self) -> None:
        from trainer.checker import InvariantChecker  # imports torch
        from trainer.loop import Trainer

        keep_torch_to_its_cores()
        if self._join is not None:
            self._group = self._join(self._gate.stop, lambda: self._gate.stopping)
            self._boundary.group = self._group
        self._board.publish(progress=_BUILDING)
        env = self._build_env()
        self._trainer = trainer = Trainer(env, self._config, self, self._group)
        self._checker = InvariantChecker(trainer)
        self._looking.attach(trainer)
        self._robot.attach(trainer)
        if self._resume is not None:
            trainer.load_state_dict(self._resume)
            self._resume = None
            self._recall(trainer)
        if self._group is not None:
            self._board.publish(progress="waiting for the other ranks")
            self._group.assemble(trainer.shared_tensors(), lambda: self._gate.stopping)
        self._keep_boundary()
        self._steering.attach(trainer.live)
        self._publish_info()
        self._board.publish(progress="")
        self._trackers.start(trainer.completed_iterations)
        gc.collect()
        gc.freeze()  # what exists now lives as long as the run: keep collections short

    def _publish_info(self) -> None:
        assert self._trainer is not None
        info = run_info(
            self._trainer,
            self._preset,
            self.run_dir.path,
            self._device,
            self._notes,
            self._own_terms,
        )
        self.run_dir.write_info(to_json(info))
        self._board.publish(info=info)

    def _recall(self, trainer: Trainer) -> None:
        """Put back what was shown of the iterations before this process."""
        fields, mean_rewards = self._progress.recall(trainer)
        self._keeper.recall(mean_rewards)
        self._board.moved(trainer.position)
        self._board.publish(**fields)

    def _train(self) -> None:
        trainer = self._trainer
        assert trainer is not None
        self._board.publish(state=RunState.RUNNING)
        self._record("start", f"{self._preset}, seed {self._config.seed}, {self._device}")
        if done := trainer.completed_iterations:
            self._record("checkpoint", f"model_{done}.pt loaded, goes on after {done} iterations")
        while trainer.completed_iterations < self._config.num_iterations:
            try:
                trainer.iterate()
            except ArithmeticError as error:  # a number that is not finite
                self._pause_at(error)
                raise
            if self._finish_wanted:
                return

    def _pause_at(self, error: ArithmeticError) -> None:
        """Let a person who asked for it look around before the run fails."""
        if self._steering.pause_for_fault(str(error)):
            with contextlib.suppress(Exception):  # the error that is there already counts
                self._gate.passing(self._board.position.stage, phase_ends=False)

    def _complete_iteration(self) -> None:
        """Report the iteration that has just ended, and keep its state."""
        trainer = self._trainer
        assert trainer is not None
        self._report(trainer)
        if self._steering.at_boundary():
            self._publish_info()
        self._keep_boundary()
        if trainer.completed_iterations % self._config.save_interval == 0:
            self._checkpoint_wanted = True
        self._do_chores()

    def _report(self, trainer: Trainer) -> None:
        """Write and publish what the iteration just completed has brought."""
        dwell = self._steering.dwell_of(trainer.num_boundaries)
        fields, row = self._progress.complete(trainer, dwell)
        for fault in trainer.faults[:_MOST_FAULTS]:
            self._record("fault", fault)
        if (more := len(trainer.faults) - _MOST_FAULTS) > 0:
            self._record("fault", f"... and {more} more in this iteration")
        self._board.publish(**fields)
        self._report_invariants()
        if self._looking.traces_now():
            self._board.publish(trace=self._looking.trace(in_full=False))
        self._remember_boundary()
        self._steering.refresh()
        self._steering.check(row.iteration, row.metrics, trainer.faults)
        self._board.write_status(self._keeper, even_if_recent=False)
        self._progress.hand_on(row)

    def _remember_boundary(self, *, even_if_recent: bool = False) -> None:
        ended = self._looking.ended(self._read(), even_if_recent=even_if_recent)
        if ended is not None:
            self._board.publish(boundary=ended)

    # Chores between iterations, or while paused.

    def _do_chores(self) -> None:
        if self._checkpoint_wanted:
            self._checkpoint_wanted = False
            self._boundary.save()
            self._board.write_status(self._keeper)  # names the checkpoint and the best one

    def _edit_while_paused(self) -> None:
        """Do the edits that wait, if an iteration has just ended; what is on disk must know."""
        if self._gate.paused_behind is Stage.FRESH and self._steering.at_boundary():
            self._publish_info()
            self._keep_boundary()
            self._boundary.renew()

    def _keep_boundary(self) -> None:
        """Keep the state of this iteration boundary: what any later stop or crash can save."""
        assert self._trainer is not None
        self._boundary.keep(
            {
                **self._trainer.state_dict(),
                "preset": self._preset,
                "device": self._device,
                "elapsed": self._progress.elapsed,
                "mean_reward": self._progress.mean_reward,
            }
        )

    # Pausing.

    def _paused(self) -> None:
        self._edit_while_paused()
        if self._board.position.stage is Stage.FRESH and self._trainer is not None:
            self._remember_boundary(even_if_recent=True)
        assert self._checker is not None
        self._checker.settle()
        self._report_invariants()
        self._robot.refresh(even_if_recent=True)
        self._board.publish(
            state=RunState.PAUSED,
            tensors=self._looking.tensors(self._board.position),
            trace=self._looking.trace(in_full=True),
        )

    def _woken(self) -> None:
        """Answer what was asked for during a pause."""
        self._edit_while_paused()
        self._do_chores()
        if self._looking.is_unanswered:
            self._board.publish(trace=self._looking.trace(in_full=True))
        if self._robot.refresh(even_if_recent=True):
            self._board.changed()

    def _dwelling(self) -> None:
        """In slow motion show every stage that has run."""
        self._looking.refresh_rollout(self._board.position)
        self._robot.refresh()
        if self._looking.request is not None:
            self._board.publish(trace=self._looking.trace(in_full=True))

    def _resumed(self) -> None:
        self._steering.resumed()
        self._board.publish(state=RunState.RUNNING, tensors=())

    def _pending(self) -> str:
        """What has been asked for and is not done yet."""
        if self._board.newest.state.is_over:
            return ""
        if self._gate.stopping:
            return "stops at the next stage boundary"
        if self._finish_wanted:
            return "finishes this iteration, saves and stops"
        wanted = [] if self._gate.paused_behind else [self._gate.pending]
        wanted += self._steering.pending
        if self._checkpoint_wanted:
            wanted.append("saves a checkpoint when this iteration ends")
        return ", ".join(part for part in wanted if part)

    # Publishing.

    def _report_invariants(self) -> None:
        """Publish what the checks have shown, and say once what broke."""
        checker = self._checker
        assert checker is not None
        for state in checker.newly_broken():
            self._record(
                "alert",
                f"invariant broken in iteration {state.iteration}, {state.stage.label}: "
                f"{state.name} ({state.detail})",
            )
        self._board.publish(invariants=checker.states, check_cost=checker.cost)

    def _end(self, how: str) -> None:
        done = self._board.newest.completed_iterations
        self._record("end", f"{how} after {counted(done)}")
        self._board.publish(state=RunState.FINISHED, tensors=())
        self._board.write_status(self._keeper)

    def _fail(self, error: BaseException) -> None:
        """Keep what was learnt, and say what went wrong and where."""
        failure = failure_of(
            error,
            self._board.position,
            self._trainer,
            run_dir=str(self.run_dir.path),
            num_envs=self._num_envs,
            has_ranks=self._group is not None,
        )
        self.run_dir.append_log(failure.traceback)
        tensors: tuple[TensorSummary, ...] = ()
        if self._trainer is not None:
            try:
                self._boundary.save()
            except Exception as second:  # such as a lack of memory, the cause of all this
                self._record("alert", f"the last iteration could not be saved: {second}")
            with contextlib.suppress(Exception):  # a picture of the ruins, if there can be one
                tensors = self._looking.tensors(self._board.position)
        self._record("error", f"{failure.message} (iteration {failure.iteration})")
        self._board.publish(state=RunState.FAILED, failure=failure, tensors=tensors, progress="")
        self._board.write_status(self._keeper)
