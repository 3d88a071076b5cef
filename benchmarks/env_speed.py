"""Env steps per second of a preset beside bare `mujoco.batch.Batch.step` of the same physics.

Every env step is made twice: by the env (managers, motors, sensors, resets and the observations),
and by a bare batch of the same model, threads and per-world fields that starts from the same state
and is given the same motor inputs tick by tick. So both do the same physics. The inputs are noted
beforehand by a twin of the env, which is the same bit for bit, so that noting them costs nothing;
env and batch take turns in short blocks, so that noise of the machine falls on both.

    python benchmarks/env_speed.py [--preset go2_flat] [--num-envs 256 1024] [--steps 200]
"""

import argparse
import os
import statistics
import time

# Idle OpenMP threads of torch must sleep: they would spin on the cores that physics needs. Read
# when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from mujoco.batch import Batch

from presets.loader import load
from sim.config import EnvConfig
from sim.env import ManagerBasedEnv, make_env

WARM_UP_STEPS = 50
BLOCK = 10
"""Steps of the env, then of the bare batch, before it is the other's turn again."""


class BareBatch:
    """The env's physics alone."""

    def __init__(self, env: ManagerBasedEnv):
        self.batch = Batch(env.scene.physics.model, env.num_envs, len(os.sched_getaffinity(0)))
        for name, values in env.scene.physics.state_dict()["fields"].items():
            self.batch.expand(name)[:] = values.numpy()
        self.batch.set_const()
        self.ctrl = torch.from_numpy(self.batch.bind("ctrl"))

    def time_step(self, state, inputs):
        """Seconds of one env step from `state`, with these inputs, one a tick."""
        self.batch.state[:] = state.numpy()
        start = time.perf_counter()
        for ctrl in inputs:
            self.ctrl.copy_(ctrl)
            self.batch.step()
        return time.perf_counter() - start


class Twin:
    """An env that goes ahead of the timed one and notes what its physics is given."""

    def __init__(self, config):
        self.env = new_env(config)
        self.inputs, self.tick = [], self.env.scene.physics.tick
        self.env.scene.physics.tick = self._noted

    def _noted(self, last):
        self.inputs.append(self.env.scene.physics.ctrl.clone())
        self.tick(last)

    def note(self, actions):
        """State before an env step, and the motor inputs of its ticks."""
        state = self.env.scene.physics.state_dict()["state"]
        self.inputs = []
        self.env.step(actions)
        self.env.observe()
        return state, self.inputs


def new_env(config):
    env = make_env(config, "cpu", seed=1)
    # Spread the time-outs over the steps, as in training.
    env.episode_length.random_(0, env.max_episode_length, generator=env.generator)
    return env


def time_env_step(env, actions):
    start = time.perf_counter()
    env.step(actions)
    env.observe()
    return time.perf_counter() - start


def measure(config, steps):
    """Seconds of each env step: by the env, and by the bare batch."""
    env, twin = new_env(config), Twin(config)
    bare = BareBatch(env)
    generator = torch.Generator().manual_seed(1)
    env_seconds, bare_seconds = [], []
    for _ in range((WARM_UP_STEPS + steps) // BLOCK):
        actions = [
            torch.randn(env.num_envs, env.num_actions, generator=generator) for _ in range(BLOCK)
        ]
        notes = [twin.note(action) for action in actions]
        env_seconds += [time_env_step(env, action) for action in actions]
        bare_seconds += [bare.time_step(state, inputs) for state, inputs in notes]
    env.close()
    twin.env.close()
    return env_seconds[WARM_UP_STEPS:], bare_seconds[WARM_UP_STEPS:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="go2_flat")
    parser.add_argument("--num-envs", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()

    settings = load(options.preset).preset.env.model_dump()
    print(f"{options.preset}, {len(os.sched_getaffinity(0))} threads, {options.steps} steps each")
    print("| worlds | bare steps/s | env steps/s | env / bare | median of env - bare, ms |")
    print("| --- | --- | --- | --- | --- |")
    for num_envs in options.num_envs:
        config = EnvConfig.model_validate({**settings, "num_envs": num_envs})
        env, bare = measure(config, options.steps)
        env_rate, bare_rate = (num_envs / statistics.median(s) for s in (env, bare))
        # The ratio is that of all the time spent, resets included; the rates are of a usual step.
        ratio = sum(bare) / sum(env)
        extra = 1e3 * statistics.median(e - b for e, b in zip(env, bare, strict=True))
        print(f"| {num_envs} | {bare_rate:,.0f} | {env_rate:,.0f} | {ratio:.3f} | {extra:.2f} |")


if __name__ == "__main__":
    main()
