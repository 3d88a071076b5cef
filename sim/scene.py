"""The worlds: one robot in each, its motors and its contacts, advanced tick by tick."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import mujoco
import torch
from torch import Tensor

from sim.config import EnvConfig
from sim.contacts import Contacts
from sim.physics import make_physics
from sim.physics.base import Listener, Physics
from sim.robot import Robot
from sim.robots import find_robot
from sim.terrain.height_field import compile_on_terrain
from sim.terrain.terrain import Terrain

CONTACT_HISTORY = 3
"""Ticks of contact force that are kept at least (as Isaac Lab's contact sensor)."""
SPEED_LIMIT = 1000.0
"""Speed, in m/s or rad/s, above which a world is taken for broken (Isaac Lab's limit of a body)."""


class Scene:
    """N worlds with a robot each.

    An env step is: set the robot's targets, `tick` decimation times (`last=True` the last time),
    `update`. A reset is: `reset(ids)`, whatever the robot's `write_*` methods set, `commit(ids)`.

    Args:
        config: The env's settings.
        device: Where tensors live.
        generator: The env's source of random numbers.
        listener: Who is told what the engine is doing.

    Raises:
        ValueError: The settings name an unknown robot.
    """

    def __init__(
        self,
        config: EnvConfig,
        device: torch.device | str,
        generator: torch.Generator,
        listener: Listener | None = None,
    ) -> None:
        description = find_robot(config.robot)
        self.num_envs = config.num_envs
        """N."""
        self.device = torch.device(device)
        """Where all tensors live."""
        self.generator = generator
        """The env's source of random numbers."""
        self.physics_dt = config.physics_dt
        """Seconds of one tick."""

        self.terrain = (
            Terrain(config.terrain, config.num_envs, generator) if config.terrain else None
        )
        """The generated ground; None where it is flat."""
        spec = mujoco.MjSpec.from_file(str(description.mjcf))
        model = compile_on_terrain(spec, self.terrain.map) if self.terrain else spec.compile()
        model.opt.timestep = config.physics_dt
        model.opt.iterations = config.solver_iterations
        model.opt.ls_iterations = config.solver_ls_iterations
        self.physics: Physics = make_physics(
            model, config.num_envs, self.device, listener, config.num_threads
        )
        """The engine."""
        self.env_origins = (
            self.terrain.env_origins
            if self.terrain
            else flat_origins(config.num_envs, config.env_spacing).to(self.device)
        )
        """Where the worlds stand, [N, 3] m."""
        self.robot = Robot(description, self.physics, self.env_origins)
        """The robot of every world."""
        self.contacts = Contacts(self.physics, max(CONTACT_HISTORY, config.decimation))
        """Its contacts."""

        everyone = torch.arange(self.num_envs, device=self.device)
        self.reset(everyone)
        self.commit(everyone)

    def tick(self, last: bool) -> None:
        """Drive the motors and advance all worlds by physics_dt.

        `last` says that `update` follows.
        """
        self.robot.drive()
        self.physics.tick(last)
        self.contacts.record()
        if last:
            self.robot.measure_acceleration()

    def update(self) -> None:
        """Bring all readings up to the state after the last tick."""
        self.contacts.update()
        self.robot.refresh()

    def reset(self, ids: Tensor) -> None:
        """Put the worlds `ids` (sorted) to the default state at their origins, all counters at 0.

        Readings follow at `commit`.
        """
        if len(ids) == 0:
            return
        self.physics.reset(ids)
        self.robot.reset(ids)
        self.contacts.reset(ids)

    def commit(self, ids: Tensor) -> None:
        """Make all readings of the worlds `ids` (sorted) describe what was written into them."""
        self.physics.forward(ids)

    def bad_worlds(self) -> tuple[Tensor, dict[int, str]]:
        """Worlds that broke since the last call: they must be reset before they are trusted.

        Returns:
            [N] bool, and for each such world the name of the quantity first found bad.
        """
        warned = self.physics.bad_worlds()
        qpos, qvel = self.physics.qpos, self.physics.qvel
        force = self.contacts.net_forces_history[:, 0]
        # One number says that all is well: a sum carries every NaN and infinity through, and a
        # comparison with NaN fails.
        slowest, fastest = torch.aminmax(qvel)
        speed = torch.maximum(fastest, -slowest)
        if bool((qpos.sum() + force.sum()) * 0 + speed < (~warned.any()) * SPEED_LIMIT):
            return warned, {}
        good = {
            "qpos": qpos.abs().amax(dim=1) < math.inf,
            "qvel": qvel.abs().amax(dim=1) < SPEED_LIMIT,
            "contact force": force.abs().sum(dim=(1, 2)) < math.inf,
        }
        bad = warned | ~torch.stack(list(good.values())).all(dim=0)
        return bad, {
            world: self.physics.bad_quantity(world)
            if warned[world]
            else next(name for name, is_good in good.items() if not is_good[world])
            for world in bad.nonzero()[:, 0].tolist()
        }

    def state_dict(self) -> dict[str, Any]:
        """All that an exact continuation needs."""
        state = {
            "physics": self.physics.state_dict(),
            "robot": self.robot.state_dict(),
            "contacts": self.contacts.state_dict(),
            "env_origins": self.env_origins.clone(),
        }
        if self.terrain is not None:
            state["terrain"] = self.terrain.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self.physics.load_state_dict(state["physics"])
        self.env_origins.copy_(state["env_origins"])
        if self.terrain is not None:
            self.terrain.load_state_dict(state["terrain"])
        self.robot.load_state_dict(state["robot"])
        self.contacts.load_state_dict(state["contacts"])

    def close(self) -> None:
        """Give back the engine's threads and memory."""
        self.physics.close()


def flat_origins(num_envs: int, spacing: float) -> Tensor:
    """Origins of worlds on a plane: a centred grid, x falling, y rising (as Isaac Lab's), [N, 3] m.

    The grid has ceil(N / int(sqrt(N))) rows along x.
    """
    rows = math.ceil(num_envs / int(math.sqrt(num_envs)))
    columns = math.ceil(num_envs / rows)
    index = torch.arange(num_envs)
    row, column = index // columns, index % columns
    origins = torch.zeros((num_envs, 3))
    origins[:, 0] = ((rows - 1) / 2 - row) * spacing
    origins[:, 1] = (column - (columns - 1) / 2) * spacing
    return origins
