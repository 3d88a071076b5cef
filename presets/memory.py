"""What a preset will need at least, before anything is allocated."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence

from presets.problems import PresetError
from presets.schema import Preset
from presets.shapes import num_actions, observation_widths
from trainer import memory
from trainer.config import TrainerConfig
from trainer.observation_sets import resolve_set

BYTES_A_WORLD = 1000
"""Of a simulated world at least; measured: 1,500 for the cartpole, 10,000 to 11,000 for the Go2."""
BYTES_A_WEIGHT = 8
"""Of a network at least: the weight and its gradient; most optimizers keep as much again."""
BYTES_A_JOINT = 300
"""More for each driven joint of a world, at least."""


class OutOfMemoryError(PresetError):
    """A preset that needs more memory than there is."""


def require_memory(preset: Preset, device: str, processes: int = 1) -> None:
    """Refuse a preset that cannot fit, before the system ends the process, or others, for it.

    Args:
        preset: what is to be trained.
        device: where, as torch names it.
        processes: how many share the main memory.

    Raises:
        OutOfMemoryError: says what is needed for what, what is free, and how many worlds would do.
    """
    free = _free(device)
    shared_by = processes if device == "cpu" else 1
    needed = {name: shared_by * count for name, count in least_bytes(preset).items()}
    total = sum(needed.values())
    if free is None or total <= free:
        return
    count = preset.env.num_envs
    parts = ", ".join(f"{name} {memory.size(part)}" for name, part in needed.items())
    each = f"{processes} x {count:,}" if shared_by > 1 else f"{count:,}"
    smaller = memory.fewer_worlds(count, total, free)
    remedy = f"try --num-envs {smaller}"
    if needed["networks"] > free:
        widest = max(_widths(preset).values())
        remedy = f"fewer worlds would not help: an observation has up to {widest:,} columns"
    raise OutOfMemoryError(
        [
            f"{preset.name}: out of memory: {each} worlds need {memory.size(total)} at least "
            f"({parts}), {memory.size(free)} are free on {device}; {remedy}"
        ]
    )


def least_bytes(preset: Preset) -> dict[str, int]:
    """What a preset allocates at least, by what for."""
    trainer, count = preset.trainer, preset.env.num_envs
    actions = num_actions(preset.env)
    widths = _widths(preset)
    batch = trainer.num_steps_per_env * count
    hidden = sum(trainer.actor.hidden_dims) + sum(trainer.critic.hidden_dims)
    return {
        "rollout": rollout_bytes(trainer.num_steps_per_env, count, list(widths.values()), actions),
        "networks": BYTES_A_WEIGHT * _least_weights(trainer, widths),
        # a backward pass keeps what goes into and what comes out of each activation
        "update": batch // trainer.num_mini_batches * hidden * 2 * 4,
        "worlds": count * (BYTES_A_WORLD + actions * BYTES_A_JOINT),
    }


def _widths(preset: Preset) -> dict[str, int]:
    """Width of each observation group, as far as it is known before the worlds are built."""
    return {
        group: sum(width or 0 for width in terms.values())
        for group, terms in observation_widths(preset.env).items()
    }


def _least_weights(trainer: TrainerConfig, widths: Mapping[str, int]) -> int:
    """Weights of both networks' first layers, which alone grow with the observation."""
    if not widths:  # only building the worlds tells
        return 0
    count = 0
    for name, network in (("actor", trainer.actor), ("critic", trainer.critic)):
        first = network.rnn_hidden_dim if network.rnn_type else next(iter(network.hidden_dims), 1)
        count += first * resolve_set(trainer.obs_groups, name, widths).width(widths)
    return count


def rollout_bytes(
    num_steps: int, num_envs: int, observation_widths: Sequence[int], num_actions: int
) -> int:
    """Bytes of the rollout's tensors.

    A transition has its observations; action, mean and standard deviation; reward, value, log
    density, return and advantage, all float32; and a bool.
    """
    floats = sum(observation_widths) + 3 * num_actions + 5
    return num_steps * num_envs * (4 * floats + 1)


def _free(device: str) -> int | None:
    if device == "cpu":
        return memory.available()
    cuda = importlib.import_module("torch.cuda")  # has been imported to find the GPU
    if not cuda.is_available():
        return None
    mem_get_info: Callable[[str], tuple[int, int]] = cuda.mem_get_info
    return mem_get_info(device)[0]
