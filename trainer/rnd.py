"""Random network distillation: a reward for coming where the robot has not been before.

A network with random weights that never change (the target) answers to every state; another (the
predictor) learns to give the same answers where the robot goes. Where it still fails, the state is
new, and its error is paid as an intrinsic reward (Burda et al. 2018, "Exploration by random network
distillation"). Names, defaults and rules are RSL-RL's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.linalg import vector_norm

from trainer.config import ObsGroups, RndConfig, WeightSchedule
from trainer.distributed import Group
from trainer.env import Env
from trainer.episodes import EpisodeStatistics
from trainer.mlp import MLP
from trainer.normalizer import EmpiricalNormalizer
from trainer.observation_sets import ObservationSet, resolve_set
from trainer.rollout import Rollout

MOST_ROWS = 10**8
"""Rows after which the running statistics stay as they are (RSL-RL's)."""
REWARD_DISCOUNT = 0.99
"""Discount of the intrinsic return whose spread scales the intrinsic reward (RSL-RL's)."""


class RandomNetworkDistillation(nn.Module):
    """Target, predictor and the predictor's own optimizer.

    Args:
        config: widths, normalisation, weight and rate.
        num_states: width S of a state.
        num_envs: N.
        step_dt: seconds of an env step, by which the weight is multiplied once.
        read: the observation groups that make a state.
        group: the ranks that learn together; unset: this process alone.
    """

    def __init__(
        self,
        config: RndConfig,
        num_states: int,
        num_envs: int,
        step_dt: float,
        read: ObservationSet = ObservationSet(),  # noqa: B008 - frozen
        group: Group | None = None,
    ) -> None:
        super().__init__()
        self.read = read
        self.group = group or Group()
        self.schedule = config.weight_schedule
        self.initial_weight = config.weight * step_dt
        self.num_steps = 0
        """Env steps for which a reward was given; the schedule goes by it."""
        self.state_normalizer = (
            EmpiricalNormalizer(num_states, until=MOST_ROWS)
            if config.state_normalization
            else nn.Identity()
        )
        self.reward_normalizer = (
            DiscountedReturnNormalizer(num_envs, self.group)
            if config.reward_normalization
            else nn.Identity()
        )

        def network(hidden_dims: tuple[int, ...]) -> MLP:
            widths = [num_states if width == -1 else width for width in hidden_dims]
            return MLP(num_states, widths, config.num_outputs, config.activation)

        self.predictor = network(config.predictor_hidden_dims)
        self.target = network(config.target_hidden_dims).requires_grad_(False)
        self.optimizer = torch.optim.Adam(
            self.predictor.parameters(), lr=config.learning_rate, fused=True
        )

    @property
    def weight(self) -> float:
        """Weight of the last reward that was given, for one env step."""
        return scheduled_weight(self.initial_weight, self.schedule, self.num_steps)

    @torch.no_grad()
    def intrinsic_reward(self, states: Tensor) -> Tensor:
        """How new the states are that an env step led to: weight x |target - predictor|, [N].

        Call it once an env step.

        Args:
            states: [N, S].
        """
        self.num_steps += 1
        states = self.state_normalizer(states)
        novelty = vector_norm(self.target(states) - self.predictor(states), dim=1)
        return cast(Tensor, self.reward_normalizer(novelty) * self.weight)

    def loss(self, states: Tensor) -> Tensor:
        """Mean squared error of the predictor's answer to `states` [M, S], []."""
        with torch.no_grad():
            states = self.state_normalizer(states)
            answer = self.target(states)
        return F.mse_loss(self.predictor(states), answer)

    def update_normalizer(self, *parts: Tensor) -> None:
        """Take a rollout's states into the running statistics; once an iteration.

        Args:
            parts: [..., S_i] each, side by side.
        """
        if isinstance(self.state_normalizer, EmpiricalNormalizer):
            self.state_normalizer.update(*parts, group=self.group)

    def training_state(self) -> dict[str, Any]:
        """What an exact continuation needs, but for the worlds' part: tensors, numbers, dicts."""
        return {
            "networks": self.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "num_steps": self.num_steps,
        }

    def load_training_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `training_state` returned.

        Raises:
            RuntimeError: a network's part of it is missing or does not fit.
        """
        self.load_state_dict(state["networks"])
        groups = [{**group, "fused": True} for group in state["optimizer"]["param_groups"]]
        self.optimizer.load_state_dict({**state["optimizer"], "param_groups": groups})
        self.num_steps = state["num_steps"]


class IntrinsicReward:
    """Pays the rollout for new states, and counts what whole episodes were paid.

    What a step led to is known at the next look at the worlds: only then is its row of the rollout
    paid, after the row was stored and before targets are computed.

    Args:
        rnd: says how new states are.
        num_envs: N.
        device: where the env's tensors live.
    """

    def __init__(self, rnd: RandomNetworkDistillation, num_envs: int, device: torch.device) -> None:
        self.rnd = rnd
        self._episodes = EpisodeStatistics(num_envs, device)

    def pay(self, rollout: Rollout, observations: Mapping[str, Tensor]) -> None:
        """Add the reward for the states of `observations` to the row stored last."""
        row = rollout.cursor - 1
        reward = self.rnd.intrinsic_reward(self.rnd.read(observations))
        rollout.rewards[row] += reward.unsqueeze(1)
        self._episodes.add(reward, rollout.dones[row].squeeze(1))

    def metrics(self, extrinsic: Mapping[str, float]) -> dict[str, float]:
        """Means over the last finished episodes.

        Args:
            extrinsic: those of the env's own reward, empty while no episode has finished.
        """
        if not extrinsic:
            return {}
        env, paid = extrinsic["Train/mean_reward"], self._episodes.metrics()["Train/mean_reward"]
        return {
            **extrinsic,
            "Train/mean_reward": env + paid,
            "Rnd/mean_extrinsic_reward": env,
            "Rnd/mean_intrinsic_reward": paid,
        }

    def state_dict(self) -> dict[str, Tensor]:
        """The worlds' part of an exact continuation."""
        state = self._episodes.state_dict()
        if isinstance(self.rnd.reward_normalizer, DiscountedReturnNormalizer):
            state["discounted_return"] = self.rnd.reward_normalizer.discounted_return
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a state that `state_dict` returned."""
        for name, tensor in self.state_dict().items():
            tensor.copy_(state[name])


class DiscountedReturnNormalizer(nn.Module):
    """Divides rewards by the standard deviation of their running discounted sums.

    The sums run on over the ends of episodes.

    Args:
        num_envs: N.
        group: the ranks whose rewards count together; unset: this process alone.
    """

    def __init__(self, num_envs: int, group: Group | None = None) -> None:
        super().__init__()
        self._group = group or Group()
        self.emp_norm = EmpiricalNormalizer(1, until=MOST_ROWS)
        self.discounted_return: Tensor
        self.register_buffer("discounted_return", torch.zeros(num_envs), persistent=False)

    def forward(self, rewards: Tensor) -> Tensor:
        """Take in the rewards of one env step [N], and scale them."""
        self.discounted_return.mul_(REWARD_DISCOUNT).add_(rewards)
        self.emp_norm.update(self.discounted_return.unsqueeze(1), group=self._group)
        std = self.emp_norm._std.view(())
        return torch.where(std > 0, rewards / std, rewards)


def make_rnd(
    config: RndConfig | None,
    obs_groups: ObsGroups,
    widths: Mapping[str, int],
    env: Env,
    group: Group,
) -> RandomNetworkDistillation | None:
    """Make what the settings ask for; None if they ask for nothing.

    Args:
        config: the settings.
        obs_groups: the sets of observation groups that are given.
        widths: width of each group of the env.
        env: the worlds.
        group: the ranks that learn together.
    """
    if config is None:
        return None
    read = resolve_set(obs_groups, "rnd_state", widths)
    return RandomNetworkDistillation(
        config, read.width(widths), env.num_envs, env.step_dt, read, group
    )


def scheduled_weight(initial: float, schedule: WeightSchedule | None, step: int) -> float:
    """Weight of the intrinsic reward at an env step.

    The schedule's final value is a weight for one env step: unlike the initial one it has not been
    multiplied by the length of a step.

    Args:
        initial: weight at the start.
        schedule: how it changes; None: it stays.
        step: env steps so far, this one included.
    """
    if schedule is None or schedule.mode == "constant":
        return initial
    assert schedule.final_step is not None
    assert schedule.final_value is not None
    if schedule.mode == "step":
        return initial if step < schedule.final_step else schedule.final_value
    assert schedule.initial_step is not None
    passed = (step - schedule.initial_step) / (schedule.final_step - schedule.initial_step)
    return initial + (schedule.final_value - initial) * min(max(passed, 0.0), 1.0)
