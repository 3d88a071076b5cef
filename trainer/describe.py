"""A run in a few values: what stays the same for the whole of it, and where it stands."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from trainer.keeping import CheckpointKeeper
from trainer.rundir import process_start
from trainer.telemetry import RunInfo, Snapshot

if TYPE_CHECKING:
    from trainer.loop import Trainer


def run_info(
    trainer: Trainer,
    preset: str,
    run_dir: Path,
    device: str,
    notes: tuple[str, ...],
    own_terms: tuple[str, ...] = (),
) -> RunInfo:
    """Describe a run.

    Args:
        trainer: the learner with its worlds.
        preset: the preset's name.
        run_dir: the run's folder.
        device: name of the device, as a person reads it.
        notes: what a person should know of this run, a sentence each.
        own_terms: a person's own files with parts of the worlds.
    """
    env, config = trainer.env, trainer.config
    assert config.seed is not None
    widths = {
        group: sum(width for _, width in terms) for group, terms in env.observation_terms.items()
    }
    return RunInfo(
        preset=preset,
        run_dir=str(run_dir),
        seed=config.seed,
        device=device,
        num_envs=env.num_envs,
        num_steps_per_env=config.num_steps_per_env,
        num_iterations=config.num_iterations,
        num_mini_batches=config.num_mini_batches,
        num_learning_epochs=config.num_learning_epochs,
        num_actions=env.num_actions,
        observation_groups=MappingProxyType(widths),
        observation_terms=MappingProxyType(dict(env.observation_terms)),
        reward_terms=MappingProxyType(dict(env.reward_terms)),
        step_dt=env.step_dt,
        max_episode_length=env.max_episode_length,
        clip_param=config.clip_param,
        max_grad_norm=config.max_grad_norm,
        desired_kl=config.desired_kl if config.schedule == "adaptive" else None,
        notes=notes,
        command_ranges=MappingProxyType(dict(getattr(env, "command_ranges", {}))),
        world_size=trainer.group.world_size,
        decimation=getattr(env, "decimation", None),
        nan_guard=getattr(env, "nan_guard", None),
        own_terms=own_terms,
    )


def status(
    snapshot: Snapshot, preset: str, num_iterations: int, keeper: CheckpointKeeper
) -> dict[str, Any]:
    """Say where a run stands, and who writes it, for `status.json`.

    Args:
        snapshot: the newest one.
        preset: the preset's name.
        num_iterations: iterations of the whole run.
        keeper: of the run's checkpoints.
    """
    best = keeper.best
    return {
        "state": snapshot.state.value,
        "preset": preset,
        "pid": os.getpid(),
        "pid_started": process_start(os.getpid()),
        "time": time.time(),
        "completed_iterations": snapshot.completed_iterations,
        "num_iterations": num_iterations,
        "env_steps": snapshot.env_steps,
        "elapsed": round(snapshot.elapsed, 3),
        "checkpoint": keeper.newest or None,
        "best_checkpoint": best._asdict() if best is not None else None,
        "failure": snapshot.failure.message if snapshot.failure else None,
    }
