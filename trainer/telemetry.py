"""What the session shows of itself: frozen snapshots, bounded histories and events.

The session thread writes, any other thread reads, and neither waits for the other: a snapshot is
replaced by reference, arrays inside it are never written again.

NumPy is imported with the first curve, so that the menu is there at once.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from trainer.control import Control, Request
from trainer.history import Curve as Curve
from trainer.history import History as History
from trainer.stages import Stage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trainer.pose import RobotPose, RobotRequest
    from trainer.trace import CheckCost, InvariantState, Trace, TraceRequest

Floats: TypeAlias = "NDArray[np.float32]"


class RunState(StrEnum):
    """Where a session stands."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"
    """Seen from outside: its process is gone without a farewell."""

    @property
    def is_over(self) -> bool:
        """Whether the session will do nothing more."""
        return self in (RunState.FINISHED, RunState.FAILED, RunState.KILLED)


class Position(NamedTuple):
    """Where the loop is; replaced at every stage boundary."""

    iteration: int = 0
    """Index of the running iteration, from 0."""
    stage: Stage = Stage.OBSERVE
    """The stage that runs, or behind which the loop is paused."""
    step: int = 0
    """t: rows of the rollout that are filled, 0 to T."""
    epoch: int = 0
    """Index of the learning epoch, from 0."""
    mini_batch: int = 0
    """Index of the mini-batch in its epoch, from 0."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What stays the same for the whole run."""

    preset: str
    run_dir: str
    seed: int
    device: str
    num_envs: int
    num_steps_per_env: int
    num_iterations: int
    num_mini_batches: int
    num_learning_epochs: int
    num_actions: int
    observation_groups: Mapping[str, int]
    """Width O_g of each observation group."""
    observation_terms: Mapping[str, tuple[tuple[str, int], ...]]
    reward_terms: Mapping[str, float]
    """Weight of each reward term."""
    step_dt: float
    max_episode_length: int
    clip_param: float
    desired_kl: float | None
    """None where the schedule is fixed."""
    max_grad_norm: float = 1.0
    """Largest gradient norm of actor and of critic, each clipped on its own."""
    notes: tuple[str, ...] = ()
    """What a person should know of this run, a sentence each (no GPU: fewer worlds)."""
    command_ranges: Mapping[str, Mapping[str, tuple[float, float]]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """For each command what its parts are drawn from, low and high; empty without commands."""
    world_size: int = 1
    """Processes that train together, each with N worlds of its own."""
    decimation: int | None = None
    """Physics ticks of an env step; None where the worlds do not tell."""
    nan_guard: bool | None = None
    """Whether a world whose physics goes bad ends alone; None where the worlds do not tell."""
    own_terms: tuple[str, ...] = ()
    """A person's own files with parts of the worlds, which a resume must name again."""

    @property
    def batch_size(self) -> int:
        """B = N T, the transitions of one rollout."""
        return self.num_envs * self.num_steps_per_env

    @property
    def mini_batch_size(self) -> int:
        """M, the samples of one optimizer step."""
        return self.batch_size // self.num_mini_batches

    @property
    def updates_per_iteration(self) -> int:
        """Optimizer steps of one iteration."""
        return self.num_mini_batches * self.num_learning_epochs


@dataclass(frozen=True, slots=True)
class RolloutView:
    """The rollout rectangle, its worlds binned to a few columns."""

    reward: Floats
    """Mean reward of each bin, [T, bins]; NaN where the row is not filled yet."""
    done: NDArray[np.bool_]
    """Whether an episode ended in the bin, [T, bins]."""
    num_envs: int
    filled: int
    """Rows that belong to the present rollout."""
    value: Floats | None = None
    """Mean V of each bin, [T, bins]; NaN where the row is not filled yet."""
    advantage: Floats | None = None
    """Mean advantage of each bin, [T, bins]; None before the rollout is full."""
    terminated: Floats | None = None
    """Share of the bin's worlds whose episode ended other than by its time, [T, bins]; NaN where
    that is not known, as in rows that are not filled yet or that nobody watched."""
    time_out: Floats | None = None
    """Share of those whose time was over, [T, bins]; NaN as above."""
    td_error: Floats | None = None
    """Mean of r + gamma V(next) - V, [T, bins]; NaN in the last row until its next V is known."""
    action_norm: Floats | None = None
    """Mean length of the action, as sampled, [T, bins]; NaN where the row is not filled yet."""
    log_prob: Floats | None = None
    """Mean log density of the action, [T, bins]; NaN where the row is not filled yet."""


@dataclass(frozen=True, slots=True)
class EpisodesView:
    """The last episodes that have finished, one by one; of several ranks those of rank 0."""

    returns: Floats
    """Sum of the env's rewards of each, [K]; in no order."""
    lengths: Floats
    """Env steps of each, [K]; in the same order."""


@dataclass(frozen=True, slots=True)
class UpdateView:
    """One update, mini-batch by mini-batch in the order run; U = epochs x mini-batches."""

    kl: Floats
    """Mean KL(old || new) before each optimizer step, [U]."""
    learning_rate: Floats
    """Rate used by each optimizer step, [U]."""
    clip_fraction: Floats
    """Share of ratios outside 1 +- clip_param, [U]."""
    ratio_edges: Floats
    """Bin edges of the ratio histograms, [bins + 1]; the outer bins take what lies beyond."""
    ratio_first: NDArray[np.int64]
    """Histogram of the first mini-batch's ratios, [bins]: all 1 while the policy has not moved."""
    ratio_last: NDArray[np.int64]
    """Histogram of the last mini-batch's ratios, [bins]."""
    action_std: Floats
    """Standard deviation of each action, [A]."""


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """One tensor of a stage, described while the loop is paused."""

    name: str
    symbols: str
    """Symbolic shape, such as "[T,N,O_policy]"."""
    shape: tuple[int, ...]
    dtype: str
    device: str
    num_bytes: int
    min: float
    max: float
    mean: float
    std: float
    """min, max, mean and std are over the finite entries; NaN where there is none."""
    nan: int
    inf: int
    bad_index: tuple[int, ...] = ()
    """Where the first entry that is not finite stands; empty where all are."""
    bad_name: str = ""
    """The observation term, reward term or action that its last axis belongs to, if known."""
    histogram: tuple[int, ...] | None = None
    """Finite entries in even bins from `min` to `max`; None where all are equal."""
    update_ratio: float = math.nan
    """log10 of the last update's norm over the weights' norm; only for a parameter."""


class Culprit(NamedTuple):
    """The first number of a failed run that was not finite."""

    quantity: str
    """The tensor, such as "observations policy" or "returns"."""
    stage: Stage
    """The stage that computes it; a later one may have found it."""
    value: float
    """NaN or infinity."""
    step: int | None = None
    """t, 0 to T - 1; T for obs_T, which follows on the last step; None where it has none."""
    world: int | None = None
    """n, 0 to N - 1; None where it belongs to no world, such as a weight."""
    column: int | None = None
    """In the tensor's last axis; None where that has one column."""
    term: str = ""
    """The observation term, reward term or action that it belongs to, if known."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a session failed."""

    message: str
    """One line: the kind of error and what it says."""
    traceback: str
    stage: Stage | None
    iteration: int
    out_of_memory: bool = False
    hint: str = ""
    """What to try, where that follows from the numbers of this run."""
    culprit: Culprit | None = None
    """The first number that was not finite, where one was the cause."""
    run_dir: str = ""
    """The run's folder, which is known before the worlds are."""
    looked_at: tuple[str, ...] = ()
    """Where a number was not finite: a line for each side, physics, task and learner, with what of
    it was examined and how it was."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that the screen shows, but for curves and events."""

    seq: int = 0
    """Grows by one with every snapshot."""
    state: RunState = RunState.STARTING
    progress: str = ""
    """While starting or stopping: what is being done."""
    position: Position = field(default_factory=Position)
    info: RunInfo | None = None
    """None until the worlds are built."""
    pending: str = ""
    """What a key asked for and the next boundary will do, e.g. "pauses behind act_step"."""
    completed_iterations: int = 0
    env_steps: int = 0
    """Env steps of all worlds in the whole run."""
    elapsed: float = 0.0
    """Seconds of training, pauses left out."""
    eta: float = float("nan")
    """Seconds to the last iteration; NaN until one has been timed."""
    steps_per_second: float = float("nan")
    stage_seconds: tuple[float, ...] = (0.0,) * len(Stage)
    """Seconds each stage took in the last complete iteration, pauses left out."""
    metrics: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Last value of every tag seen so far."""
    rollout: RolloutView | None = None
    update: UpdateView | None = None
    episodes: EpisodesView | None = None
    """The last ones that have finished; only in a `boundary` that somebody looked at."""
    tensors: tuple[TensorSummary, ...] = ()
    """The tensors of the stage behind which the loop is paused; empty while it runs."""
    trace: Trace | None = None
    """The newest answer to `SessionView.look`."""
    robot: RobotPose | None = None
    """The newest answer to `SessionView.watch_robot`."""
    invariants: tuple[InvariantState, ...] = ()
    """What checking the stages has shown; replaced at iterations and pauses."""
    check_cost: CheckCost | None = None
    """What that costs."""
    control: Control = field(default_factory=Control)
    """What holds of pausing, slow motion, breakpoints and edits."""
    boundary: Snapshot | None = None
    """How things stood when the last iteration ended, with the whole rollout; None before."""
    failure: Failure | None = None


class Event(NamedTuple):
    """Something worth a line in the log."""

    time: float
    """Unix time, seconds."""
    kind: str
    """start, checkpoint, rate, pause, command, edit, break, fault, alert, end or error."""
    text: str
    iteration: int = 0
    """The iteration in which it happened, from 1, or at whose end; 0: not known."""


class EventLog:
    """The last events of a run; one thread writes, others read."""

    def __init__(self, capacity: int = 1000) -> None:
        self._events: deque[Event] = deque(maxlen=capacity)
        self._count = 0
        self._lock = threading.Lock()

    def add(self, kind: str, text: str, iteration: int = 0) -> Event:
        """Append an event that happens now, in the given iteration."""
        event = Event(time.time(), kind, text, iteration)
        self.put(event)
        return event

    def put(self, event: Event) -> None:
        """Append an event that happened elsewhere or before."""
        with self._lock:
            self._events.append(event)
            self._count += 1

    def recall(self, events: Iterable[Event]) -> None:
        """Append what happened before this log began."""
        for event in events:
            self.put(event)

    def since(self, count: int) -> tuple[int, list[Event]]:
        """Return the number of events so far, and those after the first `count` still kept."""
        with self._lock:
            new = self._count - count
            kept = list(self._events)
            return self._count, kept[max(0, len(kept) - new) :] if new > 0 else []


class Command(StrEnum):
    """What a person may ask of a running session."""

    RUN = "run"
    PAUSE = "pause"
    STEP_STAGE = "step one stage"
    STEP_PHASE = "step one phase"
    STEP_ITERATION = "step one iteration"
    CHECKPOINT = "checkpoint now"
    FINISH = "finish the iteration, save and stop"
    STOP_NOW = "stop at the next stage boundary"
    LET_GO = "pause and slow down for nothing: nobody is there"


class SessionView(Protocol):
    """What a screen may know of a session: live here, live elsewhere, recorded, or a fake one."""

    history: History
    events: EventLog

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot. Never blocks."""
        ...

    def command(self, command: Command) -> None:
        """Ask for something. Never blocks; the answer is seen in snapshots and events."""
        ...

    def control(self, request: Request) -> None:
        """Ask for something that takes an argument. Never blocks; see `Snapshot.control`."""
        ...

    def look(self, request: TraceRequest | None) -> None:
        """Say what a person looks at, None for nothing. Never blocks; see `Snapshot.trace`.

        Answered at once while paused, else between two iterations, a few times a second at most.
        """
        ...

    def watch_robot(self, request: RobotRequest | None) -> None:
        """Say which robot a person looks at, None for none. Never blocks; see `Snapshot.robot`.

        Answered a few times a second while somebody looks; the last who asks is answered.
        """
        ...
