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
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from trainer.stages import Stage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trainer.trace import InvariantState, Trace, TraceRequest

Floats: TypeAlias = "NDArray[np.float32]"


class RunState(StrEnum):
    """Where a session stands."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    FINISHED = "finished"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        """Whether the session will do nothing more."""
        return self in (RunState.FINISHED, RunState.FAILED)


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
    tensors: tuple[TensorSummary, ...] = ()
    """The tensors of the stage behind which the loop is paused; empty while it runs."""
    trace: Trace | None = None
    """The newest answer to `SessionView.look`."""
    invariants: tuple[InvariantState, ...] = ()
    """What checking the stages has shown; replaced at iterations and pauses."""
    invariant_seconds: float = 0.0
    """What the checks of the last complete iteration took."""
    failure: Failure | None = None


class Event(NamedTuple):
    """Something worth a line in the log."""

    time: float
    """Unix time, seconds."""
    kind: str
    """start, checkpoint, rate, pause, command, fault, alert, end or error."""
    text: str


class EventLog:
    """The last events of a run; one thread writes, others read."""

    def __init__(self, capacity: int = 1000) -> None:
        self._events: deque[Event] = deque(maxlen=capacity)
        self._count = 0
        self._lock = threading.Lock()

    def add(self, kind: str, text: str) -> Event:
        """Append an event that happens now."""
        event = Event(time.time(), kind, text)
        with self._lock:
            self._events.append(event)
            self._count += 1
        return event

    def since(self, count: int) -> tuple[int, list[Event]]:
        """Return the number of events so far, and those after the first `count` still kept."""
        with self._lock:
            new = self._count - count
            kept = list(self._events)
            return self._count, kept[max(0, len(kept) - new) :] if new > 0 else []


class Curve(NamedTuple):
    """One metric over the run: for each kept bin its first iteration and its values."""

    iteration: NDArray[np.int64]
    """[K]"""
    mean: Floats
    """[K]; NaN where the tag had no value."""
    low: Floats
    """[K]; smallest value in the bin, so that spikes survive thinning."""
    high: Floats
    """[K]"""


class History:
    """Every metric of the run in bounded memory.

    A bin holds `stride` iterations; when all `capacity` bins are full, neighbours are merged and
    the stride doubles, so an hour and a week take the same room.
    """

    def __init__(self, capacity: int = 2048) -> None:
        if capacity < 2 or capacity % 2:
            raise ValueError(f"capacity must be even and at least 2, not {capacity}")
        self._capacity = capacity
        self._stride = 1
        self._iterations = 0  # iterations appended so far
        self._first = 0  # index of the first iteration (after a resume: not 0)
        self._sums: dict[str, NDArray[np.float64]] = {}
        self._counts: dict[str, NDArray[np.int64]] = {}
        self._lows: dict[str, Floats] = {}
        self._highs: dict[str, Floats] = {}
        self._lock = threading.Lock()

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags ever seen, in order of appearance."""
        with self._lock:
            return tuple(self._sums)

    def __len__(self) -> int:
        """Iterations appended so far."""
        return self._iterations

    def append(self, iteration: int, metrics: Mapping[str, float]) -> None:
        """Add the metrics of one iteration; a tag that is missing leaves a gap."""
        with self._lock:
            if self._iterations == 0:
                self._first = iteration
            if self._iterations == self._capacity * self._stride:
                self._thin()
            bin_ = self._iterations // self._stride
            for tag, value in metrics.items():
                if tag not in self._sums:
                    self._make_room(tag)
                if math.isfinite(value):
                    self._sums[tag][bin_] += value
                    self._counts[tag][bin_] += 1
                    if not self._lows[tag][bin_] <= value:  # also where it is still NaN
                        self._lows[tag][bin_] = value
                    if not self._highs[tag][bin_] >= value:
                        self._highs[tag][bin_] = value
            self._iterations += 1

    def curve(self, tag: str) -> Curve:
        """Return a copy of one metric's curve; empty for a tag that was never seen."""
        import numpy as np

        with self._lock:
            kept = -(-self._iterations // self._stride)
            iteration = self._first + np.arange(kept, dtype=np.int64) * self._stride
            if tag not in self._sums:
                gap = np.full(kept, np.nan, np.float32)
                return Curve(iteration, gap, gap, gap)
            counts = self._counts[tag][:kept]
            mean = np.full(kept, np.nan, np.float32)
            np.divide(self._sums[tag][:kept], counts, out=mean, where=counts > 0, casting="unsafe")
            return Curve(
                iteration, mean, self._lows[tag][:kept].copy(), self._highs[tag][:kept].copy()
            )

    def _make_room(self, tag: str) -> None:
        import numpy as np

        self._sums[tag] = np.zeros(self._capacity)
        self._counts[tag] = np.zeros(self._capacity, np.int64)
        self._lows[tag] = np.full(self._capacity, np.nan, np.float32)
        self._highs[tag] = np.full(self._capacity, np.nan, np.float32)

    def _thin(self) -> None:
        """Merge neighbouring bins and double the stride."""
        import numpy as np

        half = self._capacity // 2
        for tag in self._sums:
            for store, merge, empty in (
                (self._sums, np.add, 0.0),
                (self._counts, np.add, 0),
                (self._lows, np.fmin, np.nan),
                (self._highs, np.fmax, np.nan),
            ):
                values = store[tag]
                values[:half] = merge(values[0::2], values[1::2])
                values[half:] = empty
        self._stride *= 2


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

    def look(self, request: TraceRequest | None) -> None:
        """Say what a person looks at, None for nothing. Never blocks; see `Snapshot.trace`.

        Answered at once while paused, else between two iterations, a few times a second at most.
        """
        ...
