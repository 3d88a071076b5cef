"""Formulas of the stages that collect, with this iteration's numbers in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from trainer.telemetry import Floats
from trainer.trace import ActStepNumbers, ObserveNumbers, RowField, StoreNumbers, TraceRequest
from tui.draw.numbers import number
from tui.draw.spans import Line, Role, Span, cells, crop, pad

CELL = 8
"""Cells of a number in a row of numbers, the gap before it included."""
NAME = 20
"""Cells of a name before its numbers."""


class Numbers(NamedTuple):
    """Lines of text."""

    lines: list[Line]
    fixed: int = 0
    """How many of the first ones stay on top where the others scroll."""
    anchor: int = 0
    """Which line should be in sight."""


def signed(value: float) -> str:
    """Write a number in seven cells, always with its sign, so that formulas stand still."""
    if 1e-3 <= abs(value) < 99_999 or value == 0:
        return next(
            text.ljust(7)
            for decimals in range(4, -1, -1)
            if len(text := f"{value:+.{decimals}f}") <= 7
        )
    return "      -" if math.isnan(value) else f"{number(value, 7, sign=True).strip():<7}"


def text(words: str, role: Role = Role.TEXT) -> Line:
    """Return one line of one role."""
    return (Span(words, role),)


def heading(words: str) -> Line:
    """Return a line above a table."""
    return text(words, Role.MUTED)


def equation(left: str, right: str, result: str, *more: Span) -> Line:
    """Return "left = right = result", the result standing out, and what more there is to say."""
    return (
        Span(left, Role.STRONG),
        Span(f" = {right} = ", Role.TEXT),
        Span(result, Role.PRIMARY),
        *more,
    )


def flag(on: bool) -> str:
    """Write a flag as the number that stands in a formula."""
    return "1" if on else "0"


def row_of_numbers(
    values: Floats | Sequence[float], width: int, chosen: int = -1, ellipsis: bool = True
) -> Line:
    """Write as many numbers as fit, and how many do not."""
    room = width // CELL
    shown = min(len(values), room)
    if shown < len(values) and ellipsis:
        shown = max(0, (width - 6) // CELL)
    spans = [
        Span(f" {signed(float(value))}", Role.PRIMARY if i == chosen else Role.TEXT)
        for i, value in enumerate(values[:shown])
    ]
    if shown < len(values) and ellipsis:
        spans.append(Span(f" +{len(values) - shown}", Role.MUTED))
    return tuple(spans)


def observe_numbers(numbers: ObserveNumbers, request: TraceRequest, width: int) -> Numbers:
    """Every term of one world's observation."""
    n, t = request.world, request.step
    lines: list[Line] = []
    for group in dict.fromkeys(term.group for term in numbers.terms):
        terms = [term for term in numbers.terms if term.group == group]
        total = sum(len(term.values) for term in terms)
        names = ", ".join(term.term for term in terms)
        words = f"obs.{group}[{n}] at t {t} = ({names}), O = {total}"
        lines.append(text(crop(words, width), Role.STRONG))
        for term in terms:
            last = term.first + len(term.values)
            head = f"{crop(term.term, NAME - 1):<{NAME}}{f'{term.first}:{last}':<8}"
            lines += _wrapped(head, term.values, width)
    return Numbers(lines)


