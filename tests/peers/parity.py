"""A comparison with the published rsl-rl-lib for every feature: same rollouts, same seeds.

`FEATURES` is the table of what is compared; `compare` runs one row of it through both learners and
says how far apart they are. `tests.peers.parity_table` brings the results into docs/rsl_rl.md.

Both sides start from the same weights before every rollout. RSL-RL then plays along: its own memory
runs beside ours, but for the record it gets our actions, so that its re-scoring starts from exactly
what ours starts from. One rounding off it, RSL-RL would see a KL of 1e-14 instead of 0 in its first
mini-batch, and raise its rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.models import MLPModel, RNNModel
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict
from torch import Tensor

from trainer.config import ActorConfig, CriticConfig, NetworkConfig, ObsGroups, TrainerConfig
from trainer.env import Feedback
from trainer.loop import Trainer
from trainer.metrics import update_metrics
from trainer.misfits import REWARD_NORMALIZER

T, N, NUM_ACTIONS = 8, 16, 3
WIDTHS = {"policy": 7, "privileged": 5}
UPDATES = 3
TOLERANCE = 1e-5
"""Largest difference that passes: absolute below 1, relative above."""

SMALL = {"hidden_dims": (32, 16)}
MEMORY = {"rnn_hidden_dim": 12}


@dataclass(frozen=True)
class Feature:
    """One row: settings of ours, and what RSL-RL needs beside what follows from them."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of `TrainerConfig`, but for the networks."""
    actor: Mapping[str, Any] = field(default_factory=dict)
    """Of `ActorConfig`."""
    critic: Mapping[str, Any] = field(default_factory=dict)
    """Of `CriticConfig`."""
    theirs: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of RSL-RL's PPO."""
    note: str = ""
    """Where the two, or RSL-RL's versions, differ on purpose."""

    @property
    def config(self) -> TrainerConfig:
        """Our settings."""
        return TrainerConfig(
            seed=7,
            num_steps_per_env=T,
            **self.settings,
            actor=ActorConfig(**SMALL, **self.actor),
            critic=CriticConfig(**SMALL, **self.critic),
        )


_BOTH_NORMALISE = {
    "actor": {"obs_normalization": True},
    "critic": {"obs_normalization": True},
}
_NORMALISER_NOTE = (
    "5.4.1 updates the statistics at every env step, so its first ratio is not 1; 5.5 does it "
    "once, behind the update, as we do"
)
_RANGE_NOTE = "equal inside std_range; outside, RSL-RL's clamp has no gradient and ours finds back"
_BLOCKS_NOTE = "RSL-RL leaves remaining worlds out of an update, we refuse such numbers"

