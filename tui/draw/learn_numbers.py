"""Formulas of the stages that learn, with this iteration's numbers in them."""

from __future__ import annotations

import math

import numpy as np

from trainer.trace import (
    FreshNumbers,
    OptimizeNumbers,
    Rescored,
    SampleNumbers,
    TargetsNumbers,
    TraceRequest,
)
from tui.draw.axis import Guide
from tui.draw.collect_numbers import Numbers, equation, heading, row_of_numbers, signed, text
from tui.draw.histogram import histogram, outside
from tui.draw.numbers import count, num_bytes, number, percent
from tui.draw.spans import Charset, Line, Role, Span, runs

MAX_LEARNING_RATE_STEP = 1.01
"""Two rates that differ by less are the same."""


def targets_numbers(numbers: TargetsNumbers, request: TraceRequest, width: int) -> Numbers:
    """The backward scan of one world, and the formulas of the chosen step."""
    t, last = request.step, len(numbers.rewards) - 1
    following = np.append(numbers.values[1:], np.float32(numbers.last_value))
    going = 1 - int(numbers.dones[t])
    carried = float(numbers.raw[t + 1]) if t < last else 0.0
    gamma, decay = numbers.gamma, numbers.gamma * numbers.lam
    lines = [
        equation(
            f"δ_{t}",
            f"{signed(numbers.rewards[t])} + {gamma:.3f}×{going}×{signed(following[t])}"
            f" - ({signed(numbers.values[t])})",
            signed(numbers.deltas[t]),
        ),
        equation(
            f"A_{t}",
            f"{signed(numbers.deltas[t])} + {decay:.3f}×{going}×{signed(carried)}",
            signed(numbers.raw[t]),
        ),
        equation(
            f"R_{t}",
            f"{signed(numbers.raw[t])} + ({signed(numbers.values[t])})",
            signed(numbers.returns[t]),
        ),
    ]
    if not math.isnan(numbers.mean):
        lines.append(
            equation(
                f"A'_{t}",
                f"({signed(numbers.raw[t])} - ({signed(numbers.mean)})) / {signed(numbers.std)}",
                signed(numbers.advantages[t]),
            )
        )
    titles = "   t       r       V  d       δ       A       R      A'"
    lines.append(heading(titles))
    anchor = len(lines) + t
    lines += [_scan_row(numbers, step, chosen=step == t) for step in range(last + 1)]
    bootstrap = (
        f"{last + 1:>4}        {signed(numbers.last_value)}   V(obs_T): the scan begins here"
    )
    lines.append(text(bootstrap, Role.MUTED))
    return Numbers(lines, anchor - t, anchor)


def _scan_row(numbers: TargetsNumbers, t: int, *, chosen: bool) -> Line:
    done = bool(numbers.dones[t])
    role = Role.STRONG if chosen else Role.TEXT
    head = (
        f"{'>' if chosen else ' '}{t:>3} {signed(numbers.rewards[t])} {signed(numbers.values[t])}"
    )
    rest = (numbers.deltas[t], numbers.raw[t], numbers.returns[t], numbers.advantages[t])
    return (
        Span(head, role),
        Span(f"  {'x' if done else '.'}", Role.WARNING if done else Role.MUTED),
        Span("".join(f" {signed(value)}" for value in rest), role),
        Span("  chain cut" if done else "", Role.WARNING),
    )


