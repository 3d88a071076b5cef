"""Random numbers of the worlds; all come from the env's one generator."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping

import torch
from torch import Tensor

from sim.config import Range

AXES = ("x", "y", "z", "roll", "pitch", "yaw")


def uniform(generator: torch.Generator, limits: Range, *shape: int) -> Tensor:
    """Draw float32 numbers of `shape`, uniform between the limits."""
    low, high = limits
    draw = torch.rand(*shape, generator=generator, device=generator.device)
    return draw.mul_(high - low).add_(low)


def log_uniform(generator: torch.Generator, limits: Range, *shape: int) -> Tensor:
    """Draw positive float32 numbers of `shape` whose logarithm is uniform between the limits'."""
    low, high = limits
    return uniform(generator, (math.log(low), math.log(high)), *shape).exp_()


def uniform_axes(generator: torch.Generator, ranges: Mapping[str, Range], n: int) -> Tensor:
    """Draw [n, 6] offsets along x, y, z and about roll, pitch, yaw; a missing axis gives 0."""
    limits = tuple(ranges.get(axis, (0.0, 0.0)) for axis in AXES)
    low, span = _low_and_span(limits, generator.device)
    draw = torch.rand(n, 6, generator=generator, device=generator.device)
    return draw.mul_(span).add_(low)


@functools.cache
def _low_and_span(limits: tuple[Range, ...], device: torch.device) -> tuple[Tensor, Tensor]:
    """Lower limits and widths of some ranges; made once, since a GPU would wait for the copy."""
    low, high = torch.tensor(limits, device=device).unbind(1)
    return low, high - low


def uniform_steps(generator: torch.Generator, limits: Range, step_dt: float, n: int) -> Tensor:
    """Draw [n] int64 numbers of env steps that cover a uniform time between the limits (seconds).

    A timer of t seconds rings on the first step at which t have passed. The thousandth of a step
    taken off absorbs the rounding of t / step_dt in float32.
    """
    steps = uniform(generator, limits, n).div_(step_dt).sub_(1e-3).ceil_()
    return steps.clamp_(min=1).to(torch.int64)
