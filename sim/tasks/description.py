"""What the program must know of a direct task before its class is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class DirectTask:
    """A task whose rules are a class: the sizes of its vectors, and the numbers it takes."""

    name: str
    """What a preset calls it."""
    env: str
    """Module and class of the env, `module:Class`."""
    robot: str
    """The robot that it is written for."""
    action_names: tuple[str, ...]
    """What each of the A columns of an action drives."""
    observations: Mapping[str, tuple[tuple[str, int], ...]]
    """For each observation group its parts in order, each with its width."""
    params: Mapping[str, float]
    """Its numbers by name, with their defaults; a preset may set others."""
