"""RSL-RL's checkpoints: read into a state that training goes on from, and written from one.

Networks have the names of RSL-RL 5 in both. RSL-RL 4 calls `std` what 5 calls
`distribution.std_param`; 3 keeps both networks in one, and calls them by other names. Optimizers
name nothing: each program numbers its parameters in the order of its own modules, so their state is
carried over by name. Whether a checkpoint fits the settings is told by `trainer.misfits`.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from trainer import checkpoint
from trainer.checkpoint import CheckpointError
from trainer.config import TrainerConfig
from trainer.misfits import REWARD_NORMALIZER, Weights, first_layer
from trainer.optimizers import make_optimizer
from trainer.policy import Actor, Critic
from trainer.rnd import RandomNetworkDistillation

_NETWORKS = ("actor", "critic")
_STD = {"std": "distribution.std_param", "log_std": "distribution.log_std_param"}
"""Names of RSL-RL 4, and what became of them."""
_PARTS_OF_3 = {
    "actor_obs_normalizer.": ("actor", "obs_normalizer."),
    "actor.": ("actor", "mlp."),
    "memory_a.": ("actor", "rnn."),
    "critic_obs_normalizer.": ("critic", "obs_normalizer."),
    "critic.": ("critic", "mlp."),
    "memory_c.": ("critic", "rnn."),
}
"""Beginnings of names of RSL-RL 3, and where they belong since 4."""
_BUFFERS = ("obs_normalizer.", "state_normalizer.", "reward_normalizer.")
"""What begins like this is no parameter."""
_ORDER = ("distribution.", "mlp.", "rnn.")
"""Modules of an RSL-RL network in the order in which its optimizer counts their parameters; what
is no parameter comes before them."""
_AVERAGE_OF = {"adam": "exp_avg", "adamw": "exp_avg", "rmsprop": "square_avg", "sgd": None}
"""What an optimizer keeps for each parameter, by which it is known; SGD keeps nothing."""


class Foreign(NamedTuple):
    """What an RSL-RL checkpoint holds, in our names and their order."""

    actor: dict[str, Tensor]
    critic: dict[str, Tensor]
    optimizer: dict[str, Any]
    rnd: dict[str, Tensor]
    """Networks and statistics of random network distillation; empty without."""
    rnd_optimizer: dict[str, Any]
    completed_iterations: int
    parameters: list[tuple[str, str]]
    """What the optimizer counts, in its order: network and name."""


class Columns(NamedTuple):
    """Where our columns stand in a checkpoint that counts joints or observations in another order.

    Our column i is the checkpoint's column source[i].
    """

    actions: Sequence[int] | None = None
    """Of the actions; None: the same order."""
    inputs: Mapping[str, Sequence[int]] = {}
    """Of what the actor, the critic and rnd_state read, by these names; the same order if none."""


class Converted(NamedTuple):
    """A state of ours, made from a checkpoint of RSL-RL's."""

    state: dict[str, Any]
    """Networks, optimizer and counters; worlds begin anew where it is loaded."""
    notes: list[str]
    """What could not be carried over, a sentence each."""


