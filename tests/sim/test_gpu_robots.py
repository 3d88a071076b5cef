"""The other robots on the GPU engine, against MuJoCo itself, on Warp's CPU device.

Their kernels take minutes to compile the first time, so they run where `PPO_TUI_SLOW_TESTS` is set.
"""

import os

import mujoco
import numpy as np
import pytest
import torch

from sim.physics.gpu import GpuPhysics
from sim.robots import find_robot
from sim.warp_start import wp

pytestmark = pytest.mark.skipif(
    not os.environ.get("PPO_TUI_SLOW_TESTS"),
    reason="compiles for minutes; set PPO_TUI_SLOW_TESTS=1",
)

N = 3
STEPS, DECIMATION = 50, 4


@pytest.fixture(scope="module", params=["franka", "cartpole"])
def engine(request):
    model = mujoco.MjModel.from_xml_path(str(find_robot(request.param).mjcf))
    model.opt.timestep = 1 / 120
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wp.config, "optimization_level", 0)  # compiles in half the time
        physics = GpuPhysics(model, N, torch.device("cpu"))
    yield request.param, physics
    physics.close()


def start(model, seed):
    """A state near the default one, at rest, with inputs that ask for a move."""
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qpos += rng.uniform(-0.1, 0.1, model.nq) * (data.qpos != 0.04)
    data.qvel[:] = rng.uniform(-0.2, 0.2, model.nv)
    servos = model.actuator_biastype != mujoco.mjtBias.mjBIAS_NONE
    aim = np.array([data.qpos[model.jnt_qposadr[j]] for j in model.actuator_trnid[:, 0]])
    data.ctrl[:] = np.where(servos, aim, 5.0) + rng.uniform(-0.1, 0.1, model.nu)
    return data


def test_one_tick_is_mujocos_to_1e_4_and_50_steps_to_a_millimetre(engine):
    name, physics = engine
    singles = [start(physics.model, seed) for seed in range(N)]
    physics.reset()
    for world, data in enumerate(singles):
        for field in ("qpos", "qvel", "ctrl"):
            getattr(physics, field)[world] = torch.as_tensor(getattr(data, field)).float()
    for tick in range(STEPS * DECIMATION):
        physics.tick(last=tick % DECIMATION == DECIMATION - 1)
        for data in singles:
            mujoco.mj_step(physics.model, data)
        if tick in (0, STEPS * DECIMATION - 1):
            near = 1e-4 if tick == 0 else 1e-3
            for world, data in enumerate(singles):
                np.testing.assert_allclose(physics.qpos[world], data.qpos, atol=near, err_msg=name)
                np.testing.assert_allclose(
                    physics.qvel[world], data.qvel, atol=10 * near, err_msg=name
                )
    for world, data in enumerate(singles):
        mujoco.mj_forward(physics.model, data)
        np.testing.assert_allclose(physics.body_pos[world], data.xpos, atol=1e-3)
    moved = max(
        np.abs(data.qpos - start(physics.model, k).qpos).max() for k, data in enumerate(singles)
    )
    assert moved > 0.05
