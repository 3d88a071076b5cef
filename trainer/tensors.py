"""Every tensor of a stage, by name and symbolic shape, described for a person who looks at it.

Symbols: T steps, N worlds, B = N T, M samples of a mini-batch, A actions, O_g width of a group.
With a memory: L layers of width H; K mini-batches of W worlds, each cut into P pieces of at most S
steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trainer.loop import Trainer
from trainer.mini_batches import ShuffledRows, WorldBlocks
from trainer.recurrent import Sequences
from trainer.rollout import Samples
from trainer.stages import Stage
from trainer.telemetry import TensorSummary

HISTOGRAM_BINS = 48
EXACT_UP_TO = 1 << 20
"""Entries that are described in float64; more than that in the tensor's own type."""
PART = 1 << 15
"""Entries that a description of a part looks at, evenly spaced."""


class NamedTensor(NamedTuple):
    """A tensor with its name and its symbolic shape."""

    name: str
    symbols: str
    tensor: Tensor
    columns: tuple[str, ...] = ()
    """What each entry of the last axis is, where the env has a name for it."""
    update_ratio: Tensor | None = None
    """Norm of the last update over the norm of the weights, for a parameter, []."""


def stage_tensors(trainer: Trainer, stage: Stage) -> list[NamedTensor]:
    """The tensors that a stage reads and writes, as they are behind it."""
    return list(_TENSORS_OF[stage](trainer))


