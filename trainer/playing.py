"""Episodes of a trained policy: played step by step, or counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from trainer.env import Env
from trainer.inference import Policy
from trainer.pose import RobotPose, Steerable, pose_of


@runtime_checkable
class Measured(Protocol):
    """An env that measures how well its robots do what they are told."""

    def episode_metrics(self) -> Mapping[str, Tensor]:
        """Metrics of the running episodes, name to [N]."""
        ...


class Episode(NamedTuple):
    """One episode from its start to its end."""

    world: int
    total: float
    """Sum of the rewards."""
    length: int
    """Steps."""
    fell: bool
    """Whether it ended in a state of its own, not at the time limit."""
    metrics: Mapping[str, float]
    """How well the robot did what it was told."""


class Player:
    """A policy in N worlds, without noise.

    Args:
        env: the worlds, freshly made.
        policy: what acts.
    """

    def __init__(self, env: Env, policy: Policy) -> None:
        self.env = env
        self.policy = policy
        self.rewards = torch.zeros(env.num_envs, device=env.device)
        """Of the last step, [N]."""
        self.totals = torch.zeros(env.num_envs, dtype=torch.float64, device=env.device)
        """Sums over the running episodes, [N]."""
        self.lengths = torch.zeros(env.num_envs, dtype=torch.int64, device=env.device)
        """Steps of the running episodes, [N]."""
        self._told: dict[int, tuple[float, ...]] = {}

    def step(self) -> list[Episode]:
        """Act once in all worlds; return the episodes that ended."""
        metrics = self._metrics()
        # what is measured on an episode's last step is lost: the worlds are reset within the step
        feedback = self.env.step(self.policy(self.env.observe()))
        done = feedback.terminated | feedback.time_outs
        self.rewards = feedback.reward
        self.totals += feedback.reward
        self.lengths += 1
        finished = [
            Episode(
                world,
                float(self.totals[world]),
                int(self.lengths[world]),
                bool(feedback.terminated[world]),
                {name: float(values[world]) for name, values in metrics.items()},
            )
            for world in done.nonzero().squeeze(1).tolist()
        ]
        if finished:
            self.policy.reset(done)
            self.totals[done] = 0.0
            self.lengths[done] = 0
        for world, values in self._told.items():
            self._steer(world, values)
        return finished

    def pose(self, world: int) -> RobotPose | None:
        """Where a world's robot is; None from an env that cannot say."""
        return pose_of(self.env, world)

    def hold_commands(self) -> None:
        """Draw no new goals within an episode."""
        if isinstance(self.env, Steerable):
            self.env.hold_commands()

    def steer(self, world: int, values: Sequence[float]) -> None:
        """Tell a world's robot what to do from now on, over the ends of its episodes."""
        self._told[world] = tuple(values)
        self._steer(world, self._told[world])

    def redraw_commands(self, world: int) -> None:
        """Draw a new goal for a world, and leave those to come to the env again."""
        self._told.pop(world, None)
        if isinstance(self.env, Steerable):
            self.env.redraw_commands(world)

    def restart(self, world: int) -> None:
        """Let a world's episode end with the next step, as if its time were up."""
        self.env.episode_length[world] = self.env.max_episode_length - 1

    def _steer(self, world: int, values: Sequence[float]) -> None:
        if isinstance(self.env, Steerable):
            self.env.steer(world, values)

    def _metrics(self) -> dict[str, Tensor]:
        if not isinstance(self.env, Measured):
            return {}
        return {name: values.clone() for name, values in self.env.episode_metrics().items()}


def play_episodes(player: Player, count: int) -> list[Episode]:
    """Play so many episodes.

    Every world plays its share, so that short episodes are not counted more often than long ones.

    Args:
        player: N worlds at the start of their episodes.
        count: at least 1.

    Returns:
        `count` episodes, ordered by world.
    """
    num_envs = player.env.num_envs
    left = [count // num_envs + (world < count % num_envs) for world in range(num_envs)]
    episodes: list[Episode] = []
    while any(left):
        for episode in player.step():
            if left[episode.world]:
                left[episode.world] -= 1
                episodes.append(episode)
    return sorted(episodes, key=lambda episode: episode.world)
