"""Stage 6: one optimizer step for each mini-batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from trainer.config import TrainerConfig
from trainer.distributed import Group
from trainer.distributions import entropy, kl, log_prob
from trainer.guard import NonFiniteError, all_finite, named_samples, raise_first_non_finite
from trainer.losses import adapt_learning_rate, surrogate_losses, value_losses
from trainer.normalizer import EmpiricalNormalizer
from trainer.observation_sets import ObservationSet
from trainer.optimizers import make_optimizer, require_fitting_state
from trainer.policy import Actor, Critic
from trainer.rnd import RandomNetworkDistillation
from trainer.rollout import Rollout, Samples
from trainer.symmetry import Symmetry
from trainer.targets import normalize_advantages
from trainer.threads import TorchThreads

__all__ = ["Learner", "MiniBatchResult", "NonFiniteError"]


_KINDS = ("fused", "foreach", "capturable")
"""How an optimizer computes, rather than what: ours, whoever wrote the state."""


class PolicyScores(NamedTuple):
    """What the actor makes of one mini-batch now, in the order of computation."""

    new_means: Tensor
    """[M, A]"""
    new_stds: Tensor
    """[A], or [M, A] where they depend on the observation."""
    ratio: Tensor
    """New over old probability of each stored action, [M, 1]; below it that of the mirror images,
    where samples are augmented by them."""
    kl: Tensor
    """Mean KL(old || new), []."""
    surrogate: Tensor
    """Mean clipped surrogate, []."""
    entropy: Tensor
    """Mean entropy of the new policy in nats, []."""
    symmetry: Tensor | None
    """The mirror loss, []."""


class ValueScores(NamedTuple):
    """What the critic makes of it."""

    new_values: Tensor
    """[M, 1]"""
    value_loss: Tensor
    """[]"""


class MiniBatchResult(NamedTuple):
    """One optimizer step; all numbers but the rate are from before it."""

    kl: float
    """Mean KL(old || new) over the mini-batch."""
    learning_rate: float
    """The rate that the step used."""
    clip_fraction: float
    """Share of ratios outside 1 +- clip_param."""
    surrogate: float
    value_loss: float
    entropy: float
    actor_grad_norm: float
    """Before clipping."""
    critic_grad_norm: float
    """Before clipping."""
    ratio: Tensor
    """New over old probability of each stored action, [M]."""
    symmetry: float | None = None
    """The mirror loss, where it is computed."""
    rnd: float | None = None
    """The loss of random network distillation, where there is one."""


class Learner:
    """Actor, critic and the one optimizer over both.

    Args:
        config: PPO's settings.
        actor: the policy network.
        critic: the value network.
        actor_set: the observations that the actor reads.
        critic_set: the observations that the critic reads.
        group: the ranks that learn together; unset: this process alone.
        symmetry: the mirror image to learn from, if there is one.
        rnd: what learns to tell new states, if anything does; it has an optimizer of its own.
        threads: which compute actor and critic, side by side.
    """

    def __init__(
        self,
        config: TrainerConfig,
        actor: Actor,
        critic: Critic,
        actor_set: ObservationSet = ObservationSet(),  # noqa: B008 - frozen
        critic_set: ObservationSet = ObservationSet(),  # noqa: B008 - frozen
        group: Group | None = None,
        symmetry: Symmetry | None = None,
        rnd: RandomNetworkDistillation | None = None,
        threads: TorchThreads | None = None,
    ) -> None:
        self.config = config
        self.group = group or Group()
        self.symmetry = symmetry
        self.rnd = rnd
        self.threads = threads or TorchThreads(next(actor.parameters()).device)
        self.actor = actor
        self.critic = critic
        self.actor_set = actor_set
        self.critic_set = critic_set
        self._actor_parameters = list(actor.parameters())
        self._critic_parameters = list(critic.parameters())
        self._rnd_parameters = [] if rnd is None else list(rnd.predictor.parameters())
        self.num_weights = max(
            sum(parameter.numel() for parameter in parameters)
            for parameters in (self._actor_parameters, self._critic_parameters)
        )
        """Of the larger network: about the multiply-adds of a row's forward pass."""
        self.optimizer = make_optimizer(
            config.optimizer,
            chain(self._actor_parameters, self._critic_parameters),
            config.learning_rate,
        )

    @property
    def learning_rate(self) -> float:
        """The optimizer's own rate; no copy of it exists that could fall behind after a resume."""
        return float(self.optimizer.param_groups[0]["lr"])

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = value

    def optimize(self, batch: Samples, *, unmoved: bool = False) -> MiniBatchResult:
        """Re-score the stored actions of one mini-batch and take one optimizer step.

        The adaptive schedule sets the rate from this mini-batch's KL before the step. The device
        is waited for once, when all numbers are read together before the step.

        Gradients and all numbers are means over the mini-batches of all ranks.

        Args:
            batch: M samples of the rollout.
            unmoved: no step has been taken since the rollout, so the policy is still the one that
                made it, and a KL of rounding size moves no rate.

        Raises:
            NonFiniteError: a loss or a gradient is not finite; no parameter has changed.
            RankError: that is so on another rank.
        """
        config = self.config
        samples = self._learnt_from(batch)
        self.optimizer.zero_grad(set_to_none=True)
        policy, values = self.threads.side_by_side(
            lambda: self._learn_policy(batch, samples),
            lambda: self._learn_values(samples),
            work=batch.actions.shape[:-1].numel() * self.num_weights,
        )
        rnd_loss = None if self.rnd is None else self._learn_novelty(self.rnd, batch)
        with torch.no_grad():
            ratio = policy.ratio[: batch.num_rows].detach()
            clipped = ((ratio - 1.0).abs() > config.clip_param).to(ratio.dtype).mean()
            losses = (policy.surrogate, values.value_loss, policy.entropy)
            more = [loss for loss in (policy.symmetry, rnd_loss) if loss is not None]
            gradients, own_numbers = self._average_over_ranks((policy.kl, clipped, *losses, *more))
            actor_norm, critic_norm = map(get_total_norm, gradients[:2])
            numbers = torch.stack((actor_norm, critic_norm, *own_numbers))
        actor_grad_norm, critic_grad_norm, mean_kl, *others = numbers.tolist()
        if not all(map(math.isfinite, (actor_grad_norm, critic_grad_norm, mean_kl, *others))):
            computed = {**policy._asdict(), **values._asdict(), "rnd": rnd_loss}
            self._refuse(batch, computed)
        for parameters, own_gradients in zip(self._parameters, gradients, strict=True):
            _set_gradients(parameters, own_gradients)

        if config.schedule == "adaptive":
            self.learning_rate = adapt_learning_rate(
                self.learning_rate, mean_kl, config.desired_kl, unmoved=unmoved
            )
        clip_grads_with_norm_(self._actor_parameters, config.max_grad_norm, actor_norm)
        clip_grads_with_norm_(self._critic_parameters, config.max_grad_norm, critic_norm)
        self.optimizer.step()
        self.actor.project_std()
        if self.rnd is not None:
            self.rnd.optimizer.step()
        clip_fraction, surrogate, value_loss, mean_entropy, *others = others
        return MiniBatchResult(
            mean_kl,
            self.learning_rate,
            clip_fraction,
            surrogate,
            value_loss,
            mean_entropy,
            actor_grad_norm,
            critic_grad_norm,
            ratio.flatten(),
            symmetry=others.pop(0) if policy.symmetry is not None else None,
            rnd=others.pop(0) if rnd_loss is not None else None,
        )

    @property
    def _parameters(self) -> tuple[list[nn.Parameter], list[nn.Parameter], list[nn.Parameter]]:
        return self._actor_parameters, self._critic_parameters, self._rnd_parameters

    def _average_over_ranks(
        self, numbers: Sequence[Tensor]
    ) -> tuple[list[list[Tensor]], list[Tensor]]:
        """Gradients of actor, critic and predictor, and some numbers, as means over all ranks.

        The parameters keep their own rank's gradients.
        """
        own = [_gradients(parameters) for parameters in self._parameters]
        means = iter(self.group.average([*chain(*own), *numbers]))
        return [[next(means) for _ in gradients] for gradients in own], list(means)

    def _learnt_from(self, batch: Samples) -> Samples:
        """The samples of a mini-batch as the losses read them."""
        if self.config.normalize_advantage_per_mini_batch:
            advantages = normalize_advantages(batch.advantages.clone(), group=self.group)
            batch = batch._replace(advantages=advantages)
        if self.symmetry is None:
            return batch
        # the mirror images, if there are any, stand below the samples themselves
        return self.symmetry.augmented(batch, {*self.actor_set.groups, *self.critic_set.groups})

    def _learn_policy(self, batch: Samples, samples: Samples) -> PolicyScores:
        """Compare the policy with the one that made a mini-batch; leave the actor its gradients.

        Args:
            batch: M samples.
            samples: what is learnt from: these, and perhaps their mirror images.
        """
        config, sequences = self.config, samples.sequences
        all_means, all_stds = self.actor(
            self.actor_set(samples.observations), sequences.actor if sequences else None
        )
        means, stds = all_means[: batch.num_rows], all_stds
        if stds.ndim > 1:
            stds = stds[: batch.num_rows]
        ratio = (log_prob(samples.actions, all_means, all_stds) - samples.log_probs).exp()
        with torch.no_grad():
            mean_kl = kl(batch.means, batch.stds, means, stds).mean()
        scores = PolicyScores(
            new_means=means,
            new_stds=stds,
            ratio=ratio,
            kl=mean_kl,
            surrogate=surrogate_losses(ratio, samples.advantages, config.clip_param).mean(),
            entropy=entropy(stds).mean(),
            symmetry=self._mirror_loss(batch, all_means),
        )
        loss = scores.surrogate - config.entropy_coef * scores.entropy
        if scores.symmetry is not None and scores.symmetry.requires_grad:
            assert config.symmetry is not None
            loss = loss + config.symmetry.mirror_loss_coeff * scores.symmetry
        loss.backward()  # type: ignore[no-untyped-call]
        return scores

    def _learn_values(self, samples: Samples) -> ValueScores:
        """Compare the critic's values with the returns, and leave the critic its gradients."""
        config, sequences = self.config, samples.sequences
        values = self.critic(
            self.critic_set(samples.observations), sequences.critic if sequences else None
        )
        clip_param = config.clip_param if config.use_clipped_value_loss else None
        loss = value_losses(values, samples.values, samples.returns, clip_param).mean()
        (config.value_loss_coef * loss).backward()  # type: ignore[no-untyped-call]
        return ValueScores(values, loss)

    def _learn_novelty(self, rnd: RandomNetworkDistillation, batch: Samples) -> Tensor:
        """Compare the predictor with its target; leave it its gradients, and return the loss."""
        loss = rnd.loss(rnd.read(batch.observations))
        rnd.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    def _mirror_loss(self, batch: Samples, all_means: Tensor) -> Tensor | None:
        """How unlike its mirror image the policy is, []; without a gradient where it only tells.

        Args:
            batch: M samples.
            all_means: the policy's answer to them, and to their mirror images if it was asked.
        """
        if self.symmetry is None:
            return None
        with torch.set_grad_enabled(self.symmetry.config.use_mirror_loss):
            mirrored = self.symmetry.mirrored_observations(batch, self.actor_set.groups)
            if mirrored is None:
                mirrored_means = all_means[batch.num_rows :]
            else:
                mirrored_means = self.actor.mean(self.actor_set(mirrored))
            return self.symmetry.loss(all_means[: batch.num_rows], mirrored_means)

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's state, its learning rate included; the networks have their own."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that `state_dict` (or RSL-RL's optimizer) returned.

        Raises:
            ValueError: the state is that of another optimizer, or of other networks.
        """
        require_fitting_state(self.optimizer, state)
        defaults = self.optimizer.defaults  # for what an older torch did not save
        kind = {key: value for key, value in defaults.items() if key in _KINDS}
        groups = [{**defaults, **group, **kind} for group in state["param_groups"]]
        self.optimizer.load_state_dict({**state, "param_groups": groups})

    def update_normalizers(self, rollout: Rollout) -> None:
        """Take the rollout's observations into the running statistics.

        Call it once an iteration, after the last optimizer step: within a rollout and its update
        the statistics must not move.

        Raises:
            NonFiniteError: numbers so large that their squares are infinite: every observation
                would be normalised to 0 from then on.
        """
        for network, read in ((self.actor, self.actor_set), (self.critic, self.critic_set)):
            if isinstance(network.obs_normalizer, EmpiricalNormalizer):
                network.obs_normalizer.update(*read.parts(rollout.observations), group=self.group)
        if self.rnd is not None:
            self.rnd.update_normalizer(*self.rnd.read.parts(rollout.observations))
        statistics = {
            f"variance of {owner}.{name}": module._var
            for owner, network in self._networks.items()
            for name, module in network.named_modules()
            if isinstance(module, EmpiricalNormalizer)
        }
        if statistics and not all_finite(statistics.values()):
            raise_first_non_finite(statistics.items())

    @property
    def _networks(self) -> dict[str, nn.Module]:
        networks = {"actor": self.actor, "critic": self.critic, "rnd": self.rnd}
        return {name: network for name, network in networks.items() if network is not None}

    def _refuse(self, batch: Samples, computed: Mapping[str, Tensor | None]) -> NoReturn:
        """Raise for the first non-finite tensor of a mini-batch, in the order of computation."""
        networks = self._networks.items()
        gradients = (
            (f"gradient of {owner}.{name}", parameter.grad)
            for owner, network in networks
            for name, parameter in network.named_parameters()
            if parameter.grad is not None
        )
        known = ((name, tensor) for name, tensor in computed.items() if tensor is not None)
        raise_first_non_finite(chain(named_samples(batch), known, gradients))
        self.group.blame()
        raise NonFiniteError("gradient norm", torch.tensor(math.inf))


def _gradients(parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    return [p.grad for p in parameters if p.grad is not None]


def _set_gradients(parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor]) -> None:
    trained = [p for p in parameters if p.grad is not None]
    for parameter, gradient in zip(trained, gradients, strict=True):
        parameter.grad = gradient
