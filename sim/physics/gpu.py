"""Physics on a GPU: MuJoCo Warp, a tick as one launch."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import mujoco
import torch
from torch import Tensor

from sim.physics.base import BodiesWhenRead, Listener, Nobody, PhysicsError
from sim.physics.capacity import Capacity, colliding_pairs, initial_capacity
from sim.physics.compiling import telling_of_kernels
from sim.physics.graph import Recorded, Stream
from sim.physics.self_test import compare_with_mujoco
from sim.physics.watch import Watch
from sim.warp_start import wp

# isort: split
import mujoco_warp as mjw

CAPACITY_CHECK_TICKS = 100
"""Ticks between two looks at the room for contacts: one transfer of some bytes."""

STATE = ("qpos", "qvel", "act", "ctrl", "qacc_warmstart", "time")
"""What a world's next tick starts from."""

CONSTANTS = (
    "body_subtreemass",
    "body_invweight0",
    "dof_invweight0",
    "tendon_invweight0",
    "tendon_length0",
    "actuator_acc0",
    "eq_data",
    "cam_pos0",
    "cam_poscom0",
    "cam_mat0",
    "light_pos0",
    "light_poscom0",
    "light_dir0",
    "geom_size",
    "geom_aabb",
    "geom_rbound",
)
"""Model fields that follow from others; each needs a value per world once one of those has."""

WITHOUT_CONSTANTS = {
    "geom_friction",
    "geom_solref",
    "geom_solimp",
    "geom_solmix",
    "geom_margin",
    "geom_gap",
    "jnt_range",
    "jnt_solref",
    "jnt_solimp",
    "dof_frictionloss",
    "dof_damping",
    "actuator_gainprm",
    "actuator_biasprm",
    "actuator_ctrlrange",
    "actuator_forcerange",
}
"""Model fields from which no constant follows."""


