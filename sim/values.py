"""Whether a preset's value fits a parameter of a term, by the parameter's annotation."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

Check = Callable[[object], str | None]
"""What speaks against a value; None if nothing."""

_AXES = ("x", "y", "z", "roll", "pitch", "yaw")


def complaint(annotation: str, value: object) -> str | None:
    """What speaks against a value for a parameter of this annotation; None if nothing.

    An annotation that is unknown here takes any value.
    """
    if annotation.startswith("Literal["):
        allowed = choices(annotation)
        return None if value in allowed else f"must be one of {', '.join(allowed)}, not {value!r}"
    check = _CHECKS.get(annotation)
    return None if check is None else check(value)


def choices(annotation: str) -> tuple[str, ...]:
    """The texts that a parameter annotated as a Literal takes; none for other annotations."""
    if not annotation.startswith("Literal["):
        return ()
    literal = ast.literal_eval(f"({annotation.removeprefix('Literal[')[:-1]},)")
    return tuple(str(choice) for choice in literal)


def _is_number(value: object) -> TypeGuard[float]:
    is_bool = isinstance(value, bool)  # which Python counts among the integers
    return isinstance(value, int | float) and not is_bool and math.isfinite(value)


def _is_pair(value: object) -> TypeGuard[Sequence[float]]:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_number, value))


def _number(fits: Callable[[float], bool], what: str) -> Check:
    def check(value: object) -> str | None:
        return None if _is_number(value) and fits(value) else f"must be {what}, not {value!r}"

    return check


def _whole(fits: Callable[[int], bool], what: str) -> Check:
    def check(value: object) -> str | None:
        if isinstance(value, int) and not isinstance(value, bool) and fits(value):
            return None
        return f"must be {what}, not {value!r}"

    return check


def _instance(of: type, what: str) -> Check:
    return lambda value: None if isinstance(value, of) else f"must be {what}, not {value!r}"


def _range(value: object) -> str | None:
    if not _is_pair(value):
        return f"must be two numbers [low, high], not {value!r}"
    return None if value[0] <= value[1] else f"{list(value)} is not in the order [low, high]"


def _positive_range(value: object) -> str | None:
    if _is_pair(value) and min(value) <= 0:
        return f"must be two positive numbers [low, high], not {list(value)}"
    return _range(value)


def _time_range(value: object) -> str | None:
    if _is_pair(value) and min(value) < 0:
        return f"must be two times of at least 0 s [low, high], not {list(value)}"
    return _range(value)


def _axis_ranges(value: object) -> str | None:
    if not isinstance(value, Mapping):
        return f"must be a table of ranges by axis ({', '.join(_AXES)}), not {value!r}"
    for axis, limits in value.items():
        if axis not in _AXES:
            return f"there is no axis '{axis}'; the axes are {', '.join(_AXES)}"
        if (reason := _range(limits)) is not None:
            return f"{axis}: {reason}"
    return None


def _patterns(value: object) -> str | None:
    patterns = [value] if isinstance(value, str) else value
    if not isinstance(patterns, list | tuple) or not patterns:
        return f"must be a name pattern or a list of them, not {value!r}"
    for pattern in patterns:
        if not isinstance(pattern, str):
            return f"must be a name pattern or a list of them, not {value!r}"
        try:
            re.compile(pattern)
        except re.error as error:
            return f"'{pattern}' is not a pattern: {error}"
    return None


_CHECKS: Mapping[str, Check] = {
    "float": _number(lambda value: True, "a number"),
    "FiniteFloat": _number(lambda value: True, "a number"),
    "PositiveFloat": _number(lambda value: value > 0, "a positive number"),
    "NonNegativeFloat": _number(lambda value: value >= 0, "a number of at least 0"),
    "UnitInterval": _number(lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "int": _whole(lambda value: True, "a whole number"),
    "PositiveInt": _whole(lambda value: value >= 1, "a whole number of at least 1"),
    "bool": _instance(bool, "true or false"),
    "str": _instance(str, "a text"),
    "CommandName": _instance(str, "the name of a command"),
    "RewardName": _instance(str, "the name of a reward term"),
    "Range": _range,
    "PositiveRange": _positive_range,
    "TimeRange": _time_range,
    "AxisRanges": _axis_ranges,
    "Joints": _patterns,
    "Bodies": _patterns,
    "Body": _patterns,
    "ContactBodies": _patterns,
}
