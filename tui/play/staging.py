"""From a trained policy on disk to worlds in which it plays. Imports nothing heavy by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from presets.build import Device
    from presets.trained import Trained
    from trainer.playing import Player
    from tui.play.performance import Performance

WORLDS_ON_SCREEN = 4


def names_of(trained: Trained) -> tuple[str, str, str]:
    """Return what stands above the picture: preset, run and checkpoint."""
    return trained.resolved.preset.name, trained.folder.name, trained.checkpoint.name


def performance_of(
    trained: Trained, device: Device, num_envs: int = WORLDS_ON_SCREEN, seed: int | None = None
) -> Performance:
    """Make a performance that builds its worlds once it is started."""
    from tui.play.performance import Performance

    return Performance(lambda: player_of(trained, device, num_envs, seed))


def player_of(trained: Trained, device: Device, num_envs: int, seed: int | None) -> Player:
    """Make the worlds, and let the policy into them. Imports torch and the physics engine."""
    from presets.trained import rebuild
    from trainer.playing import Player
    from trainer.threads import use_one_torch_thread

    use_one_torch_thread()
    return Player(*rebuild(trained, device, num_envs, seed))
