"""Where a robot came from."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from trainer.pose import RobotPose

MOST_POINTS = 400
LEAST_STEP = 0.02
"""m between two points that are kept."""


class Trail:
    """The places of a free base since its episode began."""

    def __init__(self) -> None:
        self._points: deque[NDArray[np.float32]] = deque(maxlen=MOST_POINTS)
        self._of = (-1, 0.0)

    def __len__(self) -> int:
        """Points that are kept."""
        return len(self._points)

    def follow(self, pose: RobotPose | None) -> None:
        """Take a new pose; another world or another episode begins a new trail."""
        if pose is None or pose.is_fixed:
            self._points.clear()
            return
        if pose.world != self._of[0] or pose.seconds < self._of[1]:
            self._points.clear()
        self._of = (pose.world, pose.seconds)
        if not self._points or np.hypot(*(pose.position - self._points[-1])[:2]) > LEAST_STEP:
            self._points.append(pose.position)

    @property
    def points(self) -> NDArray[np.float32] | None:
        """The places, [P, 3] m; None where there are none."""
        return np.stack(self._points) if self._points else None
