"""The process that speaks to Weights & Biases: messages come in, a JSON line each.

The first says where the run lies and what it is called, the others bring metrics, the last how the
run ended; where the messages stop without that, the run has been killed.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

LOGIN_TIME = 3.0
"""Seconds that W&B's server may take before the run is kept offline."""

KILLED = 1
"""Exit code of a run whose end nobody announced."""


def main() -> None:
    """Pass messages of the standard input on until it ends."""
    messages, answers = _private_ends()
    run, answer = start(json.loads(next(messages)))
    print(answer, file=answers, flush=True)
    run.finish(exit_code=pass_on(run, messages))


def start(message: dict[str, Any]) -> tuple[Any, str]:
    """Begin a W&B run, online if that works at once; returns it, and what became of it."""
    import wandb

    folder = Path(message["folder"])
    common = {
        "project": message["project"],
        "group": message["group"],
        "name": message["name"],
        "id": message["id"],
        "dir": folder,
        "resume": "allow",
        "config": tomllib.loads((folder / "config.toml").read_text(encoding="utf-8-sig")),
        "settings": wandb.Settings(
            console="off", disable_git=True, save_code=False, init_timeout=LOGIN_TIME, silent=True
        ),
    }
    reason, mode = "", os.environ.get("WANDB_MODE", "online")
    if mode == "online":
        try:
            run = wandb.init(mode="online", **common)
        except wandb.Error as error:  # without a login, without a network, or not let in
            reason, mode = f" ({' '.join(str(error).split())})", "offline"
        else:
            return run, f"W&B: {run.url}"
    run = wandb.init(**common | {"mode": mode})
    if mode == "offline":
        where = Path(run.dir).parent
        return run, f"W&B: kept offline{reason}; to upload it: wandb sync {where}"
    return run, f"W&B: WANDB_MODE is {mode}"


def pass_on(run: Any, messages: Iterable[str]) -> int:  # noqa: ANN401 - W&B's own type
    """Log every message; returns the exit code of the training."""
    for line in messages:
        message = json.loads(line)
        if "exit_code" in message:
            return int(message["exit_code"])
        run.log(message["metrics"], step=message["step"])
    return KILLED


def _private_ends() -> tuple[IO[str], IO[str]]:
    """Take the standard input and output away from whoever else would use them."""
    messages = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return messages, answers


if __name__ == "__main__":
    main()
