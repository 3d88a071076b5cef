"""The two networks: the actor's Gaussian over actions and the critic's value.

State-dict names are RSL-RL's (`mlp.0.weight`, `distribution.std_param`, `obs_normalizer._mean`,
`rnn.rnn.weight_ih_l0`), so that its checkpoints can be read.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from trainer.config import ActorConfig, CriticConfig, NetworkConfig
from trainer.distributions import Distribution, log_prob, make_distribution
from trainer.mlp import MLP
from trainer.normalizer import EmpiricalNormalizer
from trainer.recurrent import RNN, HiddenState, Memory


class Sample(NamedTuple):
    """What the actor decides for one step of N worlds."""

    action: Tensor
    """mean + std x noise, [N, A]."""
    log_prob: Tensor
    """Log density of the action, [N, 1]."""
    mean: Tensor
    """[N, A]"""
    std: Tensor
    """[A] where it does not depend on the observation, else [N, A]."""
    hidden: HiddenState = ()
    """Of a recurrent actor behind the step; new tensors."""


class Network(nn.Module):
    """A normaliser, a memory where the settings ask for one, and a perceptron.

    Args:
        config: widths, activation, normalisation and memory.
        num_obs: width O of an observation.
        num_outputs: width of the output.
        distribution: what the output describes, if not a value.
    """

    def __init__(
        self,
        config: NetworkConfig,
        num_obs: int,
        num_outputs: int,
        distribution: Distribution | None = None,
    ) -> None:
        super().__init__()
        # Parts stand in RSL-RL's order, by which its optimizer's states number the parameters.
        self.obs_normalizer: nn.Module = (
            EmpiricalNormalizer(num_obs) if config.obs_normalization else nn.Identity()
        )
        if distribution is not None:
            self.distribution = distribution
        num_features = num_obs if config.rnn_type is None else config.rnn_hidden_dim
        self.mlp = MLP(num_features, config.hidden_dims, num_outputs, config.activation)
        self.rnn = None if config.rnn_type is None else RNN(num_obs, config)

    def initial_hidden(self, num_envs: int) -> HiddenState:
        """Hidden states of N worlds at the start of an episode; () without a memory."""
        return () if self.rnn is None else self.rnn.initial(num_envs)

    def _advance(self, obs: Tensor, hidden: HiddenState) -> tuple[Tensor, HiddenState]:
        """Read one step's `obs` [N, O]; return the output [N, ...] and the next hidden states."""
        features = self.obs_normalizer(obs)
        if self.rnn is not None:
            features, hidden = self.rnn.step(features, hidden)
        return cast(Tensor, self.mlp(features)), hidden

    def _read(self, obs: Tensor, memory: Memory | None) -> Tensor:
        """Read `obs` [..., O], or whole trajectories [T, W, O]; return the output [..., ...]."""
        features = self.obs_normalizer(obs)
        if self.rnn is not None:
            if memory is None:
                raise ValueError("a recurrent network reads trajectories, or one step at a time")
            features = self.rnn(features, memory)
        return cast(Tensor, self.mlp(features))


class Actor(Network):
    """The policy: observation to a Gaussian over actions.

    Args:
        config: widths, activation, normalisation, memory and noise.
        num_obs: width O of an observation.
        num_actions: width A of an action.
    """

    def __init__(self, config: ActorConfig, num_obs: int, num_actions: int) -> None:
        distribution = make_distribution(num_actions, config)
        super().__init__(config, num_obs, distribution.num_outputs, distribution)
        distribution.initialize(cast(nn.Linear, self.mlp[-1]))

    @property
    def std(self) -> Tensor:
        """Standard deviation of each action, [A].

        Raises:
            AttributeError: it depends on the observation.
        """
        return cast(Tensor, self.distribution.std)

    def mean(self, obs: Tensor, memory: Memory | None = None) -> Tensor:
        """The action without noise for `obs` [..., O], [..., A]; not of a single recurrent step."""
        return self.distribution.mean(self._read(obs, memory))

    def forward(self, obs: Tensor, memory: Memory | None = None) -> tuple[Tensor, Tensor]:
        """Describe the action's distribution for many observations.

        Args:
            obs: [..., O]; [T, W, O] for a recurrent actor.
            memory: what a recurrent actor needs beside them.

        Returns:
            Mean [..., A], and standard deviation [A], or [..., A] where it depends on `obs`.
        """
        return cast(tuple[Tensor, Tensor], self.distribution(self._read(obs, memory)))

    def decide(self, obs: Tensor, hidden: HiddenState = ()) -> tuple[Tensor, HiddenState]:
        """The action without noise for one step: mean [N, A], and the next hidden states.

        Args:
            obs: [N, O].
            hidden: of a recurrent actor before the step.
        """
        output, hidden = self._advance(obs, hidden)
        return self.distribution.mean(output), hidden

    def act(self, obs: Tensor, generator: torch.Generator, hidden: HiddenState = ()) -> Sample:
        """Draw an action for each world; noise comes from `generator` alone.

        Args:
            obs: [N, O].
            generator: source of the noise.
            hidden: of a recurrent actor before the step; not changed.
        """
        self.project_std()  # a parameter set from outside must not stop a rollout
        output, following = self._advance(obs, hidden)
        mean, std = self.distribution(output)
        noise = torch.randn(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)
        action = mean + std * noise
        return Sample(action, log_prob(action, mean, std), mean, std, following)

    def project_std(self) -> None:
        """Move the standard deviation's parameter into its range."""
        self.distribution.project()


class Critic(Network):
    """The value function: observation to the expected discounted return.

    Args:
        config: widths, activation, normalisation and memory.
        num_obs: width O of an observation.
    """

    def __init__(self, config: CriticConfig, num_obs: int) -> None:
        super().__init__(config, num_obs, 1)

    def forward(self, obs: Tensor, memory: Memory | None = None) -> Tensor:
        """Return the value of `obs` [..., O], [..., 1].

        Args:
            obs: [..., O]; [T, W, O] for a recurrent critic.
            memory: what a recurrent critic needs beside them.
        """
        return self._read(obs, memory)

    def evaluate(self, obs: Tensor, hidden: HiddenState = ()) -> tuple[Tensor, HiddenState]:
        """Value of one step's `obs` [N, O], [N, 1], and the next hidden states.

        Args:
            obs: [N, O].
            hidden: of a recurrent critic before the step; not changed.
        """
        return self._advance(obs, hidden)