class GpuPhysics(BodiesWhenRead):
    """`sim.physics.base.Physics` on MuJoCo Warp.

    Tensors are float32 views of Warp's arrays; nothing is copied. The default state is the model's
    first keyframe, or its zero state where it has none. A tick is one launch of a CUDA graph, on
    the stream that torch is using, so that actuator models in torch may run between two ticks; no
    call waits for the device, but a look at the room for contacts every `CAPACITY_CHECK_TICKS`.
    What did not fit until then was left out; more room is made, and the listener told.

    All of an engine's calls must come from one thread. On Warp's CPU device everything works alike,
    only slowly.

    Args:
        model: The compiled model; its options (time step, solver iterations) hold for all worlds.
        num_worlds: N.
        device: A CUDA device with its number, or the CPU.
        capacity: Room for contacts and constraints; by default as much as the model calls for.
        listener: Told of the compilation of kernels, of growing room, and of a failed recording.

    Raises:
        PhysicsError: On this device the worlds do not move as MuJoCo moves one.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        num_worlds: int,
        device: torch.device,
        capacity: Capacity | None = None,
        listener: Listener | None = None,
    ) -> None:
        if device.type == "cuda":
            torch.cuda.set_device(device)  # of this thread, lest something wake another GPU
        self.model = model
        self.num_worlds = num_worlds
        self.device = device
        self.dt = float(model.opt.timestep)
        self.capacity = capacity or initial_capacity(model)
        """Room for contacts and constraints."""
        self._listener = listener or Nobody()
        self._stream = Stream(device)
        self._tick = Recorded(self._stream, self._launch_tick, self._recording_failed)
        self._refresh = Recorded(self._stream, self._launch_refresh, self._recording_failed)
        self._ticks_to_check = CAPACITY_CHECK_TICKS
        self._fields: dict[str, Tensor] = {}

        self._default = mujoco.MjData(model)
        if model.nkey:
            mujoco.mj_resetDataKeyframe(model, self._default, 0)
        mujoco.mj_forward(model, self._default)
        with self._stream.launching():
            self._model = mjw.put_model(model)
            self._model.opt.warn_overflow = 0  # it would print, to descriptor 1
            if device.type == "cuda":
                self._model.opt.graph_conditional = wp.is_conditional_graph_supported()
            self._data = self._allocate()
            self._watch = Watch(num_worlds, self._stream.device)
        self._state = {name: wp.to_torch(getattr(self._data, name)) for name in STATE}
        self._default_state = {name: self._nominal(getattr(self._default, name)) for name in STATE}
        self._default_state["qacc_warmstart"].zero_()

        self.qpos = self._state["qpos"]
        self.qvel = self._state["qvel"]
        self.ctrl = self._state["ctrl"]
        self.sensordata = wp.to_torch(self._data.sensordata)
        self._body_pos: Tensor = wp.to_torch(self._data.xpos)
        self._body_rotation: Tensor = wp.to_torch(self._data.xmat)

        self._compile()
        self._test()
        self.reset()

    def tick(self, last: bool) -> None:
        """Advance all worlds by dt; see `Physics.tick`."""
        self._tick()
        self._bodies_outdated = True
        self._ticks_to_check -= 1
        if self._ticks_to_check <= 0 and last:
            self.check_capacity()

    def _compute_bodies(self) -> None:
        self._refresh()

    def reset(self, ids: Tensor | None = None) -> None:
        """Put the worlds `ids` to the default state; see `Physics.reset`."""
        rows = slice(None) if ids is None else ids
        for name, tensor in self._state.items():
            tensor[rows] = self._default_state[name]
        self.sensordata[rows] = 0
        self._watch.forgive(rows)

    def model_field(self, name: str) -> Tensor:
        """Give a model field a value per world; see `Physics.model_field`."""
        if name not in self._fields:
            if not self._may_differ(name):
                raise ValueError(f"{name!r} is no model field that can differ between worlds")
            constants = () if name in WITHOUT_CONSTANTS else CONSTANTS
            self._stream.synchronize()
            with self._stream.launching():
                for field in dict.fromkeys((name, *constants)):
                    self._expand(field)
            self._record_anew()
            self._fields[name] = wp.to_torch(getattr(self._model, name))
        return self._fields[name]

    def present_field(self, name: str) -> Tensor:
        """A model field for reading: [N, ...] if it differs between worlds, else [1, ...]."""
        if name in self._fields:
            return self._fields[name]
        shared: Tensor = wp.to_torch(getattr(self._model, name))
        return shared

    def model_changed(self) -> None:
        """Recompute the constants that follow from model fields after they were written."""
        if self._fields.keys() - WITHOUT_CONSTANTS:
            with self._stream.launching():
                mjw.set_const(self._model, self._data)

    def bad_worlds(self) -> Tensor:
        """Worlds that had a value that is not finite, or absurd, since the last call."""
        return self._watch.take_bad_worlds()

    def bad_quantity(self, world: int) -> str:
        """Name of what was first found bad in a world that `bad_worlds` named."""
        return self._watch.quantity(world)

    def check_capacity(self) -> bool:
        """Make more room if contacts or constraints did not fit since the last look.

        Returns:
            Whether there is more room now.
        """
        self._ticks_to_check = CAPACITY_CHECK_TICKS
        contacts, constraints, lost = self._watch.take_peaks()
        needed = Capacity(-(-contacts // self.num_worlds), constraints)
        before, grown = self.capacity, self.capacity.grown_to(*needed)
        if grown != before:
            grown = Capacity(*map(max, grown, initial_capacity(self.model)))
            self._listener.notice(
                f"contacts or constraints did not fit and were left out for up to "
                f"{CAPACITY_CHECK_TICKS} ticks: a world needed room for {needed.contacts} contacts "
                f"and {needed.constraints} constraints, it had {before.contacts} and "
                f"{before.constraints}; now it has {grown.contacts} and {grown.constraints}"
            )
            self._grow(grown)
        elif lost:
            names = " and ".join(flag.name for flag in mjw.OverflowType if flag & lost)
            self._listener.notice(f"some contacts were left out: {names} limits of the engine")
        return grown != before

    def state_dict(self) -> dict[str, Any]:
        """State, sensor readings and per-world fields."""
        return {
            "state": {name: tensor.clone() for name, tensor in self._state.items()},
            "sensordata": self.sensordata.clone(),
            "fields": {name: field.clone() for name, field in self._fields.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned; bit for bit on the CPU."""
        saved = state["state"]
        if not isinstance(saved, Mapping):
            raise ValueError("the saved physics is that of the CPU's engine")
        for name, tensor in self._state.items():
            if saved[name].shape != tensor.shape:
                raise ValueError(
                    f"the saved physics has {name} of {list(saved[name].shape)}, "
                    f"this one has {list(tensor.shape)}"
                )
        for name in self._fields.keys() - state["fields"].keys():
            self._fields[name][:] = self._nominal(getattr(self.model, name))
        for name, values in state["fields"].items():
            self.model_field(name).copy_(values)
        if self._fields:
            self.model_changed()
        for name, tensor in self._state.items():
            tensor.copy_(saved[name])
        self.forward()
        self.sensordata.copy_(state["sensordata"])
        self._watch.forgive(slice(None))

    def close(self) -> None:
        """Give back the worlds' memory with the last reference to it."""
        self._stream.synchronize()
        self.__dict__.clear()

    # What is recorded.

    def _launch_tick(self) -> None:
        self._watch.before_tick(self._data)
        mjw.step(self._model, self._data)
        self._watch.after_tick(self._data)

    def _launch_refresh(self) -> None:
        """What depends on positions and velocities; not the forces, which are the last tick's."""
        model, data, stages = self._model, self._data, self.model.sensor_needstage
        mjw.fwd_kinematics(model, data)
        if (stages == mujoco.mjtStage.mjSTAGE_POS).any():
            mjw.transmission(model, data)
            mjw.sensor_pos(model, data)
        if (stages == mujoco.mjtStage.mjSTAGE_VEL).any():
            mjw.fwd_velocity(model, data)
            mjw.sensor_vel(model, data)

    def _recording_failed(self, why: str) -> None:
        self._model.opt.graph_conditional = False  # else every solver iteration waits for the GPU
        self._listener.notice(
            f"the physics could not be recorded as a graph and runs slower, kernel by kernel: {why}"
        )

    def _record_anew(self) -> None:
        self._tick.forget()
        self._refresh.forget()

    def _compile(self) -> None:
        """Launch everything once, so that all kernels are there; the state stays as it was."""
        kept = {name: tensor.clone() for name, tensor in self._state.items()}
        sensordata = self.sensordata.clone()
        with telling_of_kernels(self._listener.progress):
            self._tick.launch_one_by_one()
            self._refresh.launch_one_by_one()
            with self._stream.launching():
                mjw.set_const(self._model, self._data)
            self._stream.synchronize()
        for name, tensor in self._state.items():
            tensor.copy_(kept[name])
        self.sensordata.copy_(sensordata)
        self._watch.forgive(slice(None))
        self._watch.take_peaks()

    def _test(self) -> None:
        """Compare with MuJoCo; what had no room is no reason to give up."""
        try:
            compare_with_mujoco(self, self._state["qacc_warmstart"])
        except PhysicsError:
            if not self.check_capacity():
                raise
            self.reset()
            self._test()

    # Memory.

    def _allocate(self) -> Any:  # noqa: ANN401 - MuJoCo Warp's Data
        return mjw.put_data(
            self.model,
            self._default,
            nworld=self.num_worlds,
            nconmax=self.capacity.contacts,
            # of pairs without a formula, whose search takes far more memory than a contact
            nccdmax=min(len(colliding_pairs(self.model)), self.capacity.contacts),
            njmax=self.capacity.constraints,
        )

    def _grow(self, capacity: Capacity) -> None:
        """Make more room; every array whose size stays is kept, and so is every tensor."""
        self.capacity = capacity
        self._stream.synchronize()
        self._record_anew()
        with self._stream.launching():
            data = self._allocate()
        for field in dataclasses.fields(data):
            old, new = getattr(self._data, field.name), getattr(data, field.name)
            if isinstance(new, wp.array) and old.shape == new.shape:
                setattr(data, field.name, old)
        self._data = data
        self._compile()

    def _may_differ(self, name: str) -> bool:
        spec = {field.name: field.type for field in dataclasses.fields(mjw.Model)}.get(name)
        return getattr(spec, "shape", ("",))[:1] == ("*",)

    def _expand(self, name: str) -> None:
        """Give a field of Warp's model a row per world; it is never replaced again."""
        shared = getattr(self._model, name)
        if shared.shape[0] == self.num_worlds or 0 in shared.shape:
            return
        rows = wp.to_torch(shared).expand(self.num_worlds, *wp.to_torch(shared).shape[1:])
        own = wp.empty((self.num_worlds, *shared.shape[1:]), dtype=shared.dtype)
        wp.to_torch(own).copy_(rows)
        own._is_batched = True
        setattr(self._model, name, own)

    def _nominal(self, value: Any) -> Tensor:  # noqa: ANN401 - array or number
        return torch.as_tensor(value, dtype=torch.float32).clone().to(self.device)
