"""A trained policy without its noise: what acts when nobody learns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from trainer.checkpoint import CheckpointError
from trainer.config import TrainerConfig
from trainer.env import Env
from trainer.observation_sets import ObservationSet, resolve_set
from trainer.policy import Actor
from trainer.recurrent import HiddenState, reset


class Policy:
    """The mean of a trained actor, in N worlds: normaliser, memory and limits included.

    Args:
        actor: the trained network; it is put into evaluation mode.
        observation_set: the observation groups that it reads.
        clip_actions: limit of the actions, as in training; None where there is none.
    """

    def __init__(
        self, actor: Actor, observation_set: ObservationSet, clip_actions: float | None = None
    ) -> None:
        self.actor = actor.eval()
        self.observation_set = observation_set
        self.clip_actions = clip_actions
        self._hidden: HiddenState | None = None

    @torch.no_grad()
    def __call__(self, observations: Mapping[str, Tensor]) -> Tensor:
        """Decide for all worlds.

        Args:
            observations: the env's groups, [N, O_g] each.

        Returns:
            Actions [N, A].
        """
        obs = self.observation_set(observations)
        if self._hidden is None:
            self._hidden = self.actor.initial_hidden(len(obs))
        actions, self._hidden = self.actor.decide(obs, self._hidden)
        if self.clip_actions is not None:
            actions = actions.clamp(-self.clip_actions, self.clip_actions)
        return actions

    def reset(self, done: Tensor) -> None:
        """Forget what was seen in the worlds whose episode ended, `done` [N] bool."""
        if self._hidden is not None:
            reset(self._hidden, done)


def load_policy(config: TrainerConfig, env: Env, state: Mapping[str, Any], path: Path) -> Policy:
    """Rebuild the policy of a checkpoint.

    Args:
        config: the settings that it was trained with.
        env: worlds like those it was trained in.
        state: what the checkpoint holds.
        path: the checkpoint, for messages.

    Raises:
        CheckpointError: the checkpoint holds no policy, or one of another shape; says what differs.
    """
    widths = {
        group: sum(width for _, width in terms) for group, terms in env.observation_terms.items()
    }
    observation_set = resolve_set(config.obs_groups, "actor", widths)
    actor = Actor(config.actor, observation_set.width(widths), env.num_actions)
    weights = state.get("actor")
    if not isinstance(weights, Mapping):
        raise CheckpointError(f"{path}: holds no policy")
    if differences := _differences(actor, weights):
        raise CheckpointError(
            f"{path}: its policy does not fit the run's config.toml: {'; '.join(differences)}"
        )
    actor.load_state_dict(weights)
    return Policy(actor.to(env.device), observation_set, config.clip_actions)


def _differences(network: nn.Module, weights: Mapping[str, Any]) -> list[str]:
    """Say what a network needs that is missing, has another shape, or is there for nothing."""
    wanted = cast("dict[str, Tensor]", network.state_dict())
    missing = [name for name in wanted if name not in weights]
    extra = [name for name in weights if name not in wanted]
    shapes = [
        f"{name} is {list(weights[name].shape)}, not {list(tensor.shape)}"
        for name, tensor in wanted.items()
        if name in weights and weights[name].shape != tensor.shape
    ]
    return [
        *([f"it lacks {', '.join(missing)}"] if missing else []),
        *([f"it also holds {', '.join(extra)}"] if extra else []),
        *shapes,
    ]
