"""How fast the presets learn: trains each seed as a person would, and keeps the curves.

    python benchmarks/learning.py go2_flat --seeds 1 2 3 --steps 8e6
    python benchmarks/learning.py cartpole --seeds 1 2 3

Each run is `ppo-tui run PRESET --headless --seed S`. The curves go to
`benchmarks/results/PRESET.csv`, thinned to `POINTS` rows a seed; the table is printed. `--collect`
makes both from runs that exist already, one folder a seed.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import subprocess
import sys
from pathlib import Path

from presets import loader

RESULTS = Path(__file__).with_name("results")
POINTS = 100
"""Rows kept of each curve, each the mean of the iterations between it and the one before."""
TAGS = {
    "reward": "Train/mean_reward",
    "episode_length": "Train/mean_episode_length",
    "error_vel_xy": "Metrics/base_velocity/error_vel_xy",
    "error_vel_yaw": "Metrics/base_velocity/error_vel_yaw",
    "position_error": "Metrics/ee_pose/position_error",
    "terrain_levels": "Curriculum/terrain_levels",
    "mean_std": "Policy/mean_std",
}
LEVELS = "Curriculum/terrain_levels/"
"""Tags of the mean level on each kind of ground begin so, and end in the kind."""


def train(preset: str, seed: int, steps: float | None, folder: Path) -> None:
    command = ["-m", "tui", "run", preset, "--headless", "--device", "cpu"]
    command += ["--seed", str(seed), "--run-dir", str(folder)]
    if steps is not None:
        config = loader.load(preset, device="cpu").preset
        per_iteration = config.env.num_envs * config.trainer.num_steps_per_env
        command += ["--iterations", str(round(steps / per_iteration))]
    subprocess.run([sys.executable, *command], check=True)


def read(folder: Path) -> list[dict[str, float]]:
    """The metrics of a run, an iteration each."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def thinned(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """The curve in `POINTS` means."""
    curve = []
    tags = TAGS | levels_by_kind(rows)
    for point in range(POINTS):
        part = rows[point * len(rows) // POINTS : (point + 1) * len(rows) // POINTS]
        if not part:
            continue
        entry = {"env_steps": part[-1]["env_steps"]}
        for column, tag in tags.items():
            values = [row[tag] for row in part if row.get(tag) is not None]
            if values:
                entry[column] = round(sum(values) / len(values), 4)
        curve.append(entry)
    return curve


def levels_by_kind(rows: list[dict[str, float]]) -> dict[str, str]:
    """A column for each kind of ground, with the tag of its mean level."""
    kinds = (tag.removeprefix(LEVELS) for tag in rows[-1] if tag.startswith(LEVELS))
    others = ("promotions", "demotions", "reached_top")
    return {
        f"level_{kind}": LEVELS + kind for kind in kinds if "/" not in kind and kind not in others
    }


def first_at_least(rows: list[dict[str, float]], tag: str, level: float) -> float | None:
    """Env steps at which the metric was first at or above a level."""
    found = (row["env_steps"] for row in rows if (row.get(tag) or 0.0) >= level)
    return next(found, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("preset")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=float, help="env steps of a run; else the preset's own")
    parser.add_argument("--runs", type=Path, default=Path("runs/learning"))
    parser.add_argument("--collect", action="store_true", help="train nothing, read --runs")
    parser.add_argument("--level", type=float, help="reward whose first step is told")
    args = parser.parse_args()

    curves = []
    for seed in args.seeds:
        folder = args.runs / f"{args.preset}_{seed}"
        if not args.collect:
            train(args.preset, seed, args.steps, folder)
        rows = [row for row in read(folder) if row["env_steps"] <= (args.steps or math.inf)]
        curves += [{"seed": seed, **entry} for entry in thinned(rows)]
        last = curves[-1]
        told = ", ".join(f"{column} {value:g}" for column, value in list(last.items())[2:])
        print(f"{args.preset} seed {seed}: {last['env_steps'] / 1e6:.2f} M env steps, {told}")
        if args.level is not None:
            reached = first_at_least(rows, TAGS["reward"], args.level)
            when = "never" if reached is None else f"{reached / 1e6:.2f} M env steps"
            print(f"  reward {args.level:g} first at {when}")

    RESULTS.mkdir(exist_ok=True)
    columns = list(dict.fromkeys(column for entry in curves for column in entry))
    with (RESULTS / f"{args.preset}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(curves)


if __name__ == "__main__":
    main()
