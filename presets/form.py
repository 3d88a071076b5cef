"""A preset as a form: every key that can be set, its value as TOML, and what it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from presets.schema import Preset
from presets.toml import Path, format_key, format_value
from sim.catalog import signature
from sim.config import TermSettings

NOT_ASKED = ("name", "description", "term")
"""Fields that are no settings of a training."""


class FormField(NamedTuple):
    """One line of the form."""

    key: str
    """Dotted, as `--set` takes it."""
    value: str
    """As TOML; empty where it is unset."""
    help: str


def form_fields(preset: Preset) -> list[FormField]:
    """Return the fields of a preset, in the order of its tables."""
    return list(_of_model((), preset, ""))


def _of_model(path: Path, model: BaseModel, about: str) -> Iterator[FormField]:
    """The fields of a table.

    Args:
        path: its key.
        model: its values.
        about: what the whole table is, to stand behind the help of each field.
    """
    for name, field in type(model).model_fields.items():
        if name not in NOT_ASKED:
            told = " ".join(text for text in (field.description or "", about) if text)
            yield from _of_value((*path, name), getattr(model, name), " ".join(told.split()))
    for name, value in (model.model_extra or {}).items():
        yield from _of_value((*path, name), value, about)


def _of_value(path: Path, value: Any, told: str) -> Iterator[FormField]:  # noqa: ANN401 - any field
    if isinstance(value, TermSettings):
        yield from _of_model(path, value, _doc(path, value))
    elif isinstance(value, BaseModel):
        yield from _of_model(path, value, "")
    elif isinstance(value, Mapping):
        for name, entry in value.items():
            yield from _of_value((*path, name), entry, told)
    else:
        yield FormField(format_key(path), "" if value is None else format_value(value), told)


def _doc(path: Path, settings: TermSettings) -> str:
    """What a term computes: the first paragraph of its docstring."""
    try:
        doc = signature(path[1], settings.term or path[-1]).doc
    except KeyError:  # a person's own
        return ""
    return " ".join(doc.partition("\n\n")[0].split())
