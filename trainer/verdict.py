"""Whose numbers stopped being finite, the physics', the task's or the learner's; where was looked.

The engine's state is physics; what the worlds compute of it, observations and rewards, is the task;
networks and all that they compute are the learner. What follows from a bad number is bad too, so
the side on which the first one stands is at fault, and of the others what came before it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.env import PhysicsEnv
from trainer.guard import NonFiniteError, first_bad_of_steps, stepwise
from trainer.loop import Trainer
from trainer.telemetry import Culprit

_OF_TASK = ("observations ", "rewards")
"""Beginnings of the names of what the task computes."""
_MOST_NAMES = 4


class Verdict(NamedTuple):
    """Who is at fault."""

    sentence: str
    """Such as "physics finite, learner non-finite"."""
    looked_at: tuple[str, ...]
    """A line for each side: what of it was looked at, and how it was."""


class _Side(NamedTuple):
    name: str
    looked_at: str
    bad: list[str]
    """Of its own fault."""
    is_spoilt: bool = False
    """Whether what it computed behind another's bad number is bad too."""

    @property
    def verdict(self) -> str:
        return f"{self.name} {'non-finite' if self.bad else 'finite'}"

    @property
    def line(self) -> str:
        found = "finite until then" if self.is_spoilt else "finite"
        if self.bad:
            more = len(self.bad) - _MOST_NAMES
            found = f"non-finite: {', '.join(self.bad[:_MOST_NAMES])}"
            found += f" and {more} more" if more > 0 else ""
        return f"{self.name} ({self.looked_at}): {found}"


@torch.no_grad()
def find_verdict(error: BaseException, trainer: Trainer, culprit: Culprit | None) -> Verdict | None:
    """Say on which side the numbers of a run stopped being finite.

    Args:
        error: what ended the run; of worlds that broke, one with `broken_worlds` (see `Env.step`).
        trainer: as the error has left it.
        culprit: the first bad number, where it is known.

    Returns:
        None where the error is about something else.
    """
    broken: Mapping[int, str] | None = getattr(error, "broken_worlds", None)
    if isinstance(error, NonFiniteError):
        first = error.quantity if culprit is None else culprit.quantity
    elif broken is not None:
        first = _first_of_running_step(trainer)
    else:
        return None
    spoilt = _bad(stepwise(trainer.rollout, trainer.rollout.cursor))
    physics = _physics(trainer, broken or {})
    task = _task(trainer, first, spoilt)
    learner = _learner(trainer, first, spoilt)
    told = [task, learner] if task.bad or physics is None else [learner]
    if physics is not None:  # it comes first, unless it only followed
        told = [*told, physics] if physics.bad and first else [physics, *told]
    sides = [side for side in (physics, task, learner) if side is not None]
    sentence = ", ".join(side.verdict for side in told)
    return Verdict(sentence, tuple(side.line for side in sides))


def _first_of_running_step(trainer: Trainer) -> str:
    """The first bad number up to what the worlds were last given to do; "" if there is none."""
    if name := first_bad_of_steps(trainer.rollout, trainer.rollout.cursor):
        return name
    of_step = [(f"observations {group}", obs) for group, obs in (trainer.obs or {}).items()]
    if trainer.decision is not None:
        action, _, mean, std, _ = trainer.decision
        of_step += [("means", mean), ("stds", std), ("actions", action)]
    return next(iter(_bad(of_step)), "")


def _physics(trainer: Trainer, broken: Mapping[int, str]) -> _Side | None:
    """The engine's state now, and the worlds that the env says are broken; None if it hides it."""
    env = trainer.env
    if not isinstance(env, PhysicsEnv):
        return None
    state = env.physics_state()
    bad = [f"{quantity} of world {world}" for world, quantity in broken.items()]
    bad += _bad(state.items())
    guard = f"on, {len(trainer.faults)} worlds reset by it in this iteration"
    worlds = f"{', '.join(state)} of {trainer.env.num_envs} worlds"
    return _Side("physics", f"{worlds}; NaN guard {guard if env.nan_guard else 'off'}", bad)


def _task(trainer: Trainer, first: str, spoilt: list[str]) -> _Side:
    groups = [f"observations {group}" for group in trainer.rollout.observations]
    own = first.startswith(_OF_TASK)
    later = any(name.startswith(_OF_TASK) for name in spoilt)
    return _Side("task", ", ".join((*groups, "rewards")), [first] if own else [], later)


def _learner(trainer: Trainer, first: str, spoilt: list[str]) -> _Side:
    bad, computed = _bad(_state_of_learner(trainer)), _bad(_computed(trainer))
    computed += [name for name in spoilt if not name.startswith(_OF_TASK)]
    if first and not first.startswith(_OF_TASK):
        bad = list(dict.fromkeys((first, *bad, *computed)))
    return _Side(
        "learner",
        "means, stds, actions, log_probs, values, returns, advantages, gradients, weights, "
        "normalizers, optimizer",
        bad,
        bool(computed),
    )


def _state_of_learner(trainer: Trainer) -> Iterator[tuple[str, Tensor]]:
    """What lasts from one iteration to the next."""
    for owner, network in trainer.networks.items():
        for name, tensor in network.state_dict().items():
            yield f"{owner}.{name}", tensor
    for state in trainer.learner.optimizer.state.values():
        for name, value in state.items():
            if isinstance(value, Tensor):
                yield f"optimizer's {name}", value


def _computed(trainer: Trainer) -> Iterator[tuple[str, Tensor]]:
    """What the learner made of the rollout."""
    if trainer.rollout.cursor == trainer.rollout.num_steps:
        yield "returns", trainer.rollout.returns
        yield "advantages", trainer.rollout.advantages
    for owner, network in trainer.networks.items():
        for name, parameter in network.named_parameters():
            if parameter.grad is not None:
                yield f"gradient of {owner}.{name}", parameter.grad


def _bad(named: Iterable[tuple[str, Tensor]]) -> list[str]:
    """Names of the tensors that hold NaN or infinity, each once."""
    return list(dict.fromkeys(n for n, tensor in named if not bool(tensor.isfinite().all())))
