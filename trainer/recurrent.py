"""Networks with a memory: hidden states kept for each world, and trajectories cut from a rollout.

In the rollout the network advances by one step at a time and its hidden state is carried along,
one for each world, zeroed where an episode ends. In the update it reads whole trajectories at once:
a rollout's worlds are cut behind every done, the pieces are padded to one length, and the results
put back in place, as in RSL-RL.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from trainer.config import NetworkConfig

HiddenState = tuple[Tensor, ...]
"""Of one network in N worlds: (h,) of a GRU, (h, c) of an LSTM, [layers, N, H] each; () where the
network has no memory."""


class Trajectories(NamedTuple):
    """How T steps of W worlds fall into K pieces of at most S steps, none of them across a done.

    Pieces are ordered by world, then by time.
    """

    rows: Tensor
    """For each place of the padded pieces its row t W + w of the block, [S, K]; 0 at padding."""
    masks: Tensor
    """Which places are not padding, [S, K] bool."""
    places: Tensor
    """For each row t W + w of the block its place s K + k in the padded pieces, [T W]."""
    worlds: Tensor
    """The world of each piece, [K]."""
    continues: Tensor
    """Which pieces go on with an episode of the last rollout (all others start one, or the rollout
    itself does), [K] bool."""

    def pad(self, steps: Tensor) -> Tensor:
        """Cut steps [T, W, ...] into padded pieces [S, K, ...]; padding is 0."""
        flat = steps.flatten(0, 1).index_select(0, self.rows.flatten())
        padded = flat.view(*self.rows.shape, *steps.shape[2:])
        return padded.masked_fill_(~self.masks.unsqueeze(-1), 0.0)

    def unpad(self, pieces: Tensor, num_worlds: int) -> Tensor:
        """Put pieces [S, K, H] back in place, [T, W, H]."""
        flat = pieces.flatten(0, 1).index_select(0, self.places)
        return flat.view(-1, num_worlds, pieces.shape[-1])

    def initial(self, hidden: HiddenState) -> HiddenState:
        """Hidden states with which the pieces begin, from those before step 0 [layers, W, H].

        Behind a done that is 0, so it need not have been stored.

        Returns:
            [layers, K, H] each.
        """
        at_start = self.continues.unsqueeze(-1)
        return tuple(state.index_select(1, self.worlds) * at_start for state in hidden)


class Memory(NamedTuple):
    """What a recurrent network needs to read whole trajectories."""

    trajectories: Trajectories
    hidden: HiddenState
    """With which the pieces begin, [layers, K, H] each."""


class Sequences(NamedTuple):
    """The trajectories of a mini-batch, with each network's hidden states at their beginnings."""

    trajectories: Trajectories
    actor_hidden: HiddenState
    critic_hidden: HiddenState

    @property
    def actor(self) -> Memory:
        """What the actor needs."""
        return Memory(self.trajectories, self.actor_hidden)

    @property
    def critic(self) -> Memory:
        """What the critic needs."""
        return Memory(self.trajectories, self.critic_hidden)


@torch.no_grad()
def cut(dones: Tensor) -> Trajectories:
    """Cut T steps of W worlds behind every done.

    Args:
        dones: terminated or timed out, [T, W] bool.
    """
    num_steps, num_worlds = dones.shape
    starts = torch.ones_like(dones.T)
    starts[:, 1:] = dones[:-1].T  # [W, T]: pieces are counted world by world
    time = torch.arange(num_steps, device=dones.device).expand_as(starts)
    began = torch.where(starts, time, 0).cummax(dim=1).values
    piece = starts.flatten().cumsum(0).view_as(starts) - 1
    worlds, first = starts.nonzero(as_tuple=True)
    num_pieces, length = len(worlds), int((time - began).max()) + 1

    places = (time - began) * num_pieces + piece
    block_rows = time * num_worlds + torch.arange(num_worlds, device=dones.device)[:, None]
    rows = torch.zeros(length * num_pieces, dtype=torch.int64, device=dones.device)
    masks = torch.zeros_like(rows, dtype=torch.bool)
    rows[places.flatten()] = block_rows.flatten()
    masks[places.flatten()] = True
    shape = (length, num_pieces)
    return Trajectories(rows.view(shape), masks.view(shape), places.T.flatten(), worlds, first == 0)


def reset(hidden: HiddenState, dones: Tensor) -> None:
    """Zero in place the hidden states of the worlds that finished, `dones` [N] bool."""
    for state in hidden:
        state.masked_fill_(dones.view(1, -1, 1), 0.0)


class RNN(nn.Module):
    """A GRU or LSTM before the perceptron. State-dict names are RSL-RL's (`rnn.weight_ih_l0`).

    Args:
        num_inputs: width of the input.
        config: the network's settings, with an `rnn_type`.
    """

    def __init__(self, num_inputs: int, config: NetworkConfig) -> None:
        super().__init__()
        kind = nn.GRU if config.rnn_type == "gru" else nn.LSTM
        self.rnn: nn.GRU | nn.LSTM = kind(num_inputs, config.rnn_hidden_dim, config.rnn_num_layers)

    def initial(self, num_envs: int) -> HiddenState:
        """Hidden states of N worlds at the start of an episode: 0."""
        weight = cast(Tensor, self.rnn.weight_hh_l0)
        shape = (self.rnn.num_layers, num_envs, self.rnn.hidden_size)
        count = 2 if isinstance(self.rnn, nn.LSTM) else 1
        return tuple(weight.new_zeros(shape) for _ in range(count))

    def step(self, inputs: Tensor, hidden: HiddenState) -> tuple[Tensor, HiddenState]:
        """Advance by one step: inputs [N, I] to features [N, H] and the next hidden states."""
        features, following = self._run(inputs.unsqueeze(0), hidden)
        return features.squeeze(0), following

    def forward(self, inputs: Tensor, memory: Memory) -> Tensor:
        """Read whole trajectories: inputs [T, W, I] to features [T, W, H]."""
        trajectories, hidden = memory
        pieces, _ = self._run(trajectories.pad(inputs), hidden)
        return trajectories.unpad(pieces, inputs.shape[1])

    def _run(self, inputs: Tensor, hidden: HiddenState) -> tuple[Tensor, HiddenState]:
        if isinstance(self.rnn, nn.LSTM):
            return cast(
                tuple[Tensor, HiddenState], self.rnn(inputs, cast(tuple[Tensor, Tensor], hidden))
            )
        features, following = self.rnn(inputs, hidden[0])
        return features, (following,)
