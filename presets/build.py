"""From a checked preset to a session that is ready to start: device, seed, folder, worlds."""

from __future__ import annotations

import ctypes
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from presets import term_files
from presets.adapters import build_adapter, require_adapter
from presets.extras import require
from presets.loader import Resolved, to_toml
from presets.memory import require_memory
from presets.problems import PresetError, did_you_mean, locate
from presets.ranks import Ranks, joining, notes_on_ranks
from presets.schema import Preset
from trainer.ranks import rank_seed, share_of_cores
from trainer.rundir import RunDir, RunDirError, default_path
from trainer.session import Session
from trainer.threads import let_torch_threads_sleep

if TYPE_CHECKING:
    from sim.physics.base import Listener
    from trainer.env import Env

DEVICES = ("auto", "cpu", "cuda", "cuda:i")
"""What a person may choose; i is the number of a GPU."""


@dataclass(frozen=True)
class Device:
    """Where worlds and networks live."""

    name: str
    """As torch names it."""
    note: str = ""
    """Why it is not the GPU that might have been hoped for."""

    @property
    def kind(self) -> Literal["cpu", "cuda"]:
        """Without the number."""
        return "cuda" if self.name.startswith("cuda") else "cpu"


def resolve_device(choice: str, ranks: Ranks = Ranks()) -> Device:  # noqa: B008 - frozen
    """Turn a person's choice into a device that is there.

    `cpu`, and `auto` on a machine without an NVIDIA driver, do not import torch.

    Args:
        choice: one of `DEVICES`.
        ranks: who trains; of several, each takes the GPU of its local rank.

    Raises:
        PresetError: the choice is none of `DEVICES`, or the GPU cannot be used; says why.
    """
    if choice == "cpu":
        return Device("cpu")
    kind, _, index = choice.partition(":")
    if choice != "auto" and (kind != "cuda" or (choice != "cuda" and not index.isdecimal())):
        allowed = ", ".join(DEVICES)
        near = did_you_mean(choice.lower().replace("gpu", "cuda"), DEVICES)
        raise PresetError([f"--device {choice}: allowed: {allowed}{near}"])
    if ranks.several and index:
        raise PresetError(
            [
                f"--device {choice}: several processes have a GPU each; use --device cuda, and "
                "CUDA_VISIBLE_DEVICES to choose which"
            ]
        )
    own = ranks.own
    reason = _why_no_gpu(own.local_world_size - 1 if ranks.several else int(index or 0))
    if reason is None:
        return Device(f"cuda:{index or own.local_rank}")
    if ranks.several and "there is no GPU" in reason:
        raise PresetError([f"{own.local_world_size} processes need a GPU each, but {reason}"])
    if choice == "auto":
        return Device("cpu", f"no GPU ({reason})")
    raise PresetError([f"--device {choice}: {reason}; use --device cpu"])


def new_session(
    resolved: Resolved,
    device: Device,
    run_dir: Path | None = None,
    name: str = "",
    ranks: Ranks = Ranks(),  # noqa: B008 - frozen
) -> Session:
    """Make a session and the folder of its run.

    Args:
        resolved: a preset, checked for this kind of device; without a seed one is drawn.
        device: where to train.
        run_dir: the run's folder; unset: `runs/<preset>/<UTC time>_<name>`.
        name: the last part of that.
        ranks: who trains.

    Raises:
        PresetError: the folder holds a run already, or cannot be written; or an extra is missing.
        OutOfMemoryError: it cannot fit.
    """
    require_tracker(resolved)
    require_adapter(resolved)
    preset, notes = resolved.preset, notes_on(resolved, device, ranks)
    require_memory(preset, device.name, ranks.own.local_world_size)
    if preset.trainer.seed is None:
        preset = with_drawn_seed(preset)
        notes.append(f"seed {preset.trainer.seed} was drawn; give it again to repeat this run")
    try:
        folder = RunDir.create(run_dir or default_path(preset.name, name), to_toml(preset))
    except RunDirError as error:
        raise PresetError([str(error)]) from None
    session = Session(
        preset.name,
        lambda: build_env(preset, device, session, resolved.own_terms),
        preset.trainer,
        folder,
        device.name,
        tuple(notes),
        join=joining(ranks, preset, device.name, resolved.own_terms, folder.log),
        num_envs=preset.env.num_envs,
        own_terms=tuple(map(str, resolved.own_terms)),
    )
    return session


def require_tracker(resolved: Resolved) -> None:
    """Refuse a tracker whose package is not installed.

    Raises:
        PresetError: it is not; names the extra.
    """
    if resolved.preset.trainer.logger == "wandb":
        path = ("trainer", "logger")
        require("wandb", "wandb", locate(path, "wandb", resolved.origins[".".join(path)]))


def notes_on(resolved: Resolved, device: Device, ranks: Ranks = Ranks()) -> list[str]:  # noqa: B008
    """Say what a person should know of training this preset on this device.

    The weightiest comes first; what stands behind a semicolon is left out where there is no room.
    """
    notes = [f"{device.note}: {_consequence(resolved)}"] if device.note else []
    notes += resolved.notes
    if resolved.own_terms:
        notes.append(term_files.note(resolved.own_terms))
    notes += notes_on_ranks(ranks, resolved.preset, device.name)
    if device.kind == "cuda":
        notes.append("a GPU repeats no run bit by bit; two of one seed agree in statistics")
    return notes


def build_env(
    preset: Preset,
    device: Device,
    listener: Listener | None = None,
    own_terms: Sequence[Path] = (),
    rank: int = 0,
) -> Env:
    """Make the worlds of a preset that has a seed. Imports torch and the physics engine.

    Args:
        preset: the preset.
        device: where the worlds live.
        listener: who is told what the physics engine is doing, such as a session.
        own_terms: Python files with a person's own terms; they are run.
        rank: which of several processes this one is.
    """
    if preset.trainer.seed is None:
        raise ValueError("worlds need a seed")
    if preset.env.adapter is not None:
        return build_adapter(preset.env, device.name, rank_seed(preset.trainer.seed, rank))
    from sim.env import make_env

    threads = preset.env.num_threads or share_of_cores()
    config = preset.env.model_copy(update={"num_threads": threads})
    # sim and trainer do not know each other: their Feedbacks have the same fields, not one type.
    seed = rank_seed(preset.trainer.seed, rank)
    env = make_env(config, device.name, seed, own_terms, listener)
    return cast("Env", env)


def _why_no_gpu(index: int) -> str | None:
    """Say why a GPU cannot be used; None if it can. Cheap reasons first: torch is slow to load."""
    if not _has_driver():
        return "no NVIDIA driver"
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides every GPU"
    let_torch_threads_sleep()
    import torch

    if torch.version.cuda is None:
        return "the installed torch is a CPU build"
    if not torch.cuda.is_available():
        return "torch finds no GPU it can use"
    count = torch.cuda.device_count()
    return None if index < count else f"there is no GPU {index}, the last one is {count - 1}"


def _has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _consequence(resolved: Resolved) -> str:
    preset = resolved.preset
    how = "runs its CPU table" if resolved.uses_cpu_table else "runs on the CPU"
    return f"{preset.env.num_envs} worlds; {preset.name} {how}"


def with_drawn_seed(preset: Preset) -> Preset:
    """Return the preset with a seed that the machine has drawn."""
    seed = random.SystemRandom().randrange(2**32)
    trainer = preset.trainer.model_copy(update={"seed": seed})
    return preset.model_copy(update={"trainer": trainer})