def read(path: Path) -> Foreign:
    """Read a checkpoint of RSL-RL 3 to 5 onto the CPU, without executing code.

    Raises:
        CheckpointError: it is missing or damaged, something else, or holds more than data.
    """
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such checkpoint") from None
    except pickle.UnpicklingError as error:
        raise CheckpointError(f"{path}: {_why_not_data(str(error))}") from None
    except Exception as error:  # torch raises many kinds for a damaged file
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path}: not readable as a checkpoint: {reason}") from None
    if not isinstance(held, dict) or not {"actor_state_dict", "model_state_dict"} & set(held):
        raise CheckpointError(f"{path}: {_what_else(held)}")
    if "obs_norm_state_dict" in held:
        raise CheckpointError(
            f"{path}: made by RSL-RL 2 with normalised observations, which it kept apart; "
            "this program reads RSL-RL 3 to 5"
        )
    try:
        weights = [
            (*_place(network, name), tensor)
            for key, network in (("model", ""), ("actor", "actor"), ("critic", "critic"))
            for name, tensor in held.get(f"{key}_state_dict", {}).items()
        ]
        actor, critic = (
            {name: tensor for network, name, tensor in weights if network == wanted}
            for wanted in _NETWORKS
        )
        if not (actor and critic):
            raise KeyError("the weights of a network")
        return Foreign(
            actor,
            critic,
            held["optimizer_state_dict"],
            dict(held.get("rnd_state_dict", {})),
            held.get("rnd_optimizer_state_dict", {}),
            int(held["iter"]) + 1,
            [(network, name) for network, name, _ in weights if not name.startswith(_BUFFERS)],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        missing = f"{error.args[0]} missing" if isinstance(error, KeyError) else str(error)
        raise CheckpointError(f"{path}: not a whole checkpoint of RSL-RL: {missing}") from None


def convert(
    foreign: Foreign,
    config: TrainerConfig,
    actor: Actor,
    critic: Critic,
    rnd: RandomNetworkDistillation | None = None,
    columns: Columns = Columns(),  # noqa: B008 - immutable
) -> Converted:
    """Turn a checkpoint into a state of ours; `trainer.misfits` must find nothing in it.

    Args:
        foreign: the checkpoint.
        config: the settings to go on with.
        actor: a network of these settings, for its names.
        critic: likewise.
        rnd: likewise; None where the settings have none.
        columns: the checkpoint's order of joints and observations.
    """
    notes: list[str] = []
    theirs = {"actor": foreign.actor, "critic": foreign.critic}
    networks: dict[str, nn.Module] = {"actor": actor, "critic": critic}
    sources = {name: _reorder(name, network, columns) for name, network in networks.items()}
    parameters = [
        (name, key, parameter)
        for name, network in networks.items()
        for key, parameter in network.named_parameters()
    ]
    kept = _kept_by_name(foreign.optimizer, foreign.parameters)
    optimizer = make_optimizer(config.optimizer, [p for *_, p in parameters], config.learning_rate)
    state = optimizer.state_dict()
    if kept is None or _average_in(kept) != _AVERAGE_OF[config.optimizer]:
        notes.append(
            f"the optimizer's state is not that of {config.optimizer}: its averages begin at 0"
        )
    else:
        state["state"] = {
            number: {
                part: sources[name](key, value) if getattr(value, "ndim", 0) else value
                for part, value in kept[name, key].items()
            }
            for number, (name, key, _) in enumerate(parameters)
            if kept.get((name, key))
        }
    if (rate := _learning_rate(foreign.optimizer)) is None:
        notes.append(f"it names no learning rate: it begins with {config.learning_rate:g}")
    else:
        state["param_groups"][0]["lr"] = rate
    converted: dict[str, Any] = {
        **{
            name: {key: sources[name](key, tensor) for key, tensor in weights.items()}
            for name, weights in theirs.items()
        },
        "optimizer": state,
        "completed_iterations": foreign.completed_iterations,
    }
    if rnd is not None and foreign.rnd:
        steps = foreign.completed_iterations * config.num_steps_per_env
        converted["rnd"] = _rnd_state(foreign, rnd, columns, steps)
    elif rnd is not None:
        notes.append("it holds no networks of trainer.rnd: they begin with random weights")
    elif foreign.rnd:
        notes.append("trainer.rnd is unset: its networks are left out")
    return Converted(converted, notes)


def write(path: Path, state: Mapping[str, Any]) -> None:
    """Write a checkpoint that RSL-RL 5 loads, whole or not at all.

    Its number is the index of the last completed iteration, which is RSL-RL's way to count: it
    runs the iteration of that number again when it goes on.

    Args:
        path: where to.
        state: of a checkpoint of ours, as `trainer.checkpoint.load` returns it.

    Raises:
        OSError: it could not be written; whatever was at `path` is still there.
    """
    ours = [(name, key) for name in _NETWORKS for key in _parameter_names(state[name])]
    kept = _kept_by_name(state["optimizer"], ours) or {}
    theirs = {name: _in_their_order(state[name]) for name in _NETWORKS}
    held: dict[str, Any] = {f"{name}_state_dict": weights for name, weights in theirs.items()}
    ordered = [(name, key) for name, weights in theirs.items() for key in _parameter_names(weights)]
    held["optimizer_state_dict"] = _plain_optimizer(
        state["optimizer"], {i: kept[place] for i, place in enumerate(ordered) if place in kept}
    )
    if "rnd" in state:
        held["rnd_state_dict"] = {
            key: tensor.squeeze(-1) if key.startswith(REWARD_NORMALIZER) else tensor
            for key, tensor in state["rnd"]["networks"].items()
        }
        optimizer = state["rnd"]["optimizer"]
        held["rnd_optimizer_state_dict"] = _plain_optimizer(optimizer, optimizer["state"])
    held |= {"iter": state["completed_iterations"] - 1, "infos": None}
    checkpoint.write_whole(path, held)


def _why_not_data(error: str) -> str:
    found = re.search(r"GLOBAL (\S+)", error)
    if found is None:
        return "not readable as a checkpoint: it is cut short, or something else"
    return (
        f"holds an object of {found[1]}, which only code of the file's own could make; such files "
        "are not read. In RSL-RL, save it again with data alone: runner.save(path, infos=None)"
    )


def _what_else(held: object) -> str:
    if isinstance(held, dict) and "schema_version" in held:
        return "a checkpoint of this program, no import is needed: run PRESET --resume RUN"
    return "not a checkpoint of an RSL-RL training: it holds no networks of that"


def _place(network: str, name: str) -> tuple[str, str]:
    """The network that a tensor belongs to, and its name there.

    Args:
        network: whose state dict it stands in; empty for RSL-RL 3, which has one for both.
        name: its name there.
    """
    if not network:
        for beginning, (part, since) in _PARTS_OF_3.items():
            if name.startswith(beginning):
                return part, since + name.removeprefix(beginning)
    return network or "actor", _STD.get(name, name)


def _parameter_names(weights: Weights) -> list[str]:
    return [name for name in weights if not name.startswith(_BUFFERS)]


def _in_their_order(weights: Weights) -> dict[str, Tensor]:
    def rank(name: str) -> int:
        return next((i for i, module in enumerate(_ORDER) if name.startswith(module)), -1)

    return {name: weights[name] for name in sorted(weights, key=rank)}


def _kept_by_name(
    optimizer: Mapping[str, Any], names: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], dict[str, Any]] | None:
    """What an optimizer keeps for each parameter; None if it does not count these ones."""
    groups, state = optimizer.get("param_groups", ()), optimizer.get("state", {})
    if len(groups) != 1 or len(groups[0]["params"]) != len(names):
        return None
    numbers = zip(names, groups[0]["params"], strict=True)
    return {name: state[number] for name, number in numbers if number in state}


