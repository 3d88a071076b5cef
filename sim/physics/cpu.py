"""Physics on the CPU: MuJoCo's own batch of worlds on native threads."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
import torch
from mujoco.batch import Batch, SimulationError
from torch import Tensor

from sim.physics.base import BodiesWhenRead

POSITION_STAGE = mujoco.mjtStage.mjSTAGE_POS.value
NO_STAGE = mujoco.mjtStage.mjSTAGE_NONE.value

BAD_QUANTITIES = {
    mujoco.mjtWarning.mjWARN_BADQPOS: "qpos",
    mujoco.mjtWarning.mjWARN_BADQVEL: "qvel",
    mujoco.mjtWarning.mjWARN_BADQACC: "qacc",
    mujoco.mjtWarning.mjWARN_BADCTRL: "ctrl",
    mujoco.mjtWarning.mjWARN_INERTIA: "inertia",
    mujoco.mjtWarning.mjWARN_CONTACTFULL: "contacts (too many)",
    mujoco.mjtWarning.mjWARN_CNSTRFULL: "constraints (too many)",
}
"""MuJoCo's warnings by the quantity that each is about, in the order a tick meets them."""


class CpuPhysics(BodiesWhenRead):
    """`sim.physics.base.Physics` on `mujoco.batch.Batch`.

    Tensors are float64 views of the engine's own arrays; nothing is copied. The default state is
    the model's first keyframe, or its zero state where it has none. Results do not depend on the
    number of threads. A world is its row of state alone (the batch's `persistent` mode, one MjData
    a world, is 5 % faster at 256 worlds but half as fast at 4,096, in 13 times the memory).

    Args:
        model: The compiled model; its options (time step, solver iterations) hold for all worlds.
        num_worlds: N.
        num_threads: Native threads; 0 takes every core that the system lets this process use.
    """

    def __init__(self, model: mujoco.MjModel, num_worlds: int, num_threads: int = 0) -> None:
        _keep_engine_quiet()
        self.model = model
        self.num_worlds = num_worlds
        self.device = torch.device("cpu")
        self.dt = float(model.opt.timestep)
        threads = num_threads or _cores()
        self._batch = Batch(model, num_worlds, threads)
        self._keyframe = 0 if model.nkey else -1

        self.qpos = self._bind("qpos")
        self.qvel = self._bind("qvel")
        self.ctrl = self._bind("ctrl")
        self.sensordata = self._bind("sensordata")
        self._body_pos = self._bind("xpos")
        self._body_rotation = self._bind("xmat").view(num_worlds, model.nbody, 3, 3)

        # [N, kind of warning]; the engine counts up, and back to 0 when it resets a world
        self._warnings = _live(self._batch.warning)[:, :, 1]
        self._seen_warnings = self._warnings.clone()
        self._failed = torch.zeros(num_worlds, dtype=torch.bool)  # not told of yet
        self._unsound = torch.zeros_like(self._failed)  # failed, and not reset since
        self._any_unsound = False
        self._nothing_bad = torch.zeros_like(self._failed)
        self._bad_quantities: dict[int, str] = {}
        self._fields: dict[str, Tensor] = {}
        self._rows = _live(self._batch.state)
        self._reset_by_engine(None)
        self._default_row = self._rows[0].clone()

    def _bind(self, name: str) -> Tensor:
        try:
            return _live(self._batch.bind(name))
        except RuntimeError as error:
            if "unknown exception" not in str(error):
                raise
            # the binding's word for what C++ throws when it gets no memory
            raise MemoryError(f"no room for {name} of {self.num_worlds} worlds") from error

    def tick(self, last: bool) -> None:
        """Advance all worlds by dt; see `Physics.tick`."""
        try:
            self._batch.step(stage=NO_STAGE)
        except SimulationError as error:  # the other worlds ran
            ids = torch.from_numpy(error.ids).long()
            self._failed[ids] = True
            self._unsound[ids] = True
            self._any_unsound = True
        self._bodies_outdated = True

    def _compute_bodies(self) -> None:
        self._batch.forward(stage=POSITION_STAGE)

    def reset(self, ids: Tensor | None = None) -> None:
        """Put the worlds `ids` to the default state; see `Physics.reset`."""
        rows = slice(None) if ids is None else ids
        if self._any_unsound:
            self._reset_by_engine(ids)
            self._unsound[rows] = False
            self._any_unsound = bool(self._unsound.any())
        else:
            # a world is its row: writing it takes a tenth of what waking the engine's threads does
            self._rows[rows] = self._default_row
            self.sensordata[rows] = 0
            self._warnings[rows] = 0
        self._seen_warnings[rows] = 0
        self._failed[rows] = False

    def _reset_by_engine(self, ids: Tensor | None) -> None:
        """Put worlds to the default state with all that the engine may keep of a failed tick."""
        self._batch.reset(_world_ids(ids), keyframe=self._keyframe, stage=NO_STAGE)

    def model_field(self, name: str) -> Tensor:
        """Give a model field a value per world; see `Physics.model_field`."""
        if name not in self._fields:
            self._fields[name] = _live(self._batch.expand(name))
        return self._fields[name]

    def present_field(self, name: str) -> Tensor:
        """A model field for reading: [N, ...] if it differs between worlds, else [1, ...]."""
        if name in self._fields:
            return self._fields[name]
        return self._nominal(name).unsqueeze(0)

    def _nominal(self, name: str) -> Tensor:
        return torch.from_numpy(np.asarray(getattr(self.model, name)))

    def model_changed(self) -> None:
        """Recompute the constants that follow from model fields after they were written."""
        self._batch.set_const()

    def bad_worlds(self) -> Tensor:
        """Worlds that the engine warned of, reset by itself or failed on since the last call."""
        if not self._any_unsound and torch.equal(self._warnings, self._seen_warnings):
            return self._nothing_bad
        fresh = self._warnings > self._seen_warnings
        bad = fresh.any(dim=1) | self._failed
        self._seen_warnings.copy_(self._warnings)
        self._bad_quantities = {
            world: self._first_bad(fresh[world]) for world in bad.nonzero()[:, 0].tolist()
        }
        self._failed.zero_()
        return bad

    def _first_bad(self, fresh: Tensor) -> str:
        for warning, quantity in BAD_QUANTITIES.items():
            if fresh[int(warning)]:
                return quantity
        return "engine error"

    def bad_quantity(self, world: int) -> str:
        """Name of what was first found bad in a world that `bad_worlds` named."""
        return self._bad_quantities[world]

    def state_dict(self) -> dict[str, Any]:
        """State rows (positions, velocities, warm start, time, inputs) and per-world fields."""
        return {
            "state": torch.from_numpy(self._batch.state.copy()),
            "fields": {name: field.clone() for name, field in self._fields.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue, bit for bit, from what `state_dict` returned."""
        rows = state["state"].numpy()
        if rows.shape != self._batch.state.shape:
            raise ValueError(
                f"the saved physics has worlds x state of {rows.shape}, "
                f"this one has {self._batch.state.shape}"
            )
        for name in self._fields.keys() - state["fields"].keys():
            self._fields[name][:] = self._nominal(name)
        for name, values in state["fields"].items():
            self.model_field(name).copy_(values)
        if self._fields:
            self.model_changed()
        self._batch.state[:] = rows
        self.forward()

    def close(self) -> None:
        """Give back the threads and the worlds' memory with the last reference to them."""
        # every tensor is a view that keeps the batch, and so its threads, alive
        self.__dict__.clear()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _keep_engine_quiet() -> None:
    """Turn off MuJoCo's console messages and its MUJOCO_LOG.TXT; warnings are read by world."""
    config = mujoco.MjLogConfig.get()
    config.logto_console = False
    config.logto_file = False
    config.set()


def _live(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor over the engine's array, read-only ones included."""
    with warnings.catch_warnings():
        # Derived arrays are marked read-only, since a write would be lost at the next call;
        # torch has no such mark and warns.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def _world_ids(ids: Tensor | None) -> np.ndarray[Any, Any] | None:
    return None if ids is None else ids.numpy()
