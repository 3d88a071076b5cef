"""Values that may change while a run goes on: which they are, giving them, taking them back.

The learner's live values are those of `Trainer.config`, which is frozen and replaced as a whole;
the worlds' are the env's own. All edits in force are kept in order, here and in every checkpoint.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from trainer.config import TrainerConfig
from trainer.control import Adjustable, AppliedEdit, Change, Edit, Undo, Value, write_value
from trainer.env import AdjustableEnv
from trainer.wire import to_json

if TYPE_CHECKING:
    from trainer.loop import Trainer

LEARNING_RATE = "trainer.learning_rate"
SCHEDULE = "trainer.schedule"
DESIRED_KL = "trainer.desired_kl"
MIRROR_LOSS = "trainer.symmetry.mirror_loss_coeff"
RND_WEIGHT = "trainer.rnd.weight"
ALWAYS = (
    LEARNING_RATE,
    SCHEDULE,
    DESIRED_KL,
    "trainer.entropy_coef",
    "trainer.clip_param",
    "trainer.value_loss_coef",
    "trainer.max_grad_norm",
)
"""What every learner has."""


def checked_config(config: TrainerConfig, values: Mapping[str, Value]) -> TrainerConfig:
    """Return a config with other values, checked as those of a preset are.

    Args:
        config: the one in force.
        values: by their keys, "trainer." before them.

    Raises:
        ValueError: a value is not allowed; says why.
    """
    document = config.model_dump()
    for key, value in values.items():
        *tables, name = key.split(".")[1:]
        table = document
        for part in tables:
            table = table[part]
        table[name] = value
    try:
        return TrainerConfig.model_validate(document)
    except ValidationError as error:
        problem = error.errors()[0]
        said = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        place = ".".join(("trainer", *map(str, problem["loc"]))) if problem["loc"] else ""
        value = f" = {problem['input']}" if place else ""
        raise ValueError(f"{place}{value}: {said}" if place else said) from None


def changes_for(
    edit: Edit, adjustables: Sequence[Adjustable], *, even_if_same: bool = False
) -> dict[str, Value]:
    """Return what an edit changes: what is asked for, and what must follow.

    Args:
        edit: what is asked for.
        adjustables: what there is, with the values in force.
        even_if_same: take a value that is in force already.

    Raises:
        ValueError: it cannot be done, or would have no effect; says why.
    """
    known = {one.key: one for one in adjustables}
    if edit.key not in known:
        raise ValueError(f"there is no {edit.key} to edit in this run")
    one = known[edit.key]
    if one.refusal:
        raise ValueError(f"{edit.key}: {one.refusal}")
    value = _like(edit, one.value)
    if value == one.value and not even_if_same:
        raise ValueError(f"{edit.key} is {write_value(one.value)} already")
    changes: dict[str, Value] = {edit.key: value}
    if edit.key == LEARNING_RATE and known[SCHEDULE].value == "adaptive":
        changes[SCHEDULE] = "fixed"  # or the next KL would overwrite it
    ours = {key: known[key].value for key in ALWAYS if key in known} | changes
    checked_config(TrainerConfig(), {k: v for k, v in ours.items() if k in ALWAYS})
    if edit.key in (MIRROR_LOSS, RND_WEIGHT) and (not isinstance(value, float) or value < 0):
        raise ValueError(f"{edit.key} = {write_value(value)}: must be at least 0")
    return changes


def _like(edit: Edit, present: Value) -> Value:
    """Return the value asked for, if it is of the kind that there is now."""
    value = edit.value
    if isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if isinstance(present, tuple):
        numbers = value if isinstance(value, tuple | list) else ()
        if len(numbers) == 2 and all(isinstance(n, int | float) for n in numbers):
            low, high = map(float, numbers)
            if low <= high:
                return low, high
        raise ValueError(f"{edit.key} must be two numbers in order, low and high")
    if not isinstance(value, type(present)):
        kind = "a number" if isinstance(present, float) else "a word"
        raise ValueError(f"{edit.key} must be {kind}, not {value!r}")
    return value


class Live:
    """The values of a trainer and its worlds that may change between two iterations.

    Args:
        trainer: the learner with its worlds.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self.edits: tuple[AppliedEdit, ...] = ()
        """Those in force, the last one last."""

    def adjustables(self) -> tuple[Adjustable, ...]:
        """Say what can be edited, with the values in force."""
        env = self._trainer.env
        worlds = env.adjustable() if isinstance(env, AdjustableEnv) else ()
        return (
            *self._of_learner(),
            *(
                Adjustable(f"env.{one.key}", one.value, one.about, one.note, one.refusal)
                for one in worlds
            ),
        )

    def _of_learner(self) -> list[Adjustable]:
        trainer, config = self._trainer, self._trainer.config
        adaptive = config.schedule == "adaptive"
        fields = type(config).model_fields
        found = []
        for key in ALWAYS:
            name = key.partition(".")[2]
            about = _in_one_line(fields[name].description)
            found.append(Adjustable(key, getattr(config, name), about))
        found[0] = replace(
            found[0],
            value=trainer.learner.learning_rate,
            note="The schedule becomes fixed, or the next KL would overwrite the rate."
            if adaptive
            else "",
        )
        if not adaptive:
            found[2] = replace(
                found[2],
                refusal="nothing reads it under the fixed schedule; "
                f"edit {SCHEDULE} first, or {LEARNING_RATE} itself",
            )
        if config.symmetry is not None:
            about = _in_one_line(
                type(config.symmetry).model_fields["mirror_loss_coeff"].description
            )
            refusal = "use_mirror_loss is off: the mirror loss is only logged"
            found.append(
                Adjustable(
                    MIRROR_LOSS,
                    config.symmetry.mirror_loss_coeff,
                    about,
                    refusal="" if config.symmetry.use_mirror_loss else refusal,
                )
            )
        if config.rnd is not None:
            about = _in_one_line(type(config.rnd).model_fields["weight"].description)
            schedule = config.rnd.weight_schedule
            moves = schedule is not None and schedule.mode != "constant"
            refusal = "trainer.rnd.weight_schedule moves it" if moves else ""
            found.append(Adjustable(RND_WEIGHT, config.rnd.weight, about, refusal=refusal))
        return found

    def apply(self, edit: Edit) -> AppliedEdit:
        """Give what an edit asks for; call it between two iterations.

        Raises:
            ValueError: it cannot be done, or would have no effect; says why. Nothing has changed.
        """
        adjustables = self.adjustables()
        # A curriculum may have been quicker on one rank than on another: all must do the same.
        values = changes_for(edit, adjustables, even_if_same=not self.is_alone)
        before = {one.key: one.value for one in adjustables}
        self._give(values)
        changes = tuple(Change(key, before[key], new) for key, new in values.items())
        applied = AppliedEdit(self._trainer.completed_iterations, edit.reason, changes)
        self.edits = (*self.edits, applied)
        return applied

    def undo(self) -> AppliedEdit:
        """Take the last edit back; returns it.

        Raises:
            ValueError: there is none.
        """
        if not self.edits:
            raise ValueError("there is no edit to take back")
        last = self.edits[-1]
        self._give({change.key: change.old for change in last.changes})
        self.edits = self.edits[:-1]
        return last

    # Several ranks.

    @property
    def is_alone(self) -> bool:
        """Whether no other process trains with this one."""
        return self._trainer.group.world_size == 1

    @property
    def completed_iterations(self) -> int:
        """How far the trainer is."""
        return self._trainer.completed_iterations

    def plan(self, iteration: int, requests: Sequence[Edit | Undo]) -> None:
        """Have all other ranks do this when so many iterations are complete: later than now."""
        self._trainer.group.plan_edits(iteration, to_json(tuple(requests)))

    def follow(self, requests: Sequence[Edit | Undo]) -> None:
        """Do what rank 0 does at this boundary, and refuse what it refuses."""
        for request in requests:
            with contextlib.suppress(ValueError):  # rank 0 says why
                self.undo() if isinstance(request, Undo) else self.apply(request)

    def _give(self, values: Mapping[str, Value]) -> None:
        trainer = self._trainer
        ours = {key: value for key, value in values.items() if key.startswith("trainer.")}
        config = checked_config(trainer.config, ours)
        for key, value in values.items():
            if key not in ours:
                assert isinstance(trainer.env, AdjustableEnv)
                trainer.env.adjust(key.partition(".")[2], value)
        trainer.reconfigure(config)
        if LEARNING_RATE in ours:
            trainer.learner.learning_rate = config.learning_rate

    def state_dict(self) -> list[dict[str, Any]]:
        """The edits in force: numbers, strings, lists and dicts only."""
        return [
            {
                "iteration": edit.iteration,
                "reason": edit.reason,
                "changes": [
                    {"key": change.key, "old": _plain(change.old), "new": _plain(change.new)}
                    for change in edit.changes
                ],
            }
            for edit in self.edits
        ]

    def load_state_dict(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Give a freshly made trainer what was edited before; its own state is loaded after this.

        Raises:
            ValueError: what was edited is not there any more.
        """
        self.edits = tuple(
            AppliedEdit(
                edit["iteration"],
                edit["reason"],
                tuple(
                    Change(change["key"], _value(change["old"]), _value(change["new"]))
                    for change in edit["changes"]
                ),
            )
            for edit in state
        )
        for edit in self.edits:
            self._give({change.key: change.new for change in edit.changes})


def _plain(value: Value) -> float | str | list[float]:
    return list(value) if isinstance(value, tuple) else value


def _value(plain: float | str | list[float]) -> Value:
    return (float(plain[0]), float(plain[1])) if isinstance(plain, list) else plain


def _in_one_line(description: str | None) -> str:
    """Text of a field's docstring, without the breaks that it has in the source."""
    return " ".join((description or "").split())