def _average_in(kept: Mapping[tuple[str, str], Mapping[str, Any]]) -> str | None:
    """The kind of average that an optimizer has kept; None for none."""
    names = {part for entry in kept.values() for part in entry}
    return next((name for name in ("exp_avg", "square_avg") if name in names), None)


def _learning_rate(optimizer: Mapping[str, Any]) -> float | None:
    for group in optimizer.get("param_groups", ()):
        if "lr" in group:
            return float(group["lr"])
    return None


def _plain_optimizer(
    optimizer: Mapping[str, Any], state: Mapping[int, dict[str, Any]]
) -> dict[str, Any]:
    """An optimizer's state without what says how it computes, which is each program's own."""
    group = dict(optimizer["param_groups"][0])
    group |= {key: None for key in ("fused", "foreach") if key in group}
    return {"state": dict(state), "param_groups": [group]}


def _reorder(name: str, network: nn.Module, columns: Columns) -> Callable[[str, Tensor], Tensor]:
    """How a tensor of a network's (or what an optimizer keeps of it) comes into our order."""
    weights = network.state_dict()
    inputs = columns.inputs.get(name)
    actions = columns.actions if name == "actor" else None
    first, last = first_layer(weights), _last_layer(weights)

    def reorder(key: str, tensor: Tensor) -> Tensor:
        if inputs is not None and (key == first or _is_statistic(key)):
            tensor = tensor[:, list(inputs)]
        if actions is not None and key in (f"{last}.weight", f"{last}.bias"):
            # means, and standard deviations where the network puts them out
            starts = range(0, len(tensor), len(actions))
            tensor = tensor[[start + column for start in starts for column in actions]]
        if actions is not None and key.startswith("distribution."):
            tensor = tensor[list(actions)]
        return tensor

    return reorder


def _rnd_state(
    foreign: Foreign, rnd: RandomNetworkDistillation, columns: Columns, steps: int
) -> dict[str, Any]:
    inputs = columns.inputs.get("rnd_state")

    def ours(key: str, tensor: Tensor) -> Tensor:
        if inputs is not None and (
            key.endswith(("predictor.0.weight", "target.0.weight")) or _is_statistic(key)
        ):
            tensor = tensor[:, list(inputs)]
        return tensor.unsqueeze(-1) if key.startswith(REWARD_NORMALIZER) else tensor

    optimizer = rnd.optimizer.state_dict()
    names = [f"predictor.{name}" for name, _ in rnd.predictor.named_parameters()]
    kept = _kept_by_name(foreign.rnd_optimizer, [("rnd", name) for name in names]) or {}
    optimizer["state"] = {
        number: {
            part: ours(name, value) if getattr(value, "ndim", 0) else value
            for part, value in kept["rnd", name].items()
        }
        for number, name in enumerate(names)
        if ("rnd", name) in kept
    }
    networks = {key: ours(key, tensor) for key, tensor in foreign.rnd.items()}
    return {"networks": networks, "optimizer": optimizer, "num_steps": steps}


def _is_statistic(key: str) -> bool:
    return re.fullmatch(r"(obs|state)_normalizer\._(mean|var|std)", key) is not None


def _last_layer(weights: Weights) -> str:
    numbers = [int(name.split(".")[1]) for name in weights if name.startswith("mlp.")]
    return f"mlp.{max(numbers, default=0)}"
