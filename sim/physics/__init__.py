"""Physics engines behind one protocol, from the same MJCF."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.physics.base import Listener, Nobody, Physics

if TYPE_CHECKING:
    import mujoco
    import torch


def make_physics(
    model: mujoco.MjModel,
    num_worlds: int,
    device: torch.device,
    listener: Listener | None = None,
    num_threads: int = 0,
) -> Physics:
    """The engine for a device: MuJoCo's batch on the CPU, MuJoCo Warp on a GPU.

    Neither engine's libraries are loaded for the other. Threads are the CPU's alone.

    Raises:
        PhysicsError: The engine does not compute on this device what MuJoCo computes.
    """
    if device.type == "cpu":
        from sim.physics.cpu import CpuPhysics

        return CpuPhysics(model, num_worlds, num_threads)
    from sim.physics.gpu import GpuPhysics

    return GpuPhysics(model, num_worlds, device, listener=listener or Nobody())