def _wrapped(head: str, values: Floats, width: int, most: int = 3) -> list[Line]:
    """Write numbers behind a name, over at most `most` lines."""
    each = max(1, (width - len(head)) // CELL)
    lines: list[Line] = []
    for start in range(0, min(len(values), most * each), each):
        last = start + each >= most * each
        part = values[start:] if last else values[start : start + each]
        label = Span(head if not lines else " " * len(head), Role.MUTED)
        lines.append((label, *row_of_numbers(part, width - len(head))))
    return lines


def act_step_numbers(numbers: ActStepNumbers, request: TraceRequest, width: int) -> Numbers:
    """One world's action, its log-probability, and the answer of the worlds."""
    noise = (numbers.action - numbers.mean) / numbers.std
    squares, logs = float((noise**2).sum()), float(sum(map(_log, numbers.std)))
    constant = len(noise) * 0.5 * math.log(2 * math.pi)
    log_prob = -0.5 * squares - logs - constant
    first = numbers.names[0] if numbers.names else "0"
    lines = [
        equation(
            f"a[{first}]",
            f"{signed(numbers.mean[0])} + {signed(numbers.std[0])} × {signed(noise[0])}",
            signed(numbers.action[0]),
        ),
        equation(
            "log π(a)",
            f"-0.5×{signed(squares)} - ({signed(logs)}) - {signed(constant)}",
            signed(log_prob),
        ),
        (
            Span("kept ", Role.MUTED),
            Span("log π", Role.STRONG),
            Span(" = "),
            Span(signed(numbers.log_prob), Role.PRIMARY),
            Span("   V", Role.STRONG),
            Span(" = "),
            Span(signed(numbers.value), Role.PRIMARY),
        ),
        (
            Span("answer ", Role.MUTED),
            Span("r", Role.STRONG),
            Span(" = "),
            Span(signed(numbers.reward), Role.PRIMARY),
            Span(f"   terminated {flag(numbers.terminated)}   time_out {flag(numbers.time_out)}"),
        ),
        heading(f"{'action':<{NAME}}      μ       σ       z       a" + _sent_title(numbers)),
    ]
    for i, name in enumerate(numbers.names):
        row = [numbers.mean[i], numbers.std[i], noise[i], numbers.action[i]]
        clamped = bool(numbers.sent[i] != numbers.action[i])
        sent = f" {signed(numbers.sent[i])}" if numbers.clip_actions is not None else ""
        lines.append(
            (
                Span(pad(name, NAME - 1)),
                *row_of_numbers(row, 4 * CELL, chosen=3),
                Span(sent + (" clamped" if clamped else ""), Role.WARNING),
            )
        )
    if numbers.reward_terms:
        lines.append(heading(f"{'reward term':<{NAME}} weight × value × step_dt"))
        lines += [_term(name, value) for name, value in numbers.reward_terms]
    return Numbers(lines)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else math.nan


def _sent_title(numbers: ActStepNumbers) -> str:
    limit = numbers.clip_actions
    return "" if limit is None else f"    sent, clamped to ±{limit:g}"


def _term(name: str, value: float) -> Line:
    bad = not math.isfinite(value)
    return (
        Span(pad(name, NAME - 1), Role.ERROR if bad else Role.TEXT),
        Span(f" {signed(value)}" + (" !! not finite" if bad else ""), Role.ERROR if bad else ""),
    )


def store_numbers(numbers: StoreNumbers, request: TraceRequest, width: int) -> Numbers:
    """Row t of one world: what was kept aside, what the row held, what it holds now."""
    lines: list[Line] = []
    after = {field.name: field.after for field in numbers.fields}
    if not math.isnan(numbers.reward):
        bonus = numbers.gamma * numbers.value if numbers.time_out else 0.0
        lines.append(
            equation(
                f"r_{numbers.step}",
                f"{signed(numbers.reward)} + {numbers.gamma:.3f} × {signed(numbers.value)}"
                f" × {flag(numbers.time_out)}",
                signed(numbers.reward + bonus),
            )
        )
    written = numbers.fields and after[numbers.fields[0].name] is not None
    cursor = f"cursor t = {numbers.cursor}"
    what = (
        "row written" if written else f"row {numbers.step} is written next: → {numbers.cursor + 1}"
    )
    lines.append((Span(cursor, Role.STRONG), Span(f"   {what}", Role.MUTED)))
    sides = [("kept", "cached"), ("before", "before"), ("after", "after")]
    known = [
        (title, side)
        for title, side in sides
        if any(getattr(field, side) is not None for field in numbers.fields)
    ]
    each = max(CELL, (width - 12) // max(len(known), 1) // CELL * CELL)
    titles = "".join(f" {title:<{each - 1}}" for title, _ in known)
    lines.append(heading(f"row {numbers.step:<8}{titles}"))
    lines += [_field(field, [side for _, side in known], each) for field in numbers.fields]
    if written and not any(field.before is not None for field in numbers.fields):
        lines.append(heading("step from act_step to store to see the row before as well"))
    return Numbers(lines)


def _field(field: RowField, sides: Sequence[str], each: int) -> Line:
    spans = [Span(pad(field.name, 12), Role.MUTED)]
    for side in sides:
        values: Floats | None = getattr(field, side)
        row = row_of_numbers(values if values is not None else [], each, ellipsis=False)
        role = Role.PRIMARY if side == "after" else (Role.MUTED if side == "before" else Role.TEXT)
        spans += [Span(span.text, role) for span in row]
        spans.append(Span(" " * max(0, each - cells(row))))
    return tuple(spans)
