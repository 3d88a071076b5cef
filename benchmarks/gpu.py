"""Tests, speed and memory on a CUDA GPU; see gpu.sh.

Every measurement has a process of its own, so that memory is its own too. Training runs as
`ppo-tui run` does, for some iterations, of which the first are left out. The envs alone are stepped
with random actions, which is what they can be compared by: mjlab has no Go2, its nearest tasks are
those of the Go1, a robot of the same build. mjlab is pinned to another MuJoCo than ours, so it may
live in an environment of its own, named by `MJLAB_PYTHON`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

from benchmarks.mjlab_speed import memory, step_rate
from presets.build import build_env, new_session, resolve_device
from presets.loader import load
from presets.problems import PresetError

PRESETS = ("go2_flat", "go2_rough")
MJLAB_PYTHON = os.environ.get("MJLAB_PYTHON") or (sys.executable if find_spec("mjlab") else None)
MJLAB_TASKS = ("Mjlab-Velocity-Flat-Unitree-Go1", "Mjlab-Velocity-Rough-Unitree-Go1")
WARM_UP = 5
"""Iterations, and times 24 env steps, that are not measured."""


def train(preset, device, num_envs, iterations):
    """Train a preset; return env steps/s, seconds of collecting and learning, memory."""
    settings = [f"env.num_envs={num_envs}", f"trainer.num_iterations={iterations + WARM_UP}"]
    kind = device.partition(":")[0]
    resolved = load(preset, [*settings, "trainer.seed=1"], kind)
    with tempfile.TemporaryDirectory() as folder:
        session = new_session(resolved, resolve_device(device), Path(folder) / "run")
        rows = session.follow()
        started = time.perf_counter()
        session.start()
        metrics, ready = [], 0.0
        while (row := rows.get()) is not None:
            ready = ready or time.perf_counter() - started
            metrics.append(row.metrics)
            used = memory(device)
        session.join()
        failure = session.snapshot().failure
        for event in session.events.since(0)[1]:
            if event.kind in ("alert", "fault"):
                print(f"{preset}: {event.text}", file=sys.stderr)
    if failure is not None:
        raise RuntimeError(f"{preset}: {failure.message}")

    def median(tag):
        return statistics.median(row[tag] for row in metrics[WARM_UP:])

    names = ("Perf/total_fps", "Perf/collection_time", "Perf/learning_time")
    return (*(median(name) for name in names), used, ready)


def step_preset(preset, device, num_envs, steps):
    """Env steps/s and memory of a preset's worlds under random actions."""
    settings = [f"env.num_envs={num_envs}", "trainer.seed=1"]
    resolved = load(preset, settings, device.partition(":")[0])
    env = build_env(resolved.preset, resolve_device(device))

    def step(actions):
        env.step(actions)
        env.observe()

    return step_rate(step, num_envs, env.num_actions, device, steps)


def step_mjlab(task, device, num_envs, steps):
    """The same of an mjlab task, by the Python that has mjlab."""
    command = [MJLAB_PYTHON, "-m", "benchmarks.mjlab_speed", task, device, num_envs, steps]
    out = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(out.stdout.splitlines()[-1])


def name_of(device):
    """What is measured. Asked apart, since whoever asks a GPU takes some of its memory."""
    import torch

    return torch.cuda.get_device_name(device) if device.startswith("cuda") else "CPU"


def apart(function, *arguments):
    """Call it in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def measured(function, name, *arguments):
    """Call it apart; what fails is told, and is None: the other measurements go on."""
    try:
        return apart(function, name, *arguments)
    except Exception as error:  # out of memory, another version of mjlab, a process that died
        print(f"{name} failed: {type(error).__name__}: {error}", file=sys.stderr)
        return None


def table(title, header, rows):
    """Print a Markdown table."""
    print(f"\n{title}\n\n| {' | '.join(header)} |\n|{' --- |' * len(header)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    sys.stdout.flush()


def gigabytes(value):
    return "-" if value is None else f"{value:.1f} GB"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--num-envs", type=int, default=4096)
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--skip-tests", action="store_true")
    options = parser.parse_args()
    try:
        device = resolve_device(options.device).name
    except PresetError as error:
        reason = error.messages[0].removeprefix(f"--device {options.device}: ")
        reason = reason.removesuffix("; use --device cpu")
        print(f"This benchmark needs a GPU that CUDA can use: {reason}.")
        return 2

    failed = 0
    if not options.skip_tests:
        command = [sys.executable, "-m", "pytest", "-m", "gpu", "-n", "0"]
        failed = subprocess.run(command).returncode
    name = apart(name_of, device)
    worlds, steps = options.num_envs, 24 * options.iterations
    print(f"\n{name}, torch {version('torch')}, {worlds:,} worlds, {options.iterations} iterations")

    rows = []
    for preset in PRESETS:
        found = measured(train, preset, device, worlds, options.iterations)
        if found is None:
            failed = failed or 1
            continue
        fps, collecting, learning, used, ready = found
        split = collecting / (collecting + learning)
        rows.append(
            (
                preset,
                f"{fps:,.0f}",
                f"{collecting:.3f} s ({split:.0%})",
                f"{learning:.3f} s ({1 - split:.0%})",
                gigabytes(used),
                f"{ready:.0f} s",
            )
        )
    header = (
        "training",
        "env steps/s",
        "collecting",
        "learning",
        "memory",
        "first iteration after",
    )
    table("Training, medians of an iteration", header, rows)

    rates = {p: measured(step_preset, p, device, worlds, steps) for p in PRESETS}
    if MJLAB_PYTHON is not None:
        rates |= {t: measured(step_mjlab, t, device, worlds, steps) for t in MJLAB_TASKS}
    else:
        print(
            "\nmjlab is not installed, and MJLAB_PYTHON names no Python that has it: no comparison."
        )
    if None in rates.values():
        failed = failed or 1
    found = {task: rate for task, rate in rates.items() if rate is not None}
    rows = [(task, f"{rate:,.0f}", gigabytes(used)) for task, (rate, used) in found.items()]
    table("Envs alone, random actions", ("task", "env steps/s", "memory"), rows)
    return failed


if __name__ == "__main__":
    sys.exit(main())
