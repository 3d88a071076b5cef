"""Types of the parameters that terms take: what a preset may write, and what a term receives.

`sim.catalog` checks a preset's values by these names; `sim.managers.binding` turns the names of
joints and bodies into indices, once, when the env is made.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from sim.config import Range

Index = slice | Tensor
"""Columns of a tensor: a slice where they lie side by side (a view), else their numbers."""

Joints = Index
"""Written as a pattern or a list of patterns of joint names; received as columns."""
Bodies = Index
"""Written as a pattern or a list of patterns of the robot's body names; received as columns."""
Body = int
"""Written as a pattern that one body's name matches; received as its column."""
ContactBodies = Index
"""Written as patterns of names of bodies that have a contact sensor; received as columns."""

ALL: Index = slice(None)
"""The default of those above that pick several: every one."""

PositiveRange = Range
"""Two positive numbers, low and high."""
TimeRange = Range
"""Two numbers of at least 0, low and high, s."""
AxisRanges = Mapping[str, Range]
"""Ranges by axis (x, y, z, roll, pitch, yaw); an axis that is left out stays at 0."""
CommandName = str
"""Name of one of the preset's commands."""
RewardName = str
"""Name of one of the preset's reward terms."""
