"""What a session shows of itself, as bytes for another process, and back.

A message is a JSON text and, behind it, the bytes of its arrays. Only plain data passes: numbers,
strings, tuples, mappings, arrays of numbers, and the frozen classes and enumerations of this
package, which are built from their fields. Nothing that is read is ever run.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
import struct
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

PROTOCOL = 1
"""Changes when one side would misunderstand the other."""

LARGEST = 256 * 1024 * 1024
"""Bytes of a message beyond which it is no message."""

_HEADER = struct.Struct("!4sII")
_MAGIC = b"ppo1"
_DTYPES = frozenset(("<f4", "<f8", "<f2", "<i8", "<i4", "<i2", "|i1", "|u1", "<u4", "<u8", "|b1"))
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, ImportError)
_OUR_CLASS = re.compile(r"trainer(\.[a-z_]+)+:[A-Za-z_]+")


class WireError(Exception):
    """Bytes that are no message of this program."""


def pack(message: object) -> bytes:
    """Write plain data as bytes.

    Raises:
        TypeError: some of it is not plain.
    """
    arrays: list[bytes] = []
    text = json.dumps(_plain(message, arrays), separators=(",", ":")).encode()
    blob = b"".join(arrays)
    return _HEADER.pack(_MAGIC, len(text), len(blob)) + text + blob


def unpack(buffer: bytearray) -> list[Any]:
    """Take all whole messages from the front of a buffer.

    Raises:
        WireError: it holds something else.
    """
    messages = []
    while len(buffer) >= _HEADER.size:
        magic, text_size, blob_size = _HEADER.unpack_from(buffer)
        if magic != _MAGIC or text_size + blob_size > LARGEST:
            raise WireError("this is no message of ppo-tui")
        end = _HEADER.size + text_size + blob_size
        if len(buffer) < end:
            break
        text = bytes(buffer[_HEADER.size : _HEADER.size + text_size])
        blob = bytes(buffer[_HEADER.size + text_size : end])
        del buffer[:end]
        try:
            messages.append(_rebuilt(json.loads(text), blob))
        except _UNREADABLE as error:
            raise WireError(f"a message that cannot be read: {error}") from None
    return messages


def to_json(value: object) -> str:
    """Write plain data without arrays as a JSON text."""
    arrays: list[bytes] = []
    text = json.dumps(_plain(value, arrays))
    if arrays:
        raise TypeError("arrays are no JSON")
    return text


def from_json(text: str) -> Any:  # noqa: ANN401 - whatever was written
    """Read what `to_json` wrote.

    Raises:
        WireError: it is something else.
    """
    try:
        return _rebuilt(json.loads(text), b"")
    except _UNREADABLE as error:
        raise WireError(f"a text that cannot be read: {error}") from None


def _plain(value: object, arrays: list[bytes]) -> object:
    """Write a value as JSON knows it, arrays as where they lie."""
    if isinstance(value, Enum):
        return {"e": _name(type(value)), "v": value.value}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {"m": [[_plain(k, arrays), _plain(v, arrays)] for k, v in value.items()]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: _plain(getattr(value, field.name), arrays)
            for field in dataclasses.fields(value)
        }
        return {"d": _name(type(value)), "f": fields}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        named = {
            name: _plain(entry, arrays) for name, entry in zip(value._fields, value, strict=True)
        }
        return {"d": _name(type(value)), "f": named}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_plain(entry, arrays) for entry in value]
    return _plain_numbers(value, arrays)


def _plain_numbers(value: Any, arrays: list[bytes]) -> object:  # noqa: ANN401 - numpy, not imported
    """Write a NumPy array or number."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or not hasattr(value, "tobytes"):
        raise TypeError(f"{type(value).__name__} is no plain data")
    if not hasattr(value, "__len__") or value.shape == ():
        return value.item()
    order = dtype.newbyteorder("<").str
    if order not in _DTYPES:
        raise TypeError(f"arrays of {dtype} are no plain data")
    data = value.astype(order, copy=False).tobytes()
    start = sum(map(len, arrays))
    arrays.append(data)
    return {"a": [order, list(value.shape), start, len(data)]}


def _rebuilt(value: Any, blob: bytes) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return tuple(_rebuilt(entry, blob) for entry in value)
    if not isinstance(value, dict):
        return value
    if "a" in value:
        return _array(blob, *value["a"])
    if "m" in value:
        return MappingProxyType({_rebuilt(k, blob): _rebuilt(v, blob) for k, v in value["m"]})
    if "e" in value:
        return _our_class(value["e"])(value["v"])
    class_ = _our_class(value["d"])
    known = _field_names(class_)
    fields = {name: _rebuilt(entry, blob) for name, entry in value["f"].items() if name in known}
    return class_(**fields)


def _array(blob: bytes, dtype: str, shape: list[int], start: int, size: int) -> np.ndarray:
    import numpy as np

    if dtype not in _DTYPES:
        raise ValueError(f"arrays of {dtype} are not read")
    array = np.frombuffer(blob[start : start + size], dtype=dtype).reshape(shape)
    array.flags.writeable = False
    return array


def _name(class_: type) -> str:
    name = f"{class_.__module__}:{class_.__qualname__}"
    if not _OUR_CLASS.fullmatch(name):
        raise TypeError(f"{name} is no class of this package")
    return name


@cache
def _our_class(name: str) -> type:
    """Find a class of plain data in this package."""
    if not _OUR_CLASS.fullmatch(name):
        raise ValueError(f"{name} is no class of this package")
    module, _, own = name.partition(":")
    class_ = getattr(importlib.import_module(module), own)
    if not isinstance(class_, type) or class_.__module__ != module:
        raise ValueError(f"{name} is no class of this package")
    if not issubclass(class_, Enum) and not _field_names(class_):
        raise ValueError(f"{name} is no plain data")
    return class_


def _field_names(class_: type) -> frozenset[str]:
    """Fields of a frozen dataclass or a named tuple; empty for anything else."""
    if dataclasses.is_dataclass(class_):
        return frozenset(field.name for field in dataclasses.fields(class_))
    if issubclass(class_, tuple):
        return frozenset(getattr(class_, "_fields", ()))
    return frozenset()
