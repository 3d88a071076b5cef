"""What a person sees of one stage from the inside: plain data, without a tensor in it.

A screen says what it looks at with a `TraceRequest`; the session answers with a `Trace`. Both are
made of numbers, strings and NumPy arrays alone, so that they can travel to another process.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from trainer.stages import Stage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trainer.telemetry import Floats, TensorSummary

    Ints: TypeAlias = "NDArray[np.int64]"
    Flags: TypeAlias = "NDArray[np.bool_]"

ALL_COLUMNS = -1
"""In place of a column: the root mean square over all of them."""
NEWEST = -1
"""In place of a step: the newest one, wherever the loop is."""


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """What a person looks at; the session keeps it within what there is."""

    stage: Stage = Stage.OBSERVE
    world: int = 0
    """n, 0 to N - 1."""
    step: int = NEWEST
    """t, 0 to T - 1, or `NEWEST`."""
    tensor: str = ""
    """Name of the tensor opened large; empty where none is."""
    row: int = 0
    """Row of the opened tensor where its rows are neither steps nor worlds."""
    column: int = ALL_COLUMNS
    """Column of the opened tensor's last axis."""


class TermValues(NamedTuple):
    """One observation term of one world."""

    group: str
    term: str
    first: int
    """Its first column in the group."""
    values: Floats


@dataclass(frozen=True, slots=True)
class ObserveNumbers:
    """Stage 1, one world: what every term put into the row."""

    terms: tuple[TermValues, ...]


@dataclass(frozen=True, slots=True)
class ActStepNumbers:
    """Stage 2, one world: how its action came about, and what the worlds answered; A actions."""

    names: tuple[str, ...]
    mean: Floats
    std: Floats
    action: Floats
    """The sample, [A]."""
    sent: Floats
    """What the env got: clamped where `clip_actions` is set, [A]."""
    clip_actions: float | None
    log_prob: float
    value: float
    reward: float
    """NaN before the worlds have answered."""
    terminated: bool
    time_out: bool
    reward_terms: tuple[tuple[str, float], ...]
    """Weight x value x step_dt of each term, where the env tells."""


class RowField(NamedTuple):
    """One field of row t of one world, around `store`."""

    name: str
    cached: Floats | None
    """What the record holds that `store` copies, [width]."""
    before: Floats | None
    """What the row held before: left over from the last rollout; None where nobody looked."""
    after: Floats | None
    """What it holds now; None before `store`."""


@dataclass(frozen=True, slots=True)
class StoreNumbers:
    """Stage 3, one world: its row before and after."""

    step: int
    """t of the row."""
    cursor: int
    """Rows filled."""
    fields: tuple[RowField, ...]
    reward: float
    """As the worlds gave it; NaN where the row is not the newest."""
    value: float
    time_out: bool
    gamma: float


@dataclass(frozen=True, slots=True)
class TargetsNumbers:
    """Stage 4, one world: the backward scan; all arrays [T]."""

    rewards: Floats
    """With the time-out bootstrap added."""
    values: Floats
    dones: Flags
    deltas: Floats
    raw: Floats
    """Advantages before normalisation: returns - values."""
    advantages: Floats
    """As the update reads them."""
    returns: Floats
    last_value: float
    """V(obs_T)."""
    gamma: float
    lam: float
    mean: float
    """Of the raw advantages of all worlds; NaN where they are not normalised over the rollout."""
    std: float


@dataclass(frozen=True, slots=True)
class SampleNumbers:
    """Stage 5: which transitions make which mini-batch."""

    num_envs: int
    mini_batch_size: int
    place: int
    """Where the chosen transition stands in the order in which mini-batches read, 0 to B - 1."""
    whole_worlds: bool
    """Whether mini-batches are whole worlds, as networks with a memory need them."""
    heads: Ints
    """First flat indices of each mini-batch, [mini-batches, some]."""
    window: Ints
    """Mini-batch of every step of some worlds around the chosen one, [T, some]."""
    first_world: int
    """The world of the window's first column."""


@dataclass(frozen=True, slots=True)
class Rescored:
    """One transition as the update last saw it."""

    mini_batch: int
    epoch: int
    old_log_prob: float
    ratio: float
    advantage: float
    """As stored: normalised over the rollout, or not at all where mini-batches do that."""


