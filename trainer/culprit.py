"""The first number that was not finite: in which tensor, of which step, world and term."""

from __future__ import annotations

from torch import Tensor

from trainer.guard import NonFiniteError
from trainer.loop import Trainer
from trainer.mini_batches import ShuffledRows, WorldBlocks
from trainer.stages import Stage
from trainer.telemetry import Culprit
from trainer.tensors import action_columns, first_bad, observation_columns

_ACTED = ("means", "stds", "actions", "log_probs", "values", "rewards")
_SCORED = ("new_means", "new_stds", "new_values", "ratio")
"""What the update computes for each sample; what it reads has a row for each, too."""


def find_culprit(error: BaseException, trainer: Trainer) -> Culprit | None:
    """Say where the non-finite number stands that ended a run.

    Args:
        error: what ended it.
        trainer: as the error has left it.

    Returns:
        None where the error is about something else.
    """
    if not isinstance(error, NonFiniteError):
        return None
    quantity = error.quantity
    found_by_update = trainer.position.stage is Stage.OPTIMIZE
    if quantity in ("returns", "advantages") and not found_by_update:
        return _bad_bootstrap(trainer) or _bad_target(quantity, trainer)
    stage = _stage_of(quantity)
    if found_by_update:
        step, world = _sample_of(error, trainer)
    else:
        step, world = (*error.index, None, None)[:2]
    column = error.columns[0] if error.columns else None
    if len(error.index) > 2 and error.columns:
        column = error.index[-1]
    term = _term(quantity, step, world, error.index, trainer)
    return Culprit(quantity, stage, error.value, step, world, column, term)


def _stage_of(quantity: str) -> Stage:
    if quantity.startswith("observations "):
        return Stage.OBSERVE
    if quantity in ("returns", "advantages"):
        return Stage.TARGETS
    return Stage.ACT_STEP if quantity in _ACTED else Stage.OPTIMIZE


def _bad_bootstrap(trainer: Trainer) -> Culprit | None:
    """What follows on the last step: obs_T and V(obs_T), with which the targets begin."""
    step = trainer.rollout.num_steps
    for group, obs in (trainer.obs or {}).items():
        if place := first_bad(obs):
            world, column = place
            names = observation_columns(trainer, group)
            return Culprit(
                f"observations {group}",
                Stage.OBSERVE,
                float(obs[world, column]),
                step,
                world,
                column if obs.shape[1] > 1 else None,
                names[column] if column < len(names) else "",
            )
    values = trainer.last_values
    if values is not None and (place := first_bad(values)):
        value = float(values[place[0], 0])
        return Culprit("V(obs_T)", Stage.TARGETS, value, step, place[0])
    return None


def _bad_target(quantity: str, trainer: Trainer) -> Culprit:
    """The scan runs backward: a world's last bad step is its first."""
    targets: Tensor = getattr(trainer.rollout, quantity)
    bad = ~targets.isfinite()
    step, world, _ = max(bad.nonzero().tolist(), key=lambda place: place[0])
    value = float(targets[step, world, 0])
    return Culprit(quantity, Stage.TARGETS, value, step, world)


def _sample_of(error: NonFiniteError, trainer: Trainer) -> tuple[int | None, int | None]:
    """Step and world of a bad entry of the present mini-batch; None for what is no sample's."""
    batches, index = trainer.mini_batches, error.index
    stage, named = _stage_of(error.quantity), error.quantity in _SCORED
    per_sample = (named or stage is not Stage.OPTIMIZE) and len(index) > 1
    if not per_sample or batches is None:
        return None, None
    number = trainer.position.mini_batch
    if isinstance(batches, WorldBlocks):
        # [T, W, ...]; a network with memory may have put its rows elsewhere
        return (index[0], int(batches.worlds[number][index[1]])) if len(index) > 2 else (None, None)
    if not isinstance(batches, ShuffledRows):
        return None, None
    rows = batches.permutation.chunk(len(batches))[number]
    flat = int(rows[index[0] % len(rows)])  # mirror images stand below the samples
    return divmod(flat, trainer.rollout.num_envs)


def _term(
    quantity: str, step: int | None, world: int | None, index: tuple[int, ...], trainer: Trainer
) -> str:
    names: tuple[str, ...] = ()
    if quantity.startswith("observations "):
        names = observation_columns(trainer, quantity.partition(" ")[2])
    elif quantity in ("means", "stds", "actions", "new_means", "new_stds"):
        names = action_columns(trainer)
    elif quantity == "rewards" and world is not None:
        return ", ".join(_bad_reward_terms(trainer, world))
    return names[index[-1]] if index and index[-1] < len(names) else ""


def _bad_reward_terms(trainer: Trainer, world: int) -> list[str]:
    """The reward terms that are not finite in a world: in its running episode, or on its last step.

    The rewards of earlier steps are kept as sums alone.
    """
    named = tuple(trainer.env.reward_terms)
    for attribute in ("reward_sums", "reward_values"):
        values: Tensor | None = getattr(trainer.env, attribute, None)
        if values is None or len(values) != len(named):
            continue
        bad = ~values[:, world].isfinite()
        if bool(bad.any()):
            return [name for name, is_bad in zip(named, bad.tolist(), strict=True) if is_bad]
    return list(named) if len(named) == 1 else []
