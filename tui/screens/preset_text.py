"""A preset in words and numbers: what it trains, and every size that follows from N and T."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from textual.content import Content

from presets.overrides import FLAGS
from presets.schema import Preset
from tui.screens.labels import labelled_rows


class Sizes(NamedTuple):
    """Widths that do not show in the preset's own values."""

    num_actions: int
    observations: Mapping[str, Mapping[str, int | None]]
    """Of each term of each group; None where only building tells."""


def preset_text(preset: Preset, sizes: Sizes, device: str, width: int) -> Content:
    """Describe a preset.

    Args:
        preset: all its values.
        sizes: its widths.
        device: where this machine would train it.
        width: columns to fold lists of names to.
    """
    if preset.env.adapter is not None:
        rows = {**_shapes(preset), "worlds": preset.env.adapter, "device": device}
        return Content("\n").join(
            line for label, text in rows.items() for line in labelled_rows(label, text, width)
        )
    rows = {**_shapes(preset), **_time(preset), "device": device, "": ""}
    if preset.env.task is not None:
        rows["task"] = f"{preset.env.task}: a class brings rewards and endings"
    actions = f" {_names(preset.env.actions)}" if preset.env.actions else ""
    rows["actions"] = f"[N, {sizes.num_actions}]{actions}"
    rows |= _observations(sizes)
    if preset.env.task is None:
        rows["ends by"] = _names(preset.env.terminations)
    if preset.env.commands:
        rows["commands"] = _names(preset.env.commands)
    lines = [line for label, text in rows.items() for line in labelled_rows(label, text, width)]
    if preset.env.task is not None:
        return Content("\n").join(lines)
    return Content("\n").join([*lines, Content(""), *_rewards(preset, width)])


def command_line(name: str, settings: Iterable[str]) -> str:
    """Write the command that starts this run without the menu."""
    options = {".".join(path): option for option, path in FLAGS.items()}
    words = ["ppo-tui", "run", name]
    for setting in settings:
        key, _, value = setting.partition("=")
        option = options.get(key) if value.isdecimal() else None
        words += [option, value] if option else ["--set", setting]
    return shlex.join(words)


def _shapes(preset: Preset) -> dict[str, str]:
    trainer, envs = preset.trainer, preset.env.num_envs
    steps, batch = trainer.num_steps_per_env, preset.batch_size
    mini_batches, epochs = trainer.num_mini_batches, trainer.num_learning_epochs
    total = batch * trainer.num_iterations
    return {
        "rollout": f"B = N T = {envs:,} x {steps} = {batch:,} transitions",
        "mini-batch": f"M = B / {mini_batches} = {batch // mini_batches:,} samples",
        "updates": f"{epochs} epochs x {mini_batches} mini-batches = {epochs * mini_batches}",
        "whole run": f"{trainer.num_iterations:,} iterations = {short(total)} env steps",
    }


def _time(preset: Preset) -> dict[str, str]:
    env = preset.env
    tick, step = 1e3 * env.physics_dt, 1e3 * env.step_dt
    return {
        "env step": f"{env.decimation} ticks x {tick:.4g} ms = {step:.4g} ms, {1e3 / step:.4g} Hz",
        "episode": f"{env.max_episode_length:,} steps = {env.episode_length_s:g} s at most",
    }


def _observations(sizes: Sizes) -> dict[str, str]:
    rows = {}
    for group, terms in sizes.observations.items():
        known = [size for size in terms.values() if size is not None]
        total = f"{sum(known)}" if len(known) == len(terms) else f"{sum(known)} + ?"
        named = ", ".join(f"{name} {'?' if size is None else size}" for name, size in terms.items())
        rows[f"obs {group}"] = f"[N, {total}] {named}"
    return rows


def _rewards(preset: Preset, width: int) -> list[Content]:
    terms = preset.env.rewards
    lines = [Content.styled("reward terms and their weights", "bold")]
    if not terms:
        return [*lines, Content("  none")]
    cell = max(len(name) for name in terms) + 12
    columns = max(1, width // (cell + 2))
    rows = -(-len(terms) // columns)
    cells = [f"{name:<{cell - 11}}{setting.weight:>10.4g}" for name, setting in terms.items()]
    return [*lines, *(Content("  " + "   ".join(cells[row::rows])) for row in range(rows))]


def _names(terms: Mapping[str, object]) -> str:
    return ", ".join(terms) or "none"


def short(count: int) -> str:
    """Write a large count with its unit: 147.5 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return str(count)