def sample_numbers(
    numbers: SampleNumbers, request: TraceRequest, width: int, charset: Charset
) -> Numbers:
    """Where the chosen transition goes, what makes each mini-batch, and a map of all."""
    t, n, worlds, size = request.step, request.world, numbers.num_envs, numbers.mini_batch_size
    k, row = divmod(numbers.place, size)
    batches = len(numbers.heads)
    lines = [
        equation("row of (t, n)", f"t N + n = {t} × {worlds} + {n}", f"{t * worlds + n}"),
        equation(
            "place",
            f"perm^-1[{t * worlds + n}] = {numbers.place}",
            f"mini-batch {k + 1} of {batches}, row {row}",
        ),
    ]
    if numbers.whole_worlds:
        lines.append(heading("mini-batches are whole worlds: the networks have a memory"))
    lines.append(heading("mini-batch   flat rows it reads first, as row = (t, n)"))
    digits = len(str(worlds * len(numbers.window) - 1))
    for index, rows in enumerate(numbers.heads):
        chosen = Role.PRIMARY if index == k else Role.TEXT
        parts = [f"{r:>{digits}}={f'({r // worlds},{r % worlds})':<{digits + 3}}" for r in rows]
        fitting = max(1, (width - 6) // (2 * digits + 5))
        lines.append(
            (
                Span(f"{'>' if index == k else ' '}{index + 1:>3}  ", chosen),
                Span(" ".join(parts[:fitting]) + (" ..." if fitting < len(parts) else ""), chosen),
            )
        )
    first, shown = numbers.first_world, min(width - 5, numbers.window.shape[1])
    start = max(0, min(n - first - shown // 2, numbers.window.shape[1] - shown))
    last = first + start + shown - 1
    lines.append(
        heading(f"mini-batch of each step (down), worlds {first + start} to {last} (across)")
    )
    for step, batch in enumerate(numbers.window[:, start : start + shown].tolist()):
        here = n - first - start if step == t else -1
        lines.append((Span(f"{step:>4} ", Role.MUTED), *_digits(batch, k, here)))
    return Numbers(lines)


def _digits(batch: list[int], k: int, here: int) -> Line:
    """Write the mini-batch of each world; beyond nine as letters."""
    symbols = "123456789abcdefghijklmnopqrstuvwxyz"
    written = [symbols[index % len(symbols)] for index in batch]
    roles: list[str] = [Role.PRIMARY if index == k else Role.MUTED for index in batch]
    if 0 <= here < len(roles):
        roles[here] = Role.CURRENT
    return runs(written, roles)


def optimize_numbers(
    numbers: OptimizeNumbers, request: TraceRequest, width: int, charset: Charset
) -> Numbers:
    """The newest optimizer step: loss, one sample's ratio, KL and rate, all ratios."""
    total = (
        numbers.surrogate
        + numbers.value_loss_coef * numbers.value_loss
        - numbers.entropy_coef * numbers.entropy
    )
    made = len(numbers.kl)
    wanted = numbers.num_learning_epochs * numbers.num_mini_batches
    lines = [
        (
            Span(f"epoch {numbers.epoch + 1} of {numbers.num_learning_epochs}", Role.STRONG),
            Span(f"   mini-batch {numbers.mini_batch + 1} of {numbers.num_mini_batches}"),
            Span(f"   step {made} of {wanted}", Role.MUTED),
        ),
        equation(
            "L",
            f"{signed(numbers.surrogate)}"
            f" + {numbers.value_loss_coef:g}×{signed(numbers.value_loss)}"
            f" - {numbers.entropy_coef:g}×{signed(numbers.entropy)}",
            signed(total),
        ),
        *_one_sample(numbers.chosen, request, numbers.clip_param),
        _rate(numbers),
        _norms(numbers),
        *_ratios(numbers, width, charset),
        heading("step  epoch  batch       KL     rate" + _aim(numbers.desired_kl)),
    ]
    lines += [_step_row(numbers, step) for step in range(made)]
    return Numbers(lines)


def _step_row(numbers: OptimizeNumbers, step: int) -> Line:
    """One optimizer step: its KL, and what that did to the rate."""
    epoch, batch = divmod(step, numbers.num_mini_batches)
    before = float(numbers.learning_rate[step - 1]) if step else math.nan
    kl, rate = float(numbers.kl[step]), float(numbers.learning_rate[step])
    newest = step == len(numbers.kl) - 1
    return text(
        f"{'>' if newest else ' '}{step + 1:>3} {epoch + 1:>6} {batch + 1:>6}"
        f" {number(kl, 8)} {number(rate, 8)}  {_moved(before, rate)}",
        Role.STRONG if newest else Role.TEXT,
    )


def _one_sample(chosen: Rescored | None, request: TraceRequest, clip: float) -> list[Line]:
    """The clipped surrogate of the chosen transition."""
    place = f"({request.step}, {request.world})"
    if chosen is None:
        return [heading(f"{place}: its mini-batch has not had its turn yet")]
    ratio, advantage = chosen.ratio, chosen.advantage
    clipped = min(max(ratio, 1 - clip), 1 + clip)
    plain, bounded = ratio * advantage, clipped * advantage
    binds = bounded < plain
    new = chosen.old_log_prob + math.log(ratio) if ratio > 0 else -math.inf
    seen = f"mini-batch {chosen.mini_batch + 1}, last read in epoch {chosen.epoch + 1}"
    return [
        heading(f"(t {request.step}, n {request.world}) is in {seen}:"),
        equation(
            "r",
            f"exp({signed(new)} - ({signed(chosen.old_log_prob)}))",
            signed(ratio),
        ),
        equation(
            "min(r A, clip(r) A)",
            f"min({signed(plain)}, {signed(bounded)})",
            signed(min(plain, bounded)),
            Span(
                "  the clip binds" if binds else "  no clip",
                Role.WARNING if binds else Role.MUTED,
            ),
        ),
    ]


def _rate(numbers: OptimizeNumbers) -> Line:
    """What the newest KL did to the learning rate."""
    kl, rate = float(numbers.kl[-1]), float(numbers.learning_rate[-1])
    if numbers.desired_kl is None:
        return text(f"KL {number(kl)}   rate {number(rate)}, fixed by the schedule")
    low, high = numbers.desired_kl / 2, numbers.desired_kl * 2
    if kl > high:
        why = f"> {high:g}: rate / 1.5"
    elif 0 < kl < low:
        why = f"< {low:g}: rate × 1.5"
    else:
        why = "is 0: the rate stays" if kl == 0 else f"within {low:g} to {high:g}: the rate stays"
    return (
        Span("KL", Role.STRONG),
        Span(" = "),
        Span(number(kl), Role.PRIMARY),
        Span(f"  {why} → "),
        Span(number(rate), Role.PRIMARY),
    )


def _aim(desired_kl: float | None) -> str:
    return "" if desired_kl is None else f"    desired KL {desired_kl:g}"


def _moved(before: float, after: float) -> str:
    if math.isnan(before) or max(before, after) < MAX_LEARNING_RATE_STEP * min(before, after):
        return "·"
    return "↑ × 1.5" if after > before else "↓ / 1.5"


def _norms(numbers: OptimizeNumbers) -> Line:
    spans = [Span("|g|", Role.STRONG), Span(f" ≤ {numbers.max_grad_norm:g}", Role.MUTED)]
    for name, norm in (("actor", numbers.actor_grad_norm), ("critic", numbers.critic_grad_norm)):
        scale = min(1.0, numbers.max_grad_norm / norm) if norm > 0 else 1.0
        spans += [
            Span(f"  {name} "),
            Span(number(norm), Role.PRIMARY),
            Span(f" × {scale:.3f}", Role.WARNING if scale < 1 else Role.MUTED),
        ]
    return tuple(spans)


def _ratios(numbers: OptimizeNumbers, width: int, charset: Charset) -> list[Line]:
    """The ratios of the newest mini-batch, between the lines at 1 - ε and 1 + ε."""
    low, high = 1 - numbers.clip_param, 1 + numbers.clip_param
    below, above = outside(numbers.ratio_edges, numbers.ratio_counts, low, high)
    guides = (Guide(low), Guide(1.0), Guide(high))
    drawn = histogram(
        numbers.ratio_edges, numbers.ratio_counts, min(width, 82), 6, guides=guides, charset=charset
    )
    words = (
        f"ratios: {percent(numbers.clip_fraction)} beyond 1 ± "
        f"{numbers.clip_param:g} ({percent(below)} below, {percent(above)} above)"
    )
    return [heading(words), *drawn]


def fresh_numbers(numbers: FreshNumbers, request: TraceRequest, width: int) -> Numbers:
    """What stays, and the one thing that does not."""
    size = num_bytes(numbers.num_bytes).strip()
    cursor = (
        equation("t", f"{numbers.num_steps} → 0", str(numbers.cursor))
        if numbers.cursor == 0
        else text(f"t = {numbers.cursor} of {numbers.num_steps}: the rollout fills again")
    )
    names = "  ".join(numbers.obs_names[: max(1, (width - 20) // 24)])
    return Numbers(
        [
            cursor,
            _kept(
                "weights", f"{count(numbers.num_parameters)} numbers, sum of bits {numbers.weights}"
            ),
            _kept("obs_T", f"{numbers.obs_group}[{request.world}] = {names} ..."),
            (Span(" " * 14), *row_of_numbers(numbers.obs, max(8, width - 14), ellipsis=False)),
            _kept("episodes", f"world {request.world} goes on at step {numbers.episode_length}"),
            _kept("memory", f"{numbers.num_tensors} tensors of the rollout, {size}, overwritten"),
            _kept("iterations", f"{count(numbers.completed_iterations)} completed"),
        ]
    )


def _kept(name: str, words: str) -> Line:
    return (Span(f"{name:<11}", Role.STRONG), Span("   "), Span(words))
