"""Writing TOML: keys, values, and whole tables with a comment behind each line."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Path = tuple[str, ...]
"""A dotted key, part by part."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_WIDEST_PADDING = 44


def format_key(path: Sequence[str | int]) -> str:
    """Write a dotted key; parts that need quotes get them, numbers index a list."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (part if _BARE_KEY.fullmatch(part) else _string(part))
    return text


def format_value(value: object) -> str:
    """Write a value on one line; tables become inline tables.

    Raises:
        TypeError: TOML has no such value.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _string(value)
        case int() | float():
            return repr(value)
        case dt.date() | dt.time():  # a date with a time is a date, too
            return value.isoformat()
        case Mapping():
            pairs = (f"{format_key((key,))} = {format_value(v)}" for key, v in value.items())
            return "{ " + ", ".join(pairs) + " }" if value else "{}"
        case list() | tuple():
            return "[" + ", ".join(map(format_value, value)) + "]"
    raise TypeError(f"TOML has no value for {value!r}")


def format_table(table: Mapping[str, Any], comment: Callable[[Path], str] = lambda path: "") -> str:
    """Write a table of tables, one line a value.

    Args:
        table: what to write; the order of sub-tables is kept. TOML has no None: such a key is
            mentioned in a comment.
        comment: text to put behind the line of a value, by its path; empty for none.
    """
    return "\n".join(_sections((), table, comment)) + "\n"


def leaves(table: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the path and value of every entry that is no table, and of every empty table."""
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _sections(
    path: Path, table: Mapping[str, Any], comment: Callable[[Path], str]
) -> Iterator[str]:
    values = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    if path and (values or not table):
        yield ""
        yield f"[{format_key(path)}]"
    lines = [_line(key, value) for key, value in values.items()]
    padding = min(_WIDEST_PADDING, max(map(len, lines), default=0))
    for key, line in zip(values, lines, strict=True):
        remark = comment((*path, key))
        yield f"{line:<{padding}}  # {remark}" if remark else line
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _sections((*path, key), value, comment)


def _line(key: str, value: object) -> str:
    name = format_key((key,))
    return f"# {name} is unset" if value is None else f"{name} = {format_value(value)}"


def _string(text: str) -> str:
    # JSON's escapes are TOML's too; only DEL has to be escaped besides.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
