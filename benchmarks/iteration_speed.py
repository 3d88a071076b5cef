"""Time whole PPO iterations against RSL-RL's runner over the same env, in turns.

    python benchmarks/iteration_speed.py [go2_flat] [--rounds 9] [--iterations 3]

Both sides train one preset, each in worlds of its own with the same seed and the preset's own
numbers: collection and update, with the bookkeeping that each does for its logs (RSL-RL's runner
writes none to disk here; ours publishes to no screen). They take turns in one process, a few
iterations each, so that noise of a shared machine meets both; the ratio is the median over the
rounds of ours / theirs, with the range of the middle half of them.

How torch's idle threads wait matters to RSL-RL, whose physics and update both use all cores; to us
it hardly does. Set it by OMP_WAIT_POLICY (unset, as torch does: they spin; PASSIVE: they sleep, as
`ppo-tui run` has it), GOMP_SPINCOUNT=30000 (they spin for a moment) or OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import statistics
import time
from typing import Any

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

from presets import loader
from presets.build import Device, build_env
from trainer.config import TrainerConfig
from trainer.env import Env
from trainer.loop import Trainer


class RslRlEnv(VecEnv):
    """Our env under RSL-RL's protocol."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.num_envs = env.num_envs
        self.num_actions = env.num_actions
        self.max_episode_length = env.max_episode_length
        self.episode_length_buf = env.episode_length
        self.device = env.device
        self.cfg = {}

    def get_observations(self) -> TensorDict:
        """The observation groups of the present state."""
        return TensorDict(self.env.observe(), batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict]:
        """Advance all worlds; observations, reward, dones, and what is beside them."""
        feedback = self.env.step(actions)
        dones = (feedback.terminated | feedback.time_outs).to(torch.long)
        extras = {"time_outs": feedback.time_outs, "log": dict(feedback.log)}
        return self.get_observations(), feedback.reward, dones, extras


def runner_config(config: TrainerConfig) -> dict[str, Any]:
    """RSL-RL's tree with the numbers of a preset."""

    def network(settings: Any) -> dict[str, Any]:
        return {
            "class_name": "MLPModel",
            "hidden_dims": list(settings.hidden_dims),
            "activation": settings.activation,
            "obs_normalization": settings.obs_normalization,
        }

    noise = {
        "class_name": "GaussianDistribution",
        "init_std": config.actor.init_std,
        "std_type": config.actor.std_type,
    }
    names = {
        *("num_learning_epochs", "num_mini_batches", "learning_rate", "schedule", "desired_kl"),
        *("gamma", "lam", "clip_param", "value_loss_coef", "use_clipped_value_loss"),
        *("entropy_coef", "max_grad_norm", "normalize_advantage_per_mini_batch"),
    }
    return {
        "num_steps_per_env": config.num_steps_per_env,
        "save_interval": 1_000_000,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "algorithm": {"class_name": "PPO", **{name: getattr(config, name) for name in names}},
        "actor": {**network(config.actor), "distribution_cfg": noise},
        "critic": network(config.critic),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("preset", nargs="?", default="go2_flat")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--iterations", type=int, default=3, help="iterations of a turn")
    parser.add_argument("--num-envs", type=int, help="N, the number of worlds")
    args = parser.parse_args()

    settings = ["trainer.seed=1"]
    if args.num_envs:
        settings.append(f"env.num_envs={args.num_envs}")
    preset = loader.load(args.preset, settings, device="cpu").preset
    trainer = Trainer(build_env(preset, Device("cpu")), preset.trainer)
    with contextlib.redirect_stdout(io.StringIO()):
        worlds = RslRlEnv(build_env(preset, Device("cpu")))
        runner = OnPolicyRunner(worlds, runner_config(preset.trainer), None, "cpu")
        runner.learn(0, init_at_random_ep_len=True)

    def ours() -> None:
        for _ in range(args.iterations):
            trainer.iterate()
            trainer.metrics()

    def theirs() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            runner.learn(args.iterations)

    times: tuple[list[float], list[float]] = ([], [])
    for round_ in range(args.rounds + 1):
        for side, record in zip((ours, theirs), times, strict=True):
            started = time.perf_counter()
            side()
            if round_:  # the first round warms up
                record.append((time.perf_counter() - started) / args.iterations)
    ratios = [a / b for a, b in zip(*times, strict=True)]
    low, ratio, high = statistics.quantiles(ratios, n=4)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {os.cpu_count()} cores")
    print("| preset | worlds | ours [s] | RSL-RL [s] | ratio | middle half |")
    print("| --- | --- | --- | --- | --- | --- |")
    medians = [statistics.median(record) for record in times]
    print(
        f"| {args.preset} | {preset.env.num_envs} | {medians[0]:.3f} | {medians[1]:.3f} "
        f"| {ratio:.2f} | {low:.2f}-{high:.2f} |"
    )


if __name__ == "__main__":
    main()
