"""A trained policy as TorchScript takes it.

TorchScript reads annotations as objects, so this module does without `from __future__`.
"""

from typing import Any

import torch
from torch import Tensor, nn

from trainer.inference import Policy


class Scripted(nn.Module):
    """The policy as a module that keeps its memory's state itself.

    Args:
        policy: the trained policy.
        num_obs: O.
    """

    hidden_state: Tensor
    cell_state: Tensor

    def __init__(self, policy: Policy, num_obs: int) -> None:
        super().__init__()
        actor = policy.actor
        rnn: nn.GRU | nn.LSTM = nn.GRU(1, 1) if actor.rnn is None else actor.rnn.rnn
        self.is_recurrent = actor.rnn is not None
        self.is_lstm = isinstance(rnn, nn.LSTM)
        # a script knows the types of both, and uses one
        self.gru = rnn if isinstance(rnn, nn.GRU) else nn.GRU(1, 1)
        self.lstm = rnn if isinstance(rnn, nn.LSTM) else nn.LSTM(1, 1)
        self.num_layers, self.width = rnn.num_layers, rnn.hidden_size
        num_features = self.width if self.is_recurrent else num_obs
        self.normalizer = _traced(actor.obs_normalizer, num_obs)
        self.head = _traced(_Head(policy), num_features)
        self.register_buffer("hidden_state", torch.zeros(self.num_layers, 1, self.width))
        self.register_buffer("cell_state", torch.zeros(self.num_layers, 1, self.width))

    def forward(self, obs: Tensor) -> Tensor:
        """Return actions [N, A] for `obs` [N, O]; another N than last time begins anew."""
        features = self.normalizer(obs)
        if self.is_recurrent:
            if self.hidden_state.size(1) != obs.size(0):
                self.hidden_state = obs.new_zeros([self.num_layers, obs.size(0), self.width])
                self.cell_state = obs.new_zeros([self.num_layers, obs.size(0), self.width])
            if self.is_lstm:
                states = (self.hidden_state, self.cell_state)
                steps, states = self.lstm(features.unsqueeze(0), states)
                self.hidden_state, self.cell_state = states
                features = steps.squeeze(0)
            else:
                steps, state = self.gru(features.unsqueeze(0), self.hidden_state)
                self.hidden_state = state
                features = steps.squeeze(0)
        actions: Tensor = self.head(features)
        return actions

    @torch.jit.export
    def reset(self) -> None:
        """Forget all that was seen: a new episode."""
        self.hidden_state = torch.zeros_like(self.hidden_state)
        self.cell_state = torch.zeros_like(self.cell_state)


class _Head(nn.Module):
    """From features to actions."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.mlp, self.distribution = policy.actor.mlp, policy.actor.distribution
        self.clip_actions = policy.clip_actions

    def forward(self, features: Tensor) -> Tensor:
        actions: Tensor = self.distribution.mean(self.mlp(features))
        if self.clip_actions is not None:
            actions = actions.clamp(-self.clip_actions, self.clip_actions)
        return actions


def script(policy: Policy, num_obs: int) -> Any:  # noqa: ANN401 - TorchScript's own type
    """Compile the policy: called with `obs` [N, O] it returns actions [N, A]."""
    return torch.jit.script(Scripted(policy, num_obs).eval())


def _traced(module: nn.Module, width: int) -> Any:  # noqa: ANN401 - TorchScript's own type
    return torch.jit.trace(module.eval(), torch.zeros(2, width))  # type: ignore[no-untyped-call]