FEATURES = (
    Feature("defaults"),
    Feature(
        "asymmetric critic",
        {"obs_groups": ObsGroups(actor=("policy",), critic=("policy", "privileged"))},
    ),
    Feature(
        "asymmetric critic, groups in another order, normalised",
        {"obs_groups": ObsGroups(actor=("policy",), critic=("privileged", "policy"))},
        **_BOTH_NORMALISE,
        note=_NORMALISER_NOTE,
    ),
    Feature("observation normalisation", **_BOTH_NORMALISE, note=_NORMALISER_NOTE),
    Feature("scalar std", actor={"std_type": "scalar", "init_std": 0.6}, note=_RANGE_NOTE),
    Feature("log std", actor={"std_type": "log", "init_std": 0.6}, note=_RANGE_NOTE),
    Feature("fixed std", actor={"learn_std": False, "init_std": 0.6}),
    Feature("fixed log std", actor={"learn_std": False, "init_std": 0.6, "std_type": "log"}),
    Feature("state-dependent std", actor={"state_dependent_std": True}, note=_RANGE_NOTE),
    Feature(
        "state-dependent log std",
        actor={"state_dependent_std": True, "std_type": "log", "init_std": 0.6},
        note=_RANGE_NOTE,
    ),
    Feature("Adam", {"optimizer": "adam"}),
    Feature("AdamW", {"optimizer": "adamw"}),
    Feature("SGD", {"optimizer": "sgd"}),
    Feature("RMSprop", {"optimizer": "rmsprop"}),
    Feature("fixed schedule", {"schedule": "fixed", "learning_rate": 3e-4}),
    Feature("advantages normalised per mini-batch", {"normalize_advantage_per_mini_batch": True}),
    Feature("unclipped value loss", {"use_clipped_value_loss": False}),
    Feature("tight gradient clip", {"max_grad_norm": 0.05}),
    Feature(
        "other coefficients",
        {"entropy_coef": 0.05, "value_loss_coef": 0.5, "clip_param": 0.1, "gamma": 0.9, "lam": 0.8},
    ),
    Feature("tanh", actor={"activation": "tanh"}, critic={"activation": "tanh"}),
    Feature("mirror augmentation", {"symmetry": {"use_data_augmentation": True}}),
    Feature("mirror loss", {"symmetry": {"use_mirror_loss": True, "mirror_loss_coeff": 0.05}}),
    Feature("mirror loss, only logged", {"symmetry": {}}),
    Feature(
        "mirror augmentation and loss, asymmetric critic, state-dependent std, normalised",
        {
            "symmetry": {
                "use_data_augmentation": True,
                "use_mirror_loss": True,
                "mirror_loss_coeff": 0.5,
            },
            "obs_groups": ObsGroups(actor=("policy",), critic=("policy", "privileged")),
            "normalize_advantage_per_mini_batch": True,
        },
        actor={"state_dependent_std": True, "obs_normalization": True},
        note=_NORMALISER_NOTE,
    ),
    Feature("random network distillation", {"rnd": {"weight": 5.0}}),
    Feature(
        "random network distillation, normalised, on a schedule, of states of its own",
        {
            "rnd": {
                "weight": 5.0,
                "num_outputs": 4,
                "predictor_hidden_dims": (-1, 6),
                "target_hidden_dims": (8,),
                "activation": "tanh",
                "state_normalization": True,
                "reward_normalization": True,
                "weight_schedule": {
                    "mode": "linear",
                    "initial_step": 4,
                    "final_step": 18,
                    "final_value": 0.1,
                },
            },
            "obs_groups": ObsGroups(rnd_state=("privileged", "policy")),
        },
        note=_NORMALISER_NOTE,
    ),
    Feature(
        "GRU",
        actor={"rnn_type": "gru", **MEMORY},
        critic={"rnn_type": "gru", **MEMORY},
        note=_BLOCKS_NOTE,
    ),
    Feature(
        "LSTM",
        actor={"rnn_type": "lstm", **MEMORY},
        critic={"rnn_type": "lstm", **MEMORY},
        note=_BLOCKS_NOTE,
    ),
    Feature(
        "LSTM of two layers beside a critic without memory, all normalised",
        actor={"rnn_type": "lstm", "rnn_num_layers": 2, "obs_normalization": True, **MEMORY},
        critic={"obs_normalization": True},
        note=_NORMALISER_NOTE,
    ),
    Feature(
        "GRU critic that sees more, advantages per mini-batch",
        {
            "obs_groups": ObsGroups(critic=("policy", "privileged")),
            "normalize_advantage_per_mini_batch": True,
        },
        critic={"rnn_type": "gru", **MEMORY},
        note=_BLOCKS_NOTE,
    ),
)
"""Every feature that is compared."""


@dataclass(frozen=True)
class Parity:
    """How far apart the two learners were."""

    feature: Feature
    differences: Mapping[str, float]
    """Quantity to its largest difference over all updates: absolute below 1, relative above."""
    rates: tuple[float, ...]
    """RSL-RL's learning rate at each optimizer step."""

    @property
    def largest(self) -> float:
        """The largest difference of all."""
        return max(self.differences.values())

    @property
    def within(self) -> bool:
        """Whether all differences pass."""
        return self.largest <= TOLERANCE


RESULTS: dict[str, Parity] = {}
"""What `compare` has found in this process, by the feature's name."""


