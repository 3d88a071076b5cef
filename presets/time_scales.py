"""The three time scales of a preset in words: tick, env step, episode, and what each changes."""

from __future__ import annotations

from sim.config import EnvConfig


def time_scales(env: EnvConfig) -> list[str]:
    """Return a few lines on how time runs, with the preset's numbers."""
    if env.adapter is not None:
        return [f"time runs as {env.adapter} has it"]
    rows = (
        (f"physics_dt = {env.physics_dt:.4g} s", "one physics tick"),
        ("  smaller", "more exact contacts and motors, more ticks for the same time"),
        (f"decimation = {env.decimation}", "ticks under one action"),
        ("  smaller", "the policy acts more often, more env steps for the same time"),
        (f"step_dt = {env.step_dt:.4g} s", "one env step: physics_dt x decimation"),
        ("  smaller", "gamma and num_steps_per_env count env steps, so they look less far ahead"),
        ("render interval: none", "the worlds are computed, never rendered; a view of a robot is"),
        ("  drawn", "from its state between two env steps, and slows nothing down"),
        (f"episode = {env.max_episode_length} steps", f"at most: {env.episode_length_s:.4g} s"),
        ("  longer", "fewer resets, each iteration sees a smaller part of an episode"),
    )
    return [f"{scale:<26}{meaning}" for scale, meaning in rows]