@torch.no_grad()
def summarize(entry: NamedTensor, *, in_full: bool = True) -> TensorSummary:
    """Describe one tensor: shape, type, size, statistics of its finite entries, a histogram.

    Args:
        entry: the tensor.
        in_full: look at all entries; else at about `PART` of them, evenly spaced.
    """
    tensor = entry.tensor.detach()
    flat = tensor.flatten()
    if not in_full and flat.numel() > PART:
        flat = flat[:: flat.numel() // PART]
    exact = not flat.is_floating_point() or flat.numel() <= EXACT_UP_TO
    values = flat.double() if exact else flat
    nan = inf = 0
    finite = values
    if values.numel() and not math.isfinite(values.sum().item()):
        nan = int(values.isnan().sum())
        inf = int(values.isinf().sum())
        finite = values[values.isfinite()]
    low = high = mean = std = math.nan
    counts = None
    if finite.numel():
        spread, centre = torch.std_mean(finite, correction=0)
        low, high, mean, std = torch.stack((*torch.aminmax(finite), centre, spread)).tolist()
        counts = _histogram(finite, low, high)
    bad = first_bad(tensor) if nan or inf else ()
    ratio = entry.update_ratio
    return TensorSummary(
        name=entry.name,
        symbols=entry.symbols,
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        device=str(tensor.device),
        num_bytes=tensor.numel() * tensor.element_size(),
        min=low,
        max=high,
        mean=mean,
        std=std,
        nan=nan,
        inf=inf,
        bad_index=bad,
        bad_name=entry.columns[bad[-1]] if bad and bad[-1] < len(entry.columns) else "",
        histogram=counts,
        update_ratio=math.log10(r) if ratio is not None and (r := ratio.item()) > 0 else math.nan,
    )


def _histogram(finite: Tensor, low: float, high: float) -> tuple[int, ...] | None:
    """Count entries in even bins from the smallest to the largest."""
    if not math.isfinite(high - low) or not low < high:
        return None
    counts = torch.histc(finite.double(), HISTOGRAM_BINS, low, high)
    return tuple(int(count) for count in counts.tolist())


def first_bad(tensor: Tensor) -> tuple[int, ...]:
    """Index of the first entry that is NaN or infinite, in the order of memory; () if none is."""
    bad = ~tensor.isfinite()
    if not tensor.ndim or not bool(bad.any()):
        return ()
    flat = int(bad.flatten().to(torch.uint8).argmax())
    return tuple(int(part) for part in torch.unravel_index(torch.tensor(flat), tensor.shape))


def observation_columns(trainer: Trainer, group: str) -> tuple[str, ...]:
    """Name the columns of a group: `base_lin_vel[0]`; a term of width 1 by its name alone."""
    return tuple(
        f"{term}[{i}]" if width > 1 else term
        for term, width in trainer.env.observation_terms.get(group, ())
        for i in range(width)
    )


def action_columns(trainer: Trainer) -> tuple[str, ...]:
    """Name the columns of an action."""
    return tuple(trainer.env.action_names)


def reward_term_values(trainer: Trainer) -> Tensor | None:
    """Weight x value x step_dt of each reward term on the last step, [R, N], if the env tells."""
    values: Tensor | None = getattr(trainer.env, "reward_values", None)
    return values if values is not None and len(values) else None


def last_updates(trainer: Trainer) -> dict[Tensor, Tensor]:
    """Norm of the last optimizer step over the norm of the weights, for each parameter, [] each.

    Derived from what the optimizer keeps, so nothing has to be kept between two steps.
    """
    found = {}
    for group in trainer.learner.optimizer.param_groups:
        for parameter in group["params"]:
            state = trainer.learner.optimizer.state.get(parameter, {})
            if (step := _last_step(parameter, state, group)) is not None:
                size = parameter.detach().norm().clamp_min(1e-30)
                found[parameter] = group["lr"] * step.norm() / size
    return found


def _last_step(
    parameter: Tensor, state: Mapping[str, Tensor], group: Mapping[str, Any]
) -> Tensor | None:
    """The last step at a rate of 1, of Adam (Kingma and Ba 2015), RMSprop or plain descent."""
    if "exp_avg" in state:
        beta1, beta2 = group["betas"]
        first = state["exp_avg"] / (1 - beta1 ** state["step"])
        second = state["exp_avg_sq"] / (1 - beta2 ** state["step"])
        step: Tensor = first / (second.sqrt() + group["eps"])
        return step
    if parameter.grad is None:
        return None
    if "square_avg" in state:
        scaled: Tensor = parameter.grad / (state["square_avg"].sqrt() + group["eps"])
        return scaled
    return parameter.grad


def _observe(trainer: Trainer) -> Iterator[NamedTensor]:
    """The newest observation; behind store it is the row just written."""
    observations = trainer.obs
    if observations is None:
        row = max(trainer.position.step - 1, 0)
        observations = {group: obs[row] for group, obs in trainer.rollout.observations.items()}
    for group, obs in observations.items():
        names = observation_columns(trainer, group)
        yield NamedTensor(f"obs.{group}", f"[N,O_{group}]", obs, names)
    yield NamedTensor("episode_length", "[N]", trainer.env.episode_length)


def _act_step(trainer: Trainer) -> Iterator[NamedTensor]:
    yield from _observe(trainer)
    actions = action_columns(trainer)
    if trainer.decision is not None and trainer.values is not None:
        action, log_prob, mean, std, _ = trainer.decision
        yield NamedTensor("action", "[N,A]", action, actions)
        yield NamedTensor("mean", "[N,A]", mean, actions)
        yield NamedTensor("std", "[A]" if std.ndim == 1 else "[N,A]", std, actions)
        yield NamedTensor("log_prob", "[N,1]", log_prob)
        yield NamedTensor("value", "[N,1]", trainer.values)
    if (feedback := trainer.feedback) is not None:
        yield NamedTensor("reward", "[N]", feedback.reward)
        yield NamedTensor("terminated", "[N]", feedback.terminated)
        yield NamedTensor("time_outs", "[N]", feedback.time_outs)
        if (terms := reward_term_values(trainer)) is not None:
            names = tuple(trainer.env.reward_terms)
            yield NamedTensor("reward_terms", "[N,R]", terms.T, names)
    yield from _hidden_states(trainer)


def _store(trainer: Trainer) -> Iterator[NamedTensor]:
    """The filled rows of the rollout."""
    rollout, filled = trainer.rollout, trainer.position.step
    for group, obs in rollout.observations.items():
        names = observation_columns(trainer, group)
        yield NamedTensor(f"rollout.obs.{group}", f"[T,N,O_{group}]", obs[:filled], names)
    actions = action_columns(trainer)
    for name, symbols, tensor, names in (
        ("actions", "[T,N,A]", rollout.actions, actions),
        ("rewards", "[T,N,1]", rollout.rewards, ()),
        ("dones", "[T,N,1]", rollout.dones, ()),
        ("values", "[T,N,1]", rollout.values, ()),
        ("log_probs", "[T,N,1]", rollout.log_probs, ()),
        ("means", "[T,N,A]", rollout.means, actions),
        ("stds", "[T,N,A]", rollout.stds, actions),
    ):
        yield NamedTensor(f"rollout.{name}", symbols, tensor[:filled], names)


def _targets(trainer: Trainer) -> Iterator[NamedTensor]:
    yield from _observe(trainer)
    rollout = trainer.rollout
    if trainer.last_values is not None:
        yield NamedTensor("last_values", "[N,1]", trainer.last_values)
    yield NamedTensor("rollout.rewards", "[T,N,1]", rollout.rewards)
    yield NamedTensor("rollout.dones", "[T,N,1]", rollout.dones)
    yield NamedTensor("rollout.values", "[T,N,1]", rollout.values)
    yield NamedTensor("rollout.advantages", "[T,N,1]", rollout.advantages)
    yield NamedTensor("rollout.returns", "[T,N,1]", rollout.returns)


def _sample(trainer: Trainer) -> Iterator[NamedTensor]:
    """The rollout, and the order in which the mini-batches read it."""
    yield from _store(trainer)
    yield NamedTensor("rollout.advantages", "[T,N,1]", trainer.rollout.advantages)
    yield NamedTensor("rollout.returns", "[T,N,1]", trainer.rollout.returns)
    if isinstance(trainer.mini_batches, ShuffledRows):
        yield NamedTensor("permutation", "[B]", trainer.mini_batches.permutation)
    elif isinstance(trainer.mini_batches, WorldBlocks):
        yield NamedTensor("worlds", "[K,W]", trainer.mini_batches.worlds)


def _optimize(trainer: Trainer) -> Iterator[NamedTensor]:
    if (batches := trainer.mini_batches) is not None:
        rows = "T,W" if isinstance(batches, WorldBlocks) else "M"
        batch = batches[trainer.position.mini_batch]
        for name, symbols, tensor, names in _batch_fields(trainer, batch, rows):
            yield NamedTensor(f"mini_batch.{name}", symbols, tensor, names)
    if trainer.results:
        yield NamedTensor("ratio", "[M]", trainer.results[-1].ratio)
    yield from _parameters(trainer, gradients=True)


def _fresh(trainer: Trainer) -> Iterator[NamedTensor]:
    yield from _observe(trainer)
    yield from _parameters(trainer, gradients=False)


def _batch_fields(
    trainer: Trainer, batch: Samples, rows: str
) -> Iterator[tuple[str, str, Tensor, tuple[str, ...]]]:
    for group, obs in batch.observations.items():
        yield f"obs.{group}", f"[{rows},O_{group}]", obs, observation_columns(trainer, group)
    actions = action_columns(trainer)
    for name, width, names in (
        ("actions", "A", actions),
        ("values", "1", ()),
        ("log_probs", "1", ()),
        ("advantages", "1", ()),
        ("returns", "1", ()),
        ("means", "A", actions),
        ("stds", "A", actions),
    ):
        yield name, f"[{rows},{width}]", getattr(batch, name), names


def _hidden_states(trainer: Trainer) -> Iterator[NamedTensor]:
    for network in ("actor", "critic"):
        for index, state in enumerate(getattr(trainer, f"{network}_hidden")):
            yield NamedTensor(f"{network}_hidden.{index}", "[L,N,H]", state)


def _trajectories(sequences: Sequences) -> Iterator[NamedTensor]:
    """The pieces of a recurrent mini-batch, and the hidden states with which they begin."""
    yield NamedTensor("mini_batch.masks", "[S,P]", sequences.trajectories.masks)
    yield NamedTensor("mini_batch.worlds", "[P]", sequences.trajectories.worlds)
    for network, hidden in (
        ("actor", sequences.actor_hidden),
        ("critic", sequences.critic_hidden),
    ):
        for index, state in enumerate(hidden):
            yield NamedTensor(f"mini_batch.{network}_hidden.{index}", "[L,P,H]", state)


def _parameters(trainer: Trainer, *, gradients: bool) -> Iterator[NamedTensor]:
    updates = last_updates(trainer)
    for model in ("actor", "critic"):
        for name, parameter in getattr(trainer, model).named_parameters():
            symbols = _symbols_of(name, parameter)
            yield NamedTensor(
                f"{model}.{name}", symbols, parameter, update_ratio=updates.get(parameter)
            )
            if gradients and parameter.grad is not None:
                yield NamedTensor(f"{model}.{name}.grad", symbols, parameter.grad)


def _symbols_of(name: str, parameter: Tensor) -> str:
    """A layer's weight is [out,in], its bias [out]; the noise has a value for each action."""
    if name.startswith("distribution."):
        return "[A]"
    return "[out,in]" if parameter.ndim == 2 else "[out]"


_TENSORS_OF = {
    Stage.OBSERVE: _observe,
    Stage.ACT_STEP: _act_step,
    Stage.STORE: _store,
    Stage.TARGETS: _targets,
    Stage.SAMPLE: _sample,
    Stage.OPTIMIZE: _optimize,
    Stage.FRESH: _fresh,
}
