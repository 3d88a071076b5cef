"""Where the weights of a checkpoint do not fit the settings that it is to go on with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

Weights = Mapping[str, Tensor]
"""A network's state dict, in RSL-RL's names."""

REWARD_NORMALIZER = "reward_normalizer.emp_norm._"
"""Names of statistics of a single number: RSL-RL gives them one dimension, we give two."""


def misfits(
    network: str, theirs: Weights, ours: Weights, inputs: Sequence[tuple[str, int]]
) -> Iterator[str]:
    """Say where the weights of a checkpoint do not fit the settings, a sentence each.

    Args:
        network: "actor", "critic" or "rnd".
        theirs: the checkpoint's weights, in our names.
        ours: weights of a network of the settings.
        inputs: the terms of the observation that it reads, each with its width.
    """
    key = f"trainer.{network}"
    if any(name.startswith("cnns.") for name in theirs):
        yield f"{network}: reads images through convolutions, which this program has none of"
        return
    told = list(_unlike_settings(key, theirs, ours))
    yield from told
    reads = "predictor.0.weight" if network == "rnd" else first_layer(ours)
    if reads in theirs and reads in ours and theirs[reads].shape[-1] != ours[reads].shape[-1]:
        terms = ", ".join(f"{term} {width}" for term, width in inputs)
        yield (
            f"{network}: {reads} is {list(theirs[reads].shape)} in the checkpoint, "
            f"{list(ours[reads].shape)} by the preset: it reads {theirs[reads].shape[-1]} "
            f"observations, the preset has {ours[reads].shape[-1]}: {terms}"
        )
    elif not told:
        yield from _unlike_shapes(network, theirs, ours)


def _unlike_shapes(network: str, theirs: Weights, ours: Weights) -> Iterator[str]:
    """Differences for which no setting stands."""
    for name in ours:
        if name not in theirs:
            yield f"{network}: {name} is missing in the checkpoint"
        elif theirs[name].shape != _shape_there(name, ours[name]):
            yield (
                f"{network}: {name} is {list(theirs[name].shape)} in the checkpoint, "
                f"{list(ours[name].shape)} by the preset"
            )
    for name in theirs:
        if name not in ours:
            yield f"{network}: {name} of the checkpoint has no place in the preset's network"


def first_layer(weights: Weights) -> str:
    """Name of the layer that reads the observation."""
    recurrent = "rnn.rnn.weight_ih_l0"
    return recurrent if recurrent in weights else "mlp.0.weight"


def _unlike_settings(key: str, theirs: Weights, ours: Weights) -> Iterator[str]:
    """Differences for which a setting of the preset stands."""
    there, here = _settings_of(theirs), _settings_of(ours)
    for name in {**here, **there}:
        if there.get(name) != here.get(name):
            layer, there_shape, here_shape = _where_it_shows(name, theirs, ours)
            yield (
                f"{key}.{name} = {_shown(here.get(name))} by the preset, {_shown(there.get(name))} "
                f"in the checkpoint ({layer}: {there_shape} there, {here_shape} here); "
                + (
                    f"import with --set {key}.{name}={_shown(there[name])}"
                    if there.get(name) is not None
                    else f"the preset must leave {key}.{name} unset"
                )
            )


def _settings_of(weights: Weights) -> dict[str, Any]:
    """Settings of a network as its weights tell them."""
    if not any(name.startswith("mlp.") for name in weights):
        return {}
    layers = [t for name, t in weights.items() if re.fullmatch(r"mlp\.\d+\.weight", name)]
    found: dict[str, Any] = {
        "hidden_dims": [len(layer) for layer in layers[:-1]],
        "obs_normalization": "obs_normalizer._mean" in weights,
        "rnn_type": None,
    }
    if "distribution.std_param" in weights:
        found["std_type"] = "scalar"
    elif "distribution.log_std_param" in weights:
        found["std_type"] = "log"
    if (hidden := weights.get("rnn.rnn.weight_hh_l0")) is not None:
        found["rnn_type"] = {3: "gru", 4: "lstm"}.get(len(hidden) // hidden.shape[1])
        found["rnn_hidden_dim"] = hidden.shape[1]
        found["rnn_num_layers"] = sum("weight_hh" in name for name in weights)
    return found


def _where_it_shows(setting: str, theirs: Weights, ours: Weights) -> tuple[str, Any, Any]:
    """The first layer in which two settings differ, with both shapes."""
    prefix = {
        "hidden_dims": "mlp.",
        "obs_normalization": "obs_normalizer._mean",
        "std_type": "distribution.",
    }.get(setting, "rnn.")
    for name in (*ours, *(name for name in theirs if name not in ours)):
        there, here = (
            list(weights[name].shape) if name in weights else "none" for weights in (theirs, ours)
        )
        if name.startswith(prefix) and there != here:
            return name, there, here
    return prefix.rstrip("."), "other", "other"


def _shape_there(name: str, tensor: Tensor) -> torch.Size:
    """The shape that RSL-RL gives to a tensor of ours."""
    return tensor.shape[:-1] if name.startswith(REWARD_NORMALIZER) else tensor.shape


def _shown(value: object) -> str:
    match value:
        case None:
            return "unset"
        case bool():
            return str(value).lower()
        case list():
            return "[" + ",".join(map(str, value)) + "]"
        case _:
            return str(value)
