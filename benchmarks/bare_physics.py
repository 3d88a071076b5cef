"""Env steps a second of the bare engine and of the scene around it, for one robot.

Run: python benchmarks/bare_physics.py [robot] [num_envs ...]
"""

from __future__ import annotations

import sys
import time

import mujoco
import torch
from mujoco.batch import Batch

from sim.config import EnvConfig
from sim.physics.cpu import VELOCITY_STAGE
from sim.scene import Scene


def bare_steps_per_second(config: EnvConfig, seconds: float = 3.0) -> float:
    """Env steps/s of `Batch.step(nstep=decimation)` alone, from the standing robot.

    The torques are those that hold the robot in its default pose, and stay constant; robots that
    tip over meanwhile are part of it, so the worlds are reset every 25 steps.
    """
    scene = _standing_scene(config)
    physics, model = scene.physics, scene.physics.model
    batch = Batch(model, config.num_envs)
    for name in ("sensordata", "xpos", "xmat"):
        batch.bind(name)
    state, control = physics.qpos.numpy().copy(), physics.ctrl.numpy().copy()

    def run(steps: int) -> None:
        batch.reset(stage=mujoco.mjtStage.mjSTAGE_NONE.value)
        batch.bind("qpos")[:], batch.bind("ctrl")[:] = state, control
        for _ in range(steps):
            batch.step(nstep=config.decimation, stage=VELOCITY_STAGE)

    return _rate(run, config.num_envs, seconds)


def scene_steps_per_second(config: EnvConfig, seconds: float = 3.0) -> float:
    """Env steps/s of `Scene.tick` x decimation and `Scene.update`, from the standing robot."""
    scene = _standing_scene(config)

    def run(steps: int) -> None:
        for _ in range(steps):
            _step(scene, config.decimation)

    return _rate(run, config.num_envs, seconds)


def _standing_scene(config: EnvConfig) -> Scene:
    scene = Scene(config, "cpu", torch.Generator())
    for _ in range(25):
        _step(scene, config.decimation)
    return scene


def _step(scene: Scene, decimation: int) -> None:
    for k in range(decimation):
        scene.tick(last=k == decimation - 1)
    scene.update()


def _rate(run, num_envs: int, seconds: float, chunk: int = 25) -> float:
    """Best of the chunks that fit into the time: the machine may be shared."""
    run(chunk)
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        run(chunk)
        best = min(best, time.perf_counter() - start)
    return chunk * num_envs / best


def main() -> None:
    robot = sys.argv[1] if len(sys.argv) > 1 else "go2"
    for num_envs in [int(n) for n in sys.argv[2:]] or [256, 512]:
        config = EnvConfig(robot=robot, num_envs=num_envs)
        bare, whole = bare_steps_per_second(config), scene_steps_per_second(config)
        print(
            f"{robot}, {num_envs} worlds: engine {bare:,.0f}, scene {whole:,.0f} env steps/s "
            f"(scene adds {1e3 * num_envs * (1 / whole - 1 / bare):.2f} ms a step)"
        )


if __name__ == "__main__":
    main()
