"""The state between two iterations: all that an exact continuation needs, and the way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from trainer.checkpoint import WORLDS_BEFORE, CheckpointError
from trainer.env import ProgressiveEnv
from trainer.telemetry import Position

if TYPE_CHECKING:
    from trainer.loop import Trainer


def state_of(trainer: Trainer) -> dict[str, Any]:
    """All that an exact continuation needs, valid between two iterations."""
    return {
        "actor": trainer.actor.state_dict(),
        "critic": trainer.critic.state_dict(),
        "optimizer": trainer.learner.state_dict(),
        **({} if trainer.rnd is None else {"rnd": trainer.rnd.training_state()}),
        **own_state_of(trainer),
        **({"edits": trainer.live.state_dict()} if trainer.live.edits else {}),
        "completed_iterations": trainer.completed_iterations,
        "env_steps": trainer.env_steps,
    }


def own_state_of(trainer: Trainer) -> dict[str, Any]:
    """The part of the state that is another one on every rank: its worlds and its noise."""
    return {
        "generator": trainer.generator.get_state(),
        "env": trainer.env.state_dict(),
        "obs": trainer.obs,
        "actor_hidden": list(trainer.actor_hidden),
        "critic_hidden": list(trainer.critic_hidden),
        "episodes": trainer.episodes.state_dict(),
        **({} if trainer.intrinsic is None else {"intrinsic": trainer.intrinsic.state_dict()}),
    }


def restore(trainer: Trainer, state: Mapping[str, Any]) -> None:
    """Continue from a state that `state_of` returned, bit for bit on the same device.

    Between CPU and GPU, whose engines and random numbers differ, and where the part that is a
    rank's own is missing, only the learner goes on: the worlds begin anew, as hard as they were,
    and so does the noise.

    Raises:
        CheckpointError: a part of it is missing or does not fit; named.
    """
    _restore_learner(trainer, state)
    if _has_these_worlds(trainer, state):
        _restore_worlds(trainer, state)
        return
    seeds = np.random.SeedSequence((trainer.seed, trainer.completed_iterations))
    trainer.generator.manual_seed(int(seeds.generate_state(1)[0]))
    before = state.get("env") or state.get(WORLDS_BEFORE)
    if before and isinstance(trainer.env, ProgressiveEnv):
        with named("env"):
            trainer.env.load_progress(before)
        trainer.obs = trainer.env.observe()


def _restore_learner(trainer: Trainer, state: Mapping[str, Any]) -> None:
    with named("edits"):
        trainer.live.load_state_dict(state.get("edits", ()))
    with named("actor"):
        trainer.actor.load_state_dict(state["actor"])
    with named("critic"):
        trainer.critic.load_state_dict(state["critic"])
    with named("optimizer"):
        trainer.learner.load_state_dict(state["optimizer"])
    if trainer.rnd is not None and "rnd" in state:  # an import may have none
        with named("rnd"):
            trainer.rnd.load_training_state(state["rnd"])
    trainer.completed_iterations = state["completed_iterations"]
    trainer.env_steps = state.get(
        "env_steps", trainer.completed_iterations * trainer.env_steps_of_iteration
    )
    trainer.position = Position(trainer.completed_iterations)


def _has_these_worlds(trainer: Trainer, state: Mapping[str, Any]) -> bool:
    """Whether worlds and noise can go on: not those of a lost rank or another kind of device."""
    with named("generator"):
        generator = state.get("generator")
        return (
            bool(state.get("env"))  # empty where worlds cannot be saved
            and generator is not None
            and generator.shape == trainer.generator.get_state().shape
        )


def _restore_worlds(trainer: Trainer, state: Mapping[str, Any]) -> None:
    with named("generator"):
        trainer.generator.set_state(state["generator"].cpu())
    with named("env"):
        trainer.env.load_state_dict(state["env"])
    device = trainer.env.device
    with named("obs"):
        assert trainer.obs is not None
        _require_shapes(state["obs"], trainer.obs)
        trainer.obs = {group: obs.to(device) for group, obs in state["obs"].items()}
    for name in ("actor_hidden", "critic_hidden"):
        with named(name):
            saved: Sequence[Tensor] = state.get(name, ())
            _require_shapes(dict(enumerate(saved)), dict(enumerate(getattr(trainer, name))))
            setattr(trainer, name, tuple(hidden.to(device) for hidden in saved))
    with named("episodes"):
        trainer.episodes.load_state_dict(state["episodes"])
    if trainer.intrinsic is not None:
        with named("intrinsic"):
            trainer.intrinsic.load_state_dict(state["intrinsic"])


def _require_shapes(saved: Mapping[Any, Tensor], ours: Mapping[Any, Tensor]) -> None:
    theirs, wanted = (
        {name: list(tensor.shape) for name, tensor in tensors.items()} for tensors in (saved, ours)
    )
    if theirs != wanted:
        raise ValueError(f"it is {theirs}, not {wanted}")


@contextmanager
def named(part: str) -> Iterator[None]:
    """Say which part of a state it is that is missing or does not fit.

    Raises:
        CheckpointError: instead of what torch, or a lookup, has to say.
    """
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except KeyError as error:
        raise CheckpointError(f"the checkpoint's {part} does not fit: it lacks {error}") from error
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"the checkpoint's {part} does not fit: {reason}") from error