class Exchange:
    """A mirror that exchanges the first two columns, and the signs of the first three."""

    def observations(self, observations: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Mirror observation groups."""
        return {group: self.actions(rows) for group, rows in observations.items()}

    def actions(self, actions: Tensor) -> Tensor:
        """Mirror actions."""
        first, second, third, *others = actions.unbind(-1)
        return torch.stack((-second, -first, -third, *others), dim=-1)


class NoiseEnv:
    """Worlds that make up observations, rewards and ends; nothing depends on the actions."""

    num_envs = N
    num_actions = NUM_ACTIONS
    max_episode_length = 100
    step_dt = 0.1
    device = torch.device("cpu")
    observation_terms: Mapping[str, tuple[tuple[str, int], ...]] = MappingProxyType(
        {group: (("all", width),) for group, width in WIDTHS.items()}
    )
    action_names = tuple("abc")
    reward_terms: Mapping[str, float] = MappingProxyType({})

    def __init__(self, seed: int = 11) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.episode_length = torch.zeros(N, dtype=torch.int64)

    def observe(self) -> dict[str, Tensor]:
        """New observations, away from mean 0 and standard deviation 1."""
        return {
            group: 2.0 * torch.randn(N, width, generator=self.generator) + 0.5
            for group, width in WIDTHS.items()
        }

    def step(self, actions: Tensor) -> Feedback:
        """New rewards; a fall or a time-out in one world of ten each."""
        reward = torch.randn(N, generator=self.generator)
        terminated, time_outs = torch.rand(2, N, generator=self.generator) < 0.1
        return Feedback(reward, terminated, time_outs & ~terminated, {})

    def mirror(self) -> Exchange:
        """Left and right, whatever they are here."""
        return Exchange()

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Pair:
    """Our trainer, and RSL-RL's PPO that is told the same."""

    def __init__(self, feature: Feature) -> None:
        self.config = feature.config
        self.trainer = Trainer(NoiseEnv(), self.config)
        self.reference = reference_of(self.trainer, feature.theirs)
        if self.trainer.rnd is not None:
            self.reference.rnd.load_state_dict(rnd_state(self.trainer))
        self.kls: list[float] = []
        self.rates: list[float] = []
        self._spy()

    def _spy(self) -> None:
        """Record RSL-RL's KL and rate for each of its optimizer steps."""
        divergence, step = self.reference.actor.get_kl_divergence, self.reference.optimizer.step

        def recorded_divergence(*params: Any) -> Tensor:
            kl = divergence(*params)
            self.kls.append(kl.mean().item())
            return kl

        def recorded_step() -> Any:
            self.rates.append(self.reference.optimizer.param_groups[0]["lr"])
            return step()

        self.reference.actor.get_kl_divergence = recorded_divergence  # type: ignore[method-assign]
        self.reference.optimizer.step = recorded_step  # type: ignore[method-assign,assignment]

    def align(self) -> None:
        """Give RSL-RL our weights to the bit; optimizers, rates and memories go on as they are."""
        self.reference.actor.load_state_dict(self.trainer.actor.state_dict())
        self.reference.critic.load_state_dict(self.trainer.critic.state_dict())

    def collect(self) -> dict[str, float]:
        """Fill both rollouts up to the targets; return how far apart they are."""
        trainer, reference = self.trainer, self.reference
        self.align()
        apart: dict[str, float] = {}
        for _ in range(T):
            trainer.observe()
            obs = observations(trainer.obs)
            trainer.act_step()
            decision, feedback = trainer.decision, trainer.feedback
            with torch.inference_mode():
                reference.act(obs)
                record = reference.transition
                _widen(apart, "values", trainer.values, record.values)
                _widen(apart, "means", decision.mean, record.distribution_params[0])
                _widen(apart, "stds", decision.std, record.distribution_params[1])
                _widen(
                    apart,
                    "log-probs",
                    decision.log_prob.squeeze(1),
                    reference.actor.get_output_log_prob(decision.action),
                )
                record.actions, record.values = decision.action, trainer.values
                record.actions_log_prob = decision.log_prob.squeeze(1)
                record.distribution_params = (
                    decision.mean,
                    decision.std.expand_as(decision.mean),
                )
            trainer.store()
            if trainer.rollout.cursor < T:
                trainer.observe()
            else:
                trainer.targets()
            self.reply(feedback)
        with torch.inference_mode():
            reference.compute_returns(observations(trainer.obs))
        stored = reference.storage
        for name in ("rewards", "returns", "advantages"):
            _widen(apart, name, getattr(trainer.rollout, name), getattr(stored, name))
        return apart

    def reply(self, feedback: Feedback) -> None:
        """Tell RSL-RL what the worlds answered, and what is seen next."""
        reward, terminated, time_outs = feedback[:3]
        with torch.inference_mode():
            self.reference.process_env_step(
                observations(self.trainer.obs),
                reward,
                terminated | time_outs,
                {"time_outs": time_outs},
            )

    def update(self, seed: int) -> dict[str, float]:
        """Run one update on both sides from one seed; return how far apart they end."""
        trainer, config = self.trainer, self.config
        self.kls.clear()
        self.rates.clear()
        torch.manual_seed(seed)
        losses = self.reference.update()
        trainer.generator.manual_seed(seed)
        trainer.sample()
        for epoch in range(config.num_learning_epochs):
            for mini_batch in range(config.num_mini_batches):
                trainer.position = trainer.position._replace(epoch=epoch, mini_batch=mini_batch)
                trainer.optimize()
        results = trainer.results
        metrics = update_metrics(results, trainer.action_std)
        trainer.fresh()
        apart: dict[str, float] = {}
        for name, loss in losses.items():
            _widen(apart, f"{name} loss", metrics[f"Loss/{name}"], loss)
        if config.schedule == "adaptive":
            _widen(apart, "KL", [result.kl for result in results], self.kls)
        _widen(apart, "learning rate", [result.learning_rate for result in results], self.rates)
        for network in ("actor", "critic"):
            theirs = getattr(self.reference, network).state_dict()
            for name, tensor in getattr(trainer, network).state_dict().items():
                _widen(apart, f"{network} parameters", tensor, theirs[name])
        if trainer.rnd is not None:
            theirs = self.reference.rnd.state_dict()
            for name, tensor in rnd_state(trainer).items():
                _widen(apart, "rnd parameters", tensor, theirs[name])
        return apart


def compare(feature: Feature) -> Parity:
    """Run one feature through both learners, once in a process: `RESULTS` keeps what came out."""
    if feature.name in RESULTS:
        return RESULTS[feature.name]
    apart: dict[str, float] = {}
    rates: list[float] = []
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tensors this small are not worth waking another
    try:
        pair = Pair(feature)
        for seed in range(UPDATES):
            for found in (pair.collect(), pair.update(seed)):
                for name, difference in found.items():
                    apart[name] = max(apart.get(name, 0.0), difference)
            rates += pair.rates
    finally:
        torch.set_num_threads(num_threads)
    RESULTS[feature.name] = Parity(feature, apart, tuple(rates))
    return RESULTS[feature.name]


def reference_of(trainer: Trainer, more: Mapping[str, Any] = MappingProxyType({})) -> PPO:
    """Build RSL-RL's PPO for our trainer's settings.

    Args:
        trainer: ours.
        more: further arguments of RSL-RL's PPO.
    """
    config = trainer.config
    obs = observations(trainer.obs)
    groups = {"actor": list(trainer.actor_set.groups), "critic": list(trainer.critic_set.groups)}
    actor, critic = (
        (RNNModel if network.rnn_type else MLPModel)(
            obs, groups, name, width, **_network(network), distribution_cfg=distribution
        )
        for name, network, width, distribution in (
            ("actor", config.actor, NUM_ACTIONS, _distribution(config.actor)),
            ("critic", config.critic, 1, None),
        )
    )
    storage = RolloutStorage("rl", N, T, obs, [NUM_ACTIONS])
    settings = {name: getattr(config, name) for name in _SHARED}
    if config.symmetry is not None:
        settings["symmetry_cfg"] = {
            "env": trainer.env,
            "data_augmentation_func": with_mirror_image,
            **config.symmetry.model_dump(),
        }
    if trainer.rnd is not None and config.rnd is not None:
        states = list(trainer.rnd.read.groups)
        settings["rnd_cfg"] = {
            **config.rnd.model_dump(exclude_none=True),
            "num_states": sum(obs[group].shape[1] for group in states),
            "obs_groups": {"rnd_state": states},
            "weight": config.rnd.weight * trainer.env.step_dt,
        }
    return PPO(actor, critic, storage, **settings, **more)


def with_mirror_image(
    env: NoiseEnv, obs: TensorDict | None, actions: Tensor | None
) -> tuple[TensorDict | None, Tensor | None]:
    """What RSL-RL calls a data augmentation function: the rows, and below them their image."""
    if obs is not None:
        image = TensorDict(env.mirror().observations(obs), batch_size=obs.batch_size)
        obs = torch.cat((obs, image))
    if actions is not None:
        actions = torch.cat((actions, env.mirror().actions(actions)))
    return obs, actions


def rnd_state(trainer: Trainer) -> dict[str, Tensor]:
    """Our networks of random network distillation, in the shapes that RSL-RL gives them."""
    assert trainer.rnd is not None
    return {
        name: tensor.squeeze(-1) if name.startswith(REWARD_NORMALIZER) else tensor
        for name, tensor in trainer.rnd.state_dict().items()
    }


_SHARED = (
    "num_learning_epochs",
    "num_mini_batches",
    "clip_param",
    "gamma",
    "lam",
    "value_loss_coef",
    "entropy_coef",
    "learning_rate",
    "max_grad_norm",
    "optimizer",
    "use_clipped_value_loss",
    "schedule",
    "desired_kl",
    "normalize_advantage_per_mini_batch",
)
"""Settings that bear the same name on both sides."""


def observations(groups: Mapping[str, Tensor] | None) -> TensorDict:
    """Our observation groups, as RSL-RL takes them."""
    return TensorDict(dict(groups or {}), batch_size=[N])


def _network(config: NetworkConfig) -> dict[str, Any]:
    names = ["hidden_dims", "activation", "obs_normalization"]
    if config.rnn_type is not None:
        names += ["rnn_type", "rnn_hidden_dim", "rnn_num_layers"]
    return {name: getattr(config, name) for name in names}


def _distribution(config: ActorConfig) -> dict[str, Any]:
    shared = {name: getattr(config, name) for name in ("init_std", "std_type", "std_range")}
    if config.state_dependent_std:
        return {"class_name": "HeteroscedasticGaussianDistribution", **shared}
    return {"class_name": "GaussianDistribution", "learn_std": config.learn_std, **shared}


def _widen(apart: dict[str, float], name: str, ours: Any, theirs: Any) -> None:
    """Raise the largest difference of a quantity by what is seen here."""
    one, other = (torch.as_tensor(value, dtype=torch.float64) for value in (ours, theirs))
    difference = (one - other).abs() / other.abs().clamp(min=1.0)
    apart[name] = max(apart.get(name, 0.0), difference.max().item())
