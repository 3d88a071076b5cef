"""Contact forces, and how long each sensed body has been on the ground or in the air."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import torch
from torch import Tensor

from sim.arrays import Array, quick
from sim.names import match_names
from sim.physics.base import Physics

FORCE_THRESHOLD = 1.0
"""Newtons of net force above which a body counts as in contact (as Isaac Lab on PhysX)."""


class Contacts:
    """Net contact forces of the sensed bodies, and their air and contact times.

    Two deliberate differences from Isaac Lab. Times are counted in whole physics ticks, where
    float32 sums of seconds lose touch-downs to rounding. And an air time is the number of ticks
    without contact, where Isaac Lab adds the tick of the touch-down (5 ms more on the Go2).

    Args:
        physics: The engine; its model's `contact` sensors say which bodies are sensed.
        history_length: Ticks of force that are kept; no contact is invisible to a policy that
            acts every so many ticks or fewer.
    """

    def __init__(self, physics: Physics, history_length: int) -> None:
        self._physics = physics
        model = physics.model
        sensors = [
            model.sensor(i)
            for i in range(model.nsensor)
            if model.sensor_type[i] == mujoco.mjtSensor.mjSENS_CONTACT
        ]
        self.body_names = tuple(sensor.name for sensor in sensors)
        """The S sensed bodies."""
        self.force_threshold = FORCE_THRESHOLD
        """Newtons above which a body counts as in contact."""
        self.tick_dt = physics.dt
        """Seconds of one tick."""
        first = int(sensors[0].adr[0]) if sensors else 0
        self._columns = slice(first, first + 3 * len(sensors))

        n, s, device = physics.num_worlds, len(sensors), physics.device
        self._length = history_length
        # one block a tick, newest first; the history is a window that moves towards the front
        self._tape = torch.zeros((2 * history_length, n, s, 3), device=device)
        self._forces = quick(self._tape)
        self._rows = self._forces.reshape(2 * history_length, n, 3 * s)
        self._newest = history_length
        self._uncounted = 0

        self._ticks = torch.zeros((3, n, s), dtype=torch.int64, device=device)
        self.air_ticks, self.contact_ticks, self.last_air_ticks = self._ticks.unbind()
        """Ticks that each body has been in the air for (0 while in contact), has been in contact
        for (0 while in the air), and that its last time in the air took (0 if there was none yet),
        [N, S] each."""
        self._clocks = tuple(quick(ticks) for ticks in self._ticks)

    def body_ids(self, patterns: str | list[str]) -> list[int]:
        """Columns of the bodies that match, in the order of `body_names`."""
        return match_names(patterns, self.body_names, "sensed body")

    @property
    def net_forces_history(self) -> Tensor:
        """Force that each body receives, world axes, [N, history, S, 3] N, newest first."""
        self.update()
        return self._history.transpose(0, 1)

    @property
    def _history(self) -> Tensor:
        return self._tape[self._newest : self._newest + self._length]

    def record(self) -> None:
        """Take in the forces of the tick just made; the times follow at `update`."""
        if self._newest == 0:
            self.update()
            self._forces[self._length :] = self._forces[: self._length]
            self._newest = self._length
        self._newest -= 1
        self._uncounted += 1
        self._rows[self._newest] = quick(self._physics.sensordata)[:, self._columns]

    def update(self) -> None:
        """Take in what was recorded since the last update, and carry the times on.

        Not at every tick: right after the engine ran, each operation finds the caches cold.
        """
        if not self._uncounted:
            return
        recorded = slice(self._newest, self._newest + self._uncounted)
        self._uncounted = 0
        # the sensor reads what the body exerts; what it receives is the opposite
        self._rows[recorded] *= -1
        squares = self._forces[recorded] * self._forces[recorded]
        force = squares[..., 0] + squares[..., 1] + squares[..., 2]
        for contact in reversed(list(force > self.force_threshold**2)):
            self._count(contact)

    def count(self, contact: Tensor) -> None:
        """Carry the times on by one tick in which `contact` [N, S] bool held."""
        self._count(quick(contact))

    def _count(self, contact: Array) -> None:
        air_ticks, contact_ticks, last_air_ticks = self._clocks
        in_contact = contact * 1
        touch_down = in_contact * (air_ticks > 0)
        last_air_ticks += touch_down * (air_ticks - last_air_ticks)
        contact_ticks += 1
        contact_ticks *= in_contact
        air_ticks += 1
        air_ticks *= 1 - in_contact

    def first_contact(self, step_ticks: int) -> Tensor:
        """Bodies that touched down within the last `step_ticks` ticks and still touch.

        A body that has touched ever since its reset did not touch down.

        Returns:
            [N, S] bool.
        """
        since = self.contact_ticks
        return (since > 0) & (since <= step_ticks) & (self.last_air_ticks > 0)

    @property
    def current_air_time(self) -> Tensor:
        """Seconds in the air so far, [N, S] float32."""
        return self.air_ticks * self.tick_dt

    @property
    def current_contact_time(self) -> Tensor:
        """Seconds in contact so far, [N, S] float32."""
        return self.contact_ticks * self.tick_dt

    @property
    def last_air_time(self) -> Tensor:
        """Seconds that the last time in the air took, [N, S] float32."""
        return self.last_air_ticks * self.tick_dt

    def reset(self, ids: Tensor) -> None:
        """Zero the forces and times of the worlds `ids`."""
        self.update()
        self._history[:, ids] = 0
        self._ticks[:, ids] = 0

    def state_dict(self) -> dict[str, Any]:
        """Forces and times."""
        self.update()
        return {name: tensor.clone() for name, tensor in self._state().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        for name, tensor in self._state().items():
            tensor.copy_(state[name])
        self._uncounted = 0

    def _state(self) -> dict[str, Tensor]:
        return {
            "history": self._history,
            "air_ticks": self.air_ticks,
            "contact_ticks": self.contact_ticks,
            "last_air_ticks": self.last_air_ticks,
        }
