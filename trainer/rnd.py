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

from trainer.config import RndConfig, WeightSchedule
from trainer.mlp import MLP
from trainer.normalizer import EmpiricalNormalizer

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
    """

    def __init__(self, config: RndConfig, num_states: int, num_envs: int, step_dt: float) -> None:
        super().__init__()
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
            DiscountedReturnNormalizer(num_envs) if config.reward_normalization else nn.Identity()
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
            self.state_normalizer.update(*parts)

    def training_state(self) -> dict[str, Any]:
        """All that an exact continuation needs: tensors, numbers and dicts only."""
        state: dict[str, Any] = {
            "networks": self.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "num_steps": self.num_steps,
        }
        if isinstance(self.reward_normalizer, DiscountedReturnNormalizer):
            state["discounted_return"] = self.reward_normalizer.discounted_return
        return state

    def load_training_state(self, state: Mapping[str, Any], *, same_worlds: bool = True) -> None:
        """Continue from what `training_state` returned.

        Args:
            state: the state.
            same_worlds: whether the worlds go on as well; else their returns begin at 0.

        Raises:
            RuntimeError: a network's part of it is missing or does not fit.
        """
        self.load_state_dict(state["networks"])
        groups = [{**group, "fused": True} for group in state["optimizer"]["param_groups"]]
        self.optimizer.load_state_dict({**state["optimizer"], "param_groups": groups})
        self.num_steps = state["num_steps"]
        if same_worlds and isinstance(self.reward_normalizer, DiscountedReturnNormalizer):
            self.reward_normalizer.discounted_return.copy_(state["discounted_return"])


class DiscountedReturnNormalizer(nn.Module):
    """Divides rewards by the standard deviation of their running discounted sums.

    The sums run on over the ends of episodes.

    Args:
        num_envs: N.
    """

    def __init__(self, num_envs: int) -> None:
        super().__init__()
        self.emp_norm = EmpiricalNormalizer(1, until=MOST_ROWS)
        self.discounted_return: Tensor
        self.register_buffer("discounted_return", torch.zeros(num_envs), persistent=False)

    def forward(self, rewards: Tensor) -> Tensor:
        """Take in the rewards of one env step [N], and scale them."""
        self.discounted_return.mul_(REWARD_DISCOUNT).add_(rewards)
        self.emp_norm.update(self.discounted_return.unsqueeze(1))
        std = self.emp_norm._std.view(())
        return torch.where(std > 0, rewards / std, rewards)


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