@dataclass(frozen=True, slots=True)
class OptimizeNumbers:
    """Stage 6: the optimizer steps so far, in the order run (U), and the newest one in full."""

    epoch: int
    mini_batch: int
    kl: Floats
    """[U]"""
    learning_rate: Floats
    """Used by each step, [U]."""
    clip_fraction: float
    surrogate: float
    value_loss: float
    entropy: float
    value_loss_coef: float
    entropy_coef: float
    actor_grad_norm: float
    critic_grad_norm: float
    max_grad_norm: float
    clip_param: float
    desired_kl: float | None
    """None where the schedule is fixed."""
    num_mini_batches: int
    num_learning_epochs: int
    ratio_edges: Floats
    ratio_counts: Ints
    """Of the newest mini-batch."""
    chosen: Rescored | None
    """The chosen transition; None before its mini-batch has had its turn."""


@dataclass(frozen=True, slots=True)
class FreshNumbers:
    """Stage 7: what stays and what does not."""

    cursor: int
    num_steps: int
    weights: str
    """Fingerprint of all parameters, hexadecimal."""
    num_parameters: int
    obs_group: str
    obs: Floats
    """obs_T of the chosen world, its first columns."""
    obs_names: tuple[str, ...]
    episode_length: int
    """Of the chosen world's running episode."""
    num_tensors: int
    """Of the rollout."""
    num_bytes: int
    completed_iterations: int


Numbers: TypeAlias = (
    ObserveNumbers
    | ActStepNumbers
    | StoreNumbers
    | TargetsNumbers
    | SampleNumbers
    | OptimizeNumbers
    | FreshNumbers
)


@dataclass(frozen=True, slots=True)
class TensorView:
    """One tensor opened large."""

    name: str
    rows: str
    """Symbol of the picture's vertical axis: t, column, out."""
    columns: str
    """Symbol of its horizontal axis: n, in, sample."""
    num_rows: int
    num_columns: int
    """Entries along each axis before they were binned."""
    row: int
    column: int
    """Where the cursor is, in entries."""
    picture: Floats
    """Means of the finite entries of each bin, [R, C]; NaN where a bin has none."""
    bad: Flags
    """Bins with NaN or infinity, [R, C]."""
    dones: Flags
    """Bins in which an episode ended, [R, C]; only for a tensor over steps and worlds."""
    value: float
    """The entry under the cursor (the root mean square of its columns where all are shown)."""
    row_names: tuple[str, ...]
    """Names of the picture's rows, where the env has them."""
    depth_names: tuple[str, ...]
    """Names of the last axis where it is none of the picture's; else empty."""
    depth: Floats
    """The entries along the last axis under the cursor."""
    depth_column: int
    """Which of them the picture shows, or `ALL_COLUMNS`."""
    along: Floats
    """The picture's column under the cursor, from top to bottom; binned where it is very long."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One stage, seen from the inside."""

    request: TraceRequest
    """What was asked for, within what there is."""
    behind: Stage
    """The stage that had just run when this was seen."""
    iteration: int
    """Index of the iteration that was running, from 0."""
    filled: int
    """Rows of the rollout filled then."""
    has_run: bool
    """Whether the stage had run in that iteration; else its tensors are older."""
    in_full: bool
    """Seen while paused; else between two iterations, with statistics of a part of the entries."""
    tensors: tuple[TensorSummary, ...]
    numbers: Numbers | None
    """None where the stage has never run."""
    view: TensorView | None
    """The tensor opened large."""


class Verdict(StrEnum):
    """What is known of an invariant."""

    UNCHECKED = "not checked yet"
    HOLDS = "ok"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class InvariantState:
    """One invariant, and what checking it has shown."""

    name: str
    stage: Stage
    statement: str
    """What must hold, in a line."""
    method: str
    """How it is checked."""
    verdict: Verdict = Verdict.UNCHECKED
    iteration: int = 0
    """Counted from 1: where it broke first; else where it was last found to hold; 0: never."""
    detail: str = ""
    """Where broken: what was found."""


class CheckCost(NamedTuple):
    """What checking the invariants costs."""

    seconds: float
    """All checks of one iteration, in CPU time of the session's thread."""
    share: float
    """Of the time of all iterations."""
    every: int
    """Checked is every iteration, or every so many."""


def worst(states: tuple[InvariantState, ...], stage: Stage | None = None) -> Verdict:
    """Sum up the invariants of a stage, or of all: broken if one is, ok if all that ran are."""
    verdicts = {state.verdict for state in states if stage in (None, state.stage)}
    for verdict in (Verdict.BROKEN, Verdict.HOLDS):
        if verdict in verdicts:
            return verdict
    return Verdict.UNCHECKED
