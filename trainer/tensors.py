"""Every tensor of a stage, by name and symbolic shape, described for a person who has paused.

Symbols: T steps, N worlds, B = N T, M samples of a mini-batch, A actions, O_g width of a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.loop import Trainer
from trainer.rollout import Samples
from trainer.stages import Stage
from trainer.telemetry import TensorSummary


class NamedTensor(NamedTuple):
    """A tensor with its name and its symbolic shape."""

    name: str
    symbols: str
    tensor: Tensor


def stage_tensors(trainer: Trainer, stage: Stage) -> list[NamedTensor]:
    """The tensors that a stage reads and writes, as they are behind it."""
    return list(_TENSORS_OF[stage](trainer))


def summarize(entry: NamedTensor) -> TensorSummary:
    """Describe one tensor: shape, type, size, and statistics of its finite entries."""
    tensor = entry.tensor.detach()
    values = tensor.to(torch.float64).flatten()
    finite = values[torch.isfinite(values)]
    nan = int(torch.isnan(values).sum())
    known = finite.numel() > 0
    return TensorSummary(
        name=entry.name,
        symbols=entry.symbols,
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        device=str(tensor.device),
        num_bytes=tensor.numel() * tensor.element_size(),
        min=float(finite.min()) if known else float("nan"),
        max=float(finite.max()) if known else float("nan"),
        mean=float(finite.mean()) if known else float("nan"),
        std=float(finite.std(correction=0)) if known else float("nan"),
        nan=nan,
        inf=values.numel() - finite.numel() - nan,
    )


def _observe(trainer: Trainer) -> Iterator[NamedTensor]:
    for group, obs in (trainer.obs or {}).items():
        yield NamedTensor(f"obs.{group}", f"[N,O_{group}]", obs)
    yield NamedTensor("episode_length", "[N]", trainer.env.episode_length)


def _act_step(trainer: Trainer) -> Iterator[NamedTensor]:
    yield from _observe(trainer)
    if trainer.decision is not None and trainer.values is not None:
        action, log_prob, mean, std = trainer.decision
        yield NamedTensor("action", "[N,A]", action)
        yield NamedTensor("mean", "[N,A]", mean)
        yield NamedTensor("std", "[A]", std)
        yield NamedTensor("log_prob", "[N,1]", log_prob)
        yield NamedTensor("value", "[N,1]", trainer.values)
    if (feedback := trainer.feedback) is not None:
        yield NamedTensor("reward", "[N]", feedback.reward)
        yield NamedTensor("terminated", "[N]", feedback.terminated)
        yield NamedTensor("time_outs", "[N]", feedback.time_outs)


def _store(trainer: Trainer) -> Iterator[NamedTensor]:
    """The filled rows of the rollout."""
    rollout, filled = trainer.rollout, trainer.position.step
    for group, obs in rollout.observations.items():
        yield NamedTensor(f"rollout.obs.{group}", f"[T,N,O_{group}]", obs[:filled])
    for name, symbols, tensor in (
        ("actions", "[T,N,A]", rollout.actions),
        ("rewards", "[T,N,1]", rollout.rewards),
        ("dones", "[T,N,1]", rollout.dones),
        ("values", "[T,N,1]", rollout.values),
        ("log_probs", "[T,N,1]", rollout.log_probs),
        ("means", "[T,N,A]", rollout.means),
        ("stds", "[T,N,A]", rollout.stds),
    ):
        yield NamedTensor(f"rollout.{name}", symbols, tensor[:filled])


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
    """The rollout, and its shuffled copy, of which mini-batch k is rows k M to (k + 1) M."""
    yield from _store(trainer)
    yield NamedTensor("rollout.advantages", "[T,N,1]", trainer.rollout.advantages)
    yield NamedTensor("rollout.returns", "[T,N,1]", trainer.rollout.returns)
    if (shuffled := trainer.mini_batches) is None:
        return
    yield NamedTensor("permutation", "[B]", shuffled.permutation)
    for name, symbols, tensor in _batch_fields(shuffled.shuffled, "B"):
        yield NamedTensor(f"shuffled.{name}", symbols, tensor)


def _optimize(trainer: Trainer) -> Iterator[NamedTensor]:
    if (batches := trainer.mini_batches) is not None:
        batch = batches.batches[trainer.position.mini_batch]
        for name, symbols, tensor in _batch_fields(batch, "M"):
            yield NamedTensor(f"mini_batch.{name}", symbols, tensor)
    if trainer.results:
        yield NamedTensor("ratio", "[M]", trainer.results[-1].ratio)
    yield from _parameters(trainer, gradients=True)


def _fresh(trainer: Trainer) -> Iterator[NamedTensor]:
    yield from _observe(trainer)
    yield from _parameters(trainer, gradients=False)


def _batch_fields(batch: Samples, rows: str) -> Iterator[tuple[str, str, Tensor]]:
    for group, obs in batch.observations.items():
        yield f"obs.{group}", f"[{rows},O_{group}]", obs
    for name, width in (
        ("actions", "A"),
        ("values", "1"),
        ("log_probs", "1"),
        ("advantages", "1"),
        ("returns", "1"),
        ("means", "A"),
        ("stds", "A"),
    ):
        yield name, f"[{rows},{width}]", getattr(batch, name)


def _parameters(trainer: Trainer, *, gradients: bool) -> Iterator[NamedTensor]:
    for model in ("actor", "critic"):
        for name, parameter in getattr(trainer, model).named_parameters():
            symbols = _symbols_of(name, parameter)
            yield NamedTensor(f"{model}.{name}", symbols, parameter)
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
