"""One robot of the worlds that train, for a person who looks; nothing is done unless one does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from trainer.pose import Choice, RobotPose, RobotRequest, pose_of

if TYPE_CHECKING:
    from trainer.loop import Trainer

INTERVAL = 0.2
"""Seconds between two pictures while the worlds run."""


class RobotWatch:
    """Pictures of one robot, made between two steps of the worlds."""

    def __init__(self) -> None:
        self.request: RobotRequest | None = None
        """What a person looks at; replaced by other threads. None: nobody does."""
        self.pose: RobotPose | None = None
        """The newest picture; None where nobody looks, or the env cannot make one."""
        self._trainer: Trainer | None = None
        self._time = 0.0
        self._followed: tuple[RobotRequest, int, int] | None = None

    def attach(self, trainer: Trainer) -> None:
        """Look at the worlds of this trainer from now on."""
        self._trainer = trainer

    def refresh(self, *, even_if_recent: bool = False) -> bool:
        """Make a new picture if one is wanted and due; returns whether there is another one."""
        request, before = self.request, self.pose
        if request is None or self._trainer is None:
            self.pose = None
        elif even_if_recent or time.perf_counter() - self._time >= INTERVAL:
            self._time = time.perf_counter()
            self.pose = pose_of(self._trainer.env, self._choose(request))
        return self.pose is not before

    def _choose(self, request: RobotRequest) -> int:
        """Return the world to look at; the worst and the best stay it until their episode ends."""
        assert self._trainer is not None
        env = self._trainer.env
        if request.choice is Choice.CHOSEN:
            return max(0, min(request.world, env.num_envs - 1))
        if self._followed is not None and self._followed[0] is request:
            _, world, age = self._followed
            now = int(env.episode_length[world])
            if now >= age:
                self._followed = (request, world, now)
                return world
        rates = self._trainer.episodes.reward_a_step
        world = int(rates.argmin() if request.choice is Choice.WORST else rates.argmax())
        self._followed = (request, world, int(env.episode_length[world]))
        return world
