"""Contact forces, and how long each sensed body has been on the ground or in the air."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import torch
from torch import Tensor

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
        # one contiguous block a tick, so that moving the history on is a plain copy
        self._history = torch.zeros((history_length, n, s, 3), device=device)
        self.net_forces_history = self._history.transpose(0, 1)
        """Force that each body receives, world axes, [N, history, S, 3] N, newest first."""

        def ticks() -> Tensor:
            return torch.zeros((n, s), dtype=torch.int32, device=device)

        self.air_ticks = ticks()
        """Ticks that each body has been in the air for, [N, S]; 0 while in contact."""
        self.contact_ticks = ticks()
        """Ticks that each body has been in contact for, [N, S]; 0 while in the air."""
        self.last_air_ticks = ticks()
        """Ticks that each body's last time in the air took, [N, S]; 0 if there was none yet."""

    def body_ids(self, patterns: str | list[str]) -> list[int]:
        """Columns of the bodies that match, in the order of `body_names`."""
        return match_names(patterns, self.body_names, "sensed body")

    def update(self) -> None:
        """Take in the forces of the tick just made."""
        for age in range(len(self._history) - 1, 0, -1):
            self._history[age] = self._history[age - 1]
        # the sensor reads what the body exerts; what it receives is the opposite
        forces = self._physics.sensordata[:, self._columns]
        self._history[0].copy_(forces.reshape(self._history[0].shape)).neg_()
        self.count(torch.linalg.vector_norm(self._history[0], dim=-1) > self.force_threshold)

    def count(self, contact: Tensor) -> None:
        """Carry the times on by one tick in which `contact` [N, S] bool held."""
        touch_down = contact & (self.air_ticks > 0)
        torch.where(touch_down, self.air_ticks, self.last_air_ticks, out=self.last_air_ticks)
        self.contact_ticks.add_(1).mul_(contact)
        self.air_ticks.add_(1).mul_(~contact)

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
        self._history[:, ids] = 0
        for ticks in (self.air_ticks, self.contact_ticks, self.last_air_ticks):
            ticks[ids] = 0

    def state_dict(self) -> dict[str, Any]:
        """Forces and times."""
        return {name: tensor.clone() for name, tensor in self._state().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        for name, tensor in self._state().items():
            tensor.copy_(state[name])

    def _state(self) -> dict[str, Tensor]:
        return {
            "history": self._history,
            "air_ticks": self.air_ticks,
            "contact_ticks": self.contact_ticks,
            "last_air_ticks": self.last_air_ticks,
        }
