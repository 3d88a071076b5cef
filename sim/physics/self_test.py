"""Whether many worlds on a device move as MuJoCo moves one."""

from __future__ import annotations

import mujoco
import torch
from torch import Tensor

from sim.physics.base import Physics, PhysicsError

TICKS = 5
"""Ticks that are compared."""
MOST_TICKS_TO_CONTACT = 400
"""Ticks after which a model that has touched nothing is compared as it is."""
SAME = 1e-3
"""Worlds of one state may differ by this part of the largest value of a reading."""
NEAR = 2e-2
"""Positions (m, rad) may differ by this from MuJoCo's, which has float64 and its own contacts."""

CLEAR = 0.02
"""A reading of this part of all readings' sum may not be 0 in every tick on the device."""


def compare_with_mujoco(physics: Physics, warm_start: Tensor) -> None:
    """Drop every world onto the ground and let it move for some ticks, as MuJoCo does with one.

    The worlds' states are overwritten. Catches readings that are right with one world and wrong,
    or nearly always zero, with thousands.

    Args:
        physics: N worlds in their default state.
        warm_start: Where its solver starts from, [N, nv].

    Raises:
        PhysicsError: A reading differs; says which, and by how much.
    """
    model = physics.model
    single = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, single, 0)
    for _ in range(MOST_TICKS_TO_CONTACT):
        mujoco.mj_step(model, single)
        if single.ncon:
            break
    for tensor, value in (
        (physics.qpos, single.qpos),
        (physics.qvel, single.qvel),
        (physics.ctrl, single.ctrl),
        (warm_start, single.qacc_warmstart),
    ):
        tensor[:] = torch.as_tensor(value, dtype=tensor.dtype).to(tensor.device)
    sensed = torch.zeros(model.nsensordata)
    felt = torch.zeros_like(sensed)
    for tick in range(1, TICKS + 1):
        physics.tick(last=tick == TICKS)
        mujoco.mj_step(model, single)
        sensed = sensed.maximum(torch.as_tensor(single.sensordata).float().abs())
        felt = felt.maximum(physics.sensordata[0].cpu().float().abs())

    for name in ("qpos", "qvel", "sensordata", "body_pos"):
        readings = getattr(physics, name).flatten(1)
        if not readings.numel():
            continue
        spread = float((readings - readings[0]).abs().max())
        # written so that NaN fails
        if not spread <= SAME * max(float(readings.abs().max()), 1.0):
            raise PhysicsError(f"worlds of one state came apart: their {name} differ by {spread}")
    silent = (sensed > CLEAR * sensed.sum()) & (felt == 0)
    if silent.any():
        raise PhysicsError(f"{int(silent.sum())} sensor readings are 0 where MuJoCo has a value")
    error = (physics.qpos[0].cpu() - torch.as_tensor(single.qpos)).abs().max()
    if not error <= NEAR:
        raise PhysicsError(f"after {TICKS} ticks positions differ by {error} from MuJoCo's")
