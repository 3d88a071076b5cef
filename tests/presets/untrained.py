"""A run's folder with the checkpoint of a policy that has learnt nothing yet."""

from pathlib import Path

import torch

from presets.build import Device, build_env
from presets.loader import load, to_toml
from trainer import checkpoint
from trainer.loop import Trainer


def untrained_run(folder: Path, preset: str, *settings: str, shift: float = 0.0) -> Path:
    """Make a run; returns its folder.

    Args:
        folder: where to, new.
        preset: name or path of a preset.
        settings: `key=value` changes, as the run was "trained" with.
        shift: the normaliser's mean, where there is one, so that it matters.
    """
    changes = ["trainer.seed=1", "env.num_envs=8", "trainer.num_mini_batches=1", *settings]
    resolved = load(preset, changes, "cpu")
    env = build_env(resolved.preset, Device("cpu"))
    trainer = Trainer(env, resolved.preset.trainer)
    if hasattr(trainer.actor.obs_normalizer, "_mean"):
        trainer.actor.obs_normalizer._mean += shift
    with torch.no_grad():  # actions of a size that can be told apart
        trainer.actor.mlp[-1].weight.mul_(10.0)
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.toml").write_text(to_toml(resolved.preset), encoding="utf-8")
    state = {**trainer.state_dict(), "preset": resolved.preset.name, "device": "cpu"}
    checkpoint.save(checkpoint.path_for(folder / "checkpoints", 0), state)
    env.close()
    return folder
