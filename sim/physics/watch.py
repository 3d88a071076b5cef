"""What goes wrong in single worlds, noted on the device tick by tick and read when asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import mujoco
from torch import Tensor

from sim.warp_start import wp

# isort: split
import mujoco_warp as mjw

LIMIT = wp.constant(float(mujoco.mjMAXVAL))
"""A value of this size is as bad as one that is not finite (MuJoCo's own limit)."""

QUANTITIES = ("", "qpos", "qvel", "ctrl", "qacc")
"""What may be bad in a world, by the number that stands for it on the device."""

LOST = mjw.OverflowType.CCD | mjw.OverflowType.HFIELD | mjw.OverflowType.CONTACT_MATCH
"""Ways to leave out contacts that more room would not cure."""

Kernel = Callable[..., Any]
kernel = cast(Callable[[Kernel], Kernel], wp.kernel(enable_backward=False))


@kernel
def find_bad_state(
    qpos: wp.array2d(dtype=wp.float32),  # type: ignore[valid-type]
    qvel: wp.array2d(dtype=wp.float32),  # type: ignore[valid-type]
    ctrl: wp.array2d(dtype=wp.float32),  # type: ignore[valid-type]
    bad: wp.array(dtype=wp.int32),  # type: ignore[valid-type]
) -> None:
    """Note the first bad quantity of a world before a tick."""
    world = wp.tid()
    found = wp.int32(0)  # of Warp's own type, or the loops could not change it
    # backwards, so that the first quantity has the last word; NaN fails every comparison
    for i in range(ctrl.shape[1]):
        if not (wp.abs(ctrl[world, i]) < LIMIT):
            found = 3
    for i in range(qvel.shape[1]):
        if not (wp.abs(qvel[world, i]) < LIMIT):
            found = 2
    for i in range(qpos.shape[1]):
        if not (wp.abs(qpos[world, i]) < LIMIT):
            found = 1
    if bad[world] == 0:
        bad[world] = found


@kernel
def find_bad_outcome(
    qacc: wp.array2d(dtype=wp.float32),  # type: ignore[valid-type]
    constraints: wp.array(dtype=wp.int32),  # type: ignore[valid-type]
    contacts: wp.array(dtype=wp.int32),  # type: ignore[valid-type]
    pairs: wp.array(dtype=wp.int32),  # type: ignore[valid-type]
    overflow: wp.array(dtype=wp.int32),  # type: ignore[valid-type]
    bad: wp.array(dtype=wp.int32),  # type: ignore[valid-type]
    peaks: wp.array(dtype=wp.int32),  # type: ignore[valid-type]
) -> None:
    """Note a bad acceleration after a tick, and how much room the tick needed."""
    world = wp.tid()
    for i in range(qacc.shape[1]):
        if bad[world] == 0 and not (wp.abs(qacc[world, i]) < LIMIT):
            bad[world] = 4
    wp.atomic_max(peaks, 0, wp.max(contacts[0], pairs[0]))
    wp.atomic_max(peaks, 1, constraints[world])
    wp.atomic_or(peaks, 2, overflow[world])


class Watch:
    """Notes of N worlds.

    Args:
        num_worlds: N.
        device: Warp's device; must be its current one.
    """

    def __init__(self, num_worlds: int, device: Any) -> None:  # noqa: ANN401 - a Warp device
        self._num_worlds = num_worlds
        self._bad_array = wp.zeros(num_worlds, dtype=wp.int32, device=device)
        self._peaks_array = wp.zeros(3, dtype=wp.int32, device=device)
        self._bad = wp.to_torch(self._bad_array)
        self._peaks = wp.to_torch(self._peaks_array)
        self._told = self._bad.clone()

    def before_tick(self, data: Any) -> None:  # noqa: ANN401 - MuJoCo Warp's Data
        """Look at the state that the tick starts from."""
        wp.launch(
            find_bad_state,
            dim=self._num_worlds,
            inputs=[data.qpos, data.qvel, data.ctrl, self._bad_array],
        )

    def after_tick(self, data: Any) -> None:  # noqa: ANN401 - MuJoCo Warp's Data
        """Look at what the tick made."""
        wp.launch(
            find_bad_outcome,
            dim=self._num_worlds,
            inputs=[
                data.qacc,
                data.nefc,
                data.nacon,
                data.ncollision,
                data.overflow,
                self._bad_array,
                self._peaks_array,
            ],
        )

    def take_bad_worlds(self) -> Tensor:
        """Worlds that went bad since the last call, [N] bool; nothing waits for the device."""
        self._told.copy_(self._bad)
        self._bad.zero_()
        return cast(Tensor, self._told > 0)

    def quantity(self, world: int) -> str:
        """What was first bad in a world of the last `take_bad_worlds`."""
        return QUANTITIES[int(self._told[world])]

    def forgive(self, worlds: Tensor | slice) -> None:
        """Forget what was noted of these worlds."""
        self._bad[worlds] = 0

    def take_peaks(self) -> tuple[int, int, int]:
        """What the ticks since the last call needed at most.

        Returns:
            Contacts of all worlds, constraints of a world, and bits of `LOST`.
        """
        contacts, constraints, overflow = self._peaks.tolist()
        self._peaks.zero_()
        return contacts, constraints, overflow & int(LOST)
