"""A rank other than 0, which builds what rank 0 tells it to: `python -m presets.follow`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from presets.build import Device, build_env
from presets.loader import load
from trainer.ranks import Rank
from trainer.threads import let_torch_threads_sleep

if TYPE_CHECKING:
    import torch

    from trainer.config import TrainerConfig
    from trainer.env import Env


def follow(rank: Rank) -> int:
    """Train with rank 0 until that says to leave; returns the exit code."""
    let_torch_threads_sleep()
    import torch

    from trainer import follower

    def device_of(job: Mapping[str, Any]) -> torch.device:
        return torch.device("cpu" if job["device"] == "cpu" else f"cuda:{rank.local_rank}")

    def build(job: Mapping[str, Any]) -> tuple[Env, TrainerConfig]:
        terms = [Path(path) for path in job["own_terms"]]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{job['name']}.toml"
            path.write_text(job["preset"], encoding="utf-8")
            resolved = load(str(path), (), job["device"], own_terms=terms)
        device = Device(str(device_of(job)))
        env = build_env(resolved.preset, device, None, terms, rank.rank)
        return env, resolved.preset.trainer

    return follower.follow(rank, build, device_of)


def main() -> None:
    """Follow, and leave without waiting for threads that wait for others."""
    code = follow(Rank.from_environment())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
