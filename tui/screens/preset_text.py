"""A preset in words and numbers: what it trains, and every size that follows from N and T."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from textual.content import Content

from presets.schema import Preset

LABEL_WIDTH = 14


def preset_text(preset: Preset, device: str, width: int) -> Content:
    """Describe a preset.

    Args:
        preset: all its values.
        device: where this machine would train it.
        width: columns to fold lists of names to.
    """
    sections = [
        *_shapes(preset),
        *_time(preset),
        *_row("device", f"{device}, {preset.env.num_envs:,} worlds", width),
        Content(""),
        *_row("actions", _names(preset.env.actions), width),
        *_observations(preset, width),
        *_row("ends by", _names(preset.env.terminations), width),
        *(_row("commands", _names(preset.env.commands), width) if preset.env.commands else []),
        Content(""),
        *_rewards(preset, width),
    ]
    return Content("\n").join(sections)


def command_line(name: str, settings: Iterable[str]) -> str:
    """Write the command that starts this run without the menu."""
    words = ["ppo-tui", "run", name]
    for setting in settings:
        key, _, value = setting.partition("=")
        words += ["--num-envs", value] if key == "env.num_envs" else ["--set", setting]
    return shlex.join(words)


def _shapes(preset: Preset) -> list[Content]:
    trainer, envs = preset.trainer, preset.env.num_envs
    steps, batch = trainer.num_steps_per_env, preset.batch_size
    mini_batches, epochs = trainer.num_mini_batches, trainer.num_learning_epochs
    total = batch * trainer.num_iterations
    return [
        _line("rollout", f"B = N T = {envs:,} x {steps} = {batch:,} transitions an iteration"),
        _line("mini-batch", f"M = B / {mini_batches} = {batch // mini_batches:,} samples"),
        _line(
            "updates",
            f"{epochs} epochs x {mini_batches} mini-batches = {epochs * mini_batches} an iteration",
        ),
        _line("whole run", f"{trainer.num_iterations:,} iterations = {short(total)} env steps"),
    ]


def _time(preset: Preset) -> list[Content]:
    env = preset.env
    return [
        _line(
            "time",
            f"{env.decimation} ticks x {1e3 * env.physics_dt:.4g} ms"
            f" = {1e3 * env.step_dt:.4g} ms a step ({1 / env.step_dt:.4g} Hz)",
        ),
        _line("episode", f"{env.max_episode_length:,} steps = {env.episode_length_s:g} s at most"),
    ]


def _observations(preset: Preset, width: int) -> list[Content]:
    lines = []
    for group, terms in preset.env.observations.items():
        lines += _row(f"obs {group}", f"{len(terms)} terms: {_names(terms)}", width)
    return lines


def _rewards(preset: Preset, width: int) -> list[Content]:
    terms = preset.env.rewards
    lines = [Content.styled("reward terms, weight x value x step", "bold")]
    if not terms:
        return [*lines, Content("  none")]
    cell = max(len(name) for name in terms) + 12
    columns = max(1, width // (cell + 2))
    rows = -(-len(terms) // columns)
    cells = [f"{name:<{cell - 11}}{setting.weight:>10.4g}" for name, setting in terms.items()]
    return [*lines, *(Content("  " + "   ".join(cells[row::rows])) for row in range(rows))]


def _row(label: str, text: str, width: int) -> list[Content]:
    """Fold `text` at spaces to the room beside its label."""
    room = max(20, width - LABEL_WIDTH)
    folded = [""]
    for word in text.split(" "):
        if folded[-1] and len(folded[-1]) + 1 + len(word) > room:
            folded.append(word)
        else:
            folded[-1] = f"{folded[-1]} {word}".strip()
    return [_line(label if index == 0 else "", part) for index, part in enumerate(folded)]


def _line(label: str, text: str) -> Content:
    return Content.styled(f"{label:<{LABEL_WIDTH}}", "$primary") + Content(text)


def _names(terms: Mapping[str, object]) -> str:
    return ", ".join(terms) or "none"


def short(count: int) -> str:
    """Write a large count with its unit: 147.5 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return str(count)
