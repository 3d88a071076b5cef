"""Trains a toy world under the real dashboard; a fault can be asked for on the command line.

python toy_program.py RUN_DIR [none|boom|slow|hang|abort|print|ask|no-build|screen]
"""

import ctypes
import logging
import os
import sys
import time
import warnings
from pathlib import Path

# A handler made before the app starts, which keeps the real standard error.
logging.basicConfig(level=logging.INFO, stream=sys.stderr)


def build_env(fault: str) -> object:
    """Make the worlds; called in the session's thread, like all that needs torch."""
    if fault == "no-build":
        raise RuntimeError("no such robot")
    from tests.trainer.toy_env import ToyEnv

    class FaultyEnv(ToyEnv):
        steps = 0

        def step(self, actions):
            self.steps += 1
            time.sleep(0.005)
            if self.steps == 24:
                cause(fault)
            if fault == "slow" and self.steps >= 24:
                time.sleep(4.0)
            return super().step(actions)

    return FaultyEnv(num_envs=8)


def cause(fault: str) -> None:
    """Do what a careless library or a bug would do."""
    if fault == "boom":
        raise ValueError("boom")
    if fault == "hang":
        while True:
            time.sleep(0.1)
    if fault == "abort":
        os.abort()
    if fault == "ask":
        input("overwrite? ")
    if fault == "print":
        ctypes.CDLL(None).printf(b"smear-by-libc\n")
        ctypes.CDLL(None).fflush(None)
        os.write(1, b"smear-by-write\n")
        os.write(2, b"smear-by-write-2\n")
        print("smear-by-print", flush=True)
        logging.getLogger("library").info("smear-by-logging")
        warnings.warn("smear-by-warning", stacklevel=1)


def main() -> int:
    """Train until told to stop."""
    from tui.launcher import launch

    launcher = launch()
    from trainer.config import ActorConfig, CriticConfig, TrainerConfig
    from trainer.rundir import RunDir
    from trainer.session import Session
    from tui.app import run_dashboard
    from tui.screens.dashboard import DashboardScreen

    def show(screen, snapshot, **how):
        if snapshot.completed_iterations >= 2:
            raise ZeroDivisionError("a panel failed")

    folder, fault = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "none"
    if fault == "screen":
        DashboardScreen.show = show
    config = TrainerConfig(
        seed=1,
        num_iterations=int(sys.argv[3]) if len(sys.argv) > 3 else 100_000,
        num_steps_per_env=8,
        num_mini_batches=2,
        num_learning_epochs=2,
        actor=ActorConfig(hidden_dims=(8,)),
        critic=CriticConfig(hidden_dims=(8,)),
    )
    run_dir = RunDir.create(folder, 'name = "toy"\n')
    session = Session("toy", lambda: build_env(fault), config, run_dir)
    return run_dashboard(session, launcher=launcher)


if __name__ == "__main__":
    raise SystemExit(main())
