"""What is wrong with a preset, in sentences: place, value, what is allowed, the nearest name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import TypeGuard, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from presets.schema import Preset
from presets.toml import Path, format_key, format_value, leaves

MOST_MESSAGES = 8
_LONGEST_VALUE = 60

OTHER_NAMES = {
    "anneal_lr": "trainer.schedule",
    "batch_size": "trainer.num_mini_batches",
    "clip_range": "trainer.clip_param",
    "ent_coef": "trainer.entropy_coef",
    "gae_lambda": "trainer.lam",
    "horizon": "trainer.num_steps_per_env",
    "init_noise_std": "trainer.actor.init_std",
    "lr": "trainer.learning_rate",
    "lr_schedule": "trainer.schedule",
    "max_iterations": "trainer.num_iterations",
    "min_std": "trainer.actor.std_range",
    "minibatch_size": "trainer.num_mini_batches",
    "n_epochs": "trainer.num_learning_epochs",
    "n_steps": "trainer.num_steps_per_env",
    "noise_std_type": "trainer.actor.std_type",
    "num_actors": "env.num_envs",
    "num_minibatches": "trainer.num_mini_batches",
    "target_kl": "trainer.desired_kl",
    "update_epochs": "trainer.num_learning_epochs",
    "vf_coef": "trainer.value_loss_coef",
}
"""Names that other programs give to our keys."""

_SENTENCES = {
    "bool_type": "must be true or false",
    "dict_type": "must be a table",
    "finite_number": "must be a finite number",
    "float_type": "must be a number",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "int_type": "must be a whole number",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "missing": "is missing",
    "model_type": "must be a table",
    "string_pattern_mismatch": "must be letters and digits, and any of . _ + - behind the first",
    "string_type": 'must be a text in "quotes"',
    "too_short": "must have at least {min_length} entry",
    "too_long": "has more than {max_length} entries",
    "tuple_type": "must be a list",
}


NULL_BYTES = "holds null bytes, as UTF-16 text does; save it as UTF-8"


class PresetError(Exception):
    """A preset that cannot be used; `messages` says why, a sentence each."""

    def __init__(self, messages: Iterable[str]) -> None:
        messages = list(messages)
        more = len(messages) - MOST_MESSAGES
        self.messages = messages[:MOST_MESSAGES] + ([f"... and {more} more"] if more > 0 else [])
        super().__init__("\n".join(self.messages))


def nearest(wrong: str, known: Iterable[str]) -> str:
    """Return the known name nearest to a wrong one, or nothing. Capitals make no difference."""
    spelt = {name.lower(): name for name in known}
    near = get_close_matches(wrong.lower(), spelt, n=1)
    return spelt[near[0]] if near else ""


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return "; did you mean X?" for the known name nearest to a wrong one, or nothing."""
    near = nearest(wrong, known)
    return f"; did you mean {near}?" if near else ""


def not_utf8(error: UnicodeDecodeError) -> str:
    """Say where a text is not UTF-8, and what may be done about it."""
    if error.object[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "is UTF-16 text; save it as UTF-8"
    line = error.object.count(b"\n", 0, error.start) + 1
    return f"line {line}: is not UTF-8 text; save it as UTF-8"


def locate(path: Iterable[str | int], value: object, origin: str) -> str:
    """Say where a value stands, the way its author wrote it.

    Args:
        path: its key.
        value: the value; None where there is none to show.
        origin: a file, `--set`, or an option that stands for a key.
    """
    key = format_key(tuple(path))
    shown = "" if value is None else _short(format_value(value))
    if origin == "--set":
        return f"--set {key}={shown}" if shown else f"--set {key}"
    if origin.startswith("--"):
        return f"{origin} {shown}"
    return f"{origin}: {key}" + (f" = {shown}" if shown else "")


def sentences(error: ValidationError, origin: Callable[[Path], str]) -> Iterator[str]:
    """Turn what pydantic found into sentences.

    Args:
        error: raised by `Preset`.
        origin: where a key, or the table nearest to it, was written; of (): the preset's file.
    """
    for detail in error.errors(include_url=False):
        path = detail["loc"]
        keys = tuple(part for part in path if isinstance(part, str))
        if detail["type"] == "extra_forbidden":
            yield from _unknown_key(keys, detail["input"], origin)
        elif detail["type"] == "value_error":
            yield f"{_place_of_rule(keys, detail, origin)}: {detail['ctx']['error']}"
        else:
            value = None if detail["type"] == "missing" else detail["input"]
            yield f"{locate(path, value, origin(keys))}: {_sentence(detail)}"


def _place_of_rule(path: Path, detail: ErrorDetails, origin: Callable[[Path], str]) -> str:
    """Say where the value stands that breaks a rule: of a table's values the one that is named."""
    if not path:
        return origin(())
    table, told = detail["input"], str(detail["ctx"]["error"])
    if not isinstance(table, Mapping):
        return locate(path, table, origin(path))
    for name in re.findall(r"\w+(?:\.\w+)*", told):
        keys = tuple(name.split("."))
        found: object = table
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        if found is not None:
            shown = None if isinstance(found, Mapping) else found
            return locate((*path, *keys), shown, origin((*path, *keys)))
    return locate(path, None, origin(path))


def _sentence(detail: ErrorDetails) -> str:
    pattern = _SENTENCES.get(detail["type"])
    context = detail.get("ctx", {})
    if pattern is None:
        return detail["msg"][:1].lower() + detail["msg"][1:]
    sentence = pattern.format(**context)
    if detail["type"] == "literal_error":
        sentence += did_you_mean(str(detail["input"]), re.findall(r"'(.*?)'", context["expected"]))
    return sentence


def _unknown_key(path: Path, value: object, origin: Callable[[Path], str]) -> Iterator[str]:
    entries = leaves(value, path) if isinstance(value, Mapping) and value else [(path, value)]
    for full, leaf in entries:
        yield f"{locate(full, leaf, origin(full))}: unknown key{_nearest_key(full, len(path) - 1)}"


def _nearest_key(path: Path, known_parts: int) -> str:
    """Name the key that was meant: of this name elsewhere, a sibling, or the nearest anywhere.

    Args:
        path: the key that is not known.
        known_parts: how many of its first parts are.
    """
    parent, name = path[:known_parts], path[-1]
    siblings = {field: format_key((*parent, field)) for field in _fields_at(parent)}
    by_name = {key.rpartition(".")[2]: key for key in reversed([*_fixed_keys(Preset)])}
    for names, cutoff in ((by_name, 1.0), (OTHER_NAMES, 1.0), (siblings, 0.6), (by_name, 0.7)):
        if near := get_close_matches(name, names, n=1, cutoff=cutoff):
            return f"; did you mean {names[near[0]]}?"
    return f"; allowed here: {', '.join(siblings.values())}"


def _fields_at(path: Path) -> list[str]:
    model: type[BaseModel] = Preset
    for part in path:
        annotation = model.model_fields[part].annotation
        # a table that may be left out is a union with None
        tables = [kind for kind in (annotation, *get_args(annotation)) if _is_model(kind)]
        if not tables:
            return []
        model = tables[0]
    return list(model.model_fields)


def _is_model(annotation: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _fixed_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if _is_model(annotation):
            yield from _fixed_keys(annotation, f"{prefix}{name}.")
        else:
            yield prefix + name


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."
