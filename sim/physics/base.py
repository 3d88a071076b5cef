"""What the worlds ask of a physics engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import mujoco
    import torch
    from torch import Tensor


class PhysicsError(RuntimeError):
    """An engine cannot be trusted, or cannot go on; says why."""


class BrokenWorldError(ArithmeticError):
    """Worlds went bad, and the settings let none begin anew for that.

    Args:
        broken_worlds: number of each such world to what was first found bad in it; not empty.
        step: env steps since the env was made.

    Attributes:
        broken_worlds: as given.
    """

    def __init__(self, broken_worlds: Mapping[int, str], step: int) -> None:
        self.broken_worlds = dict(broken_worlds)
        (world, quantity), *others = self.broken_worlds.items()
        more = f", and {len(others)} more worlds" if others else ""
        super().__init__(
            f"world {world}{more} went bad at step {step}: its {quantity} was not finite or out of "
            "bounds, and env.nan_guard is off"
        )


class Listener(Protocol):
    """Who is told what an engine is doing; may be called from another thread."""

    def progress(self, text: str) -> None:
        """What is being waited for now; takes the place of what was said before.

        May raise what ends the waiting, where it is called from the thread that waits.
        """
        ...

    def notice(self, text: str) -> None:
        """A sentence that a person should be able to read later too."""
        ...


class Nobody:
    """A `Listener` that does not listen."""

    def progress(self, text: str) -> None:
        """Forget it."""

    def notice(self, text: str) -> None:
        """Forget it."""


class BodiesWhenRead:
    """The half of an engine that knows where the bodies are, for those who read it."""

    _body_pos: Tensor
    _body_rotation: Tensor
    _bodies_outdated = True

    @property
    def body_pos(self) -> Tensor:
        """See `Physics.body_pos`."""
        self._bring_bodies_up_to_date()
        return self._body_pos

    @property
    def body_rotation(self) -> Tensor:
        """See `Physics.body_rotation`."""
        self._bring_bodies_up_to_date()
        return self._body_rotation

    def forward(self, ids: Tensor | None = None) -> None:
        """See `Physics.forward`."""
        self._bodies_outdated = True

    def _bring_bodies_up_to_date(self) -> None:
        if self._bodies_outdated:
            self._compute_bodies()
            self._bodies_outdated = False

    def _compute_bodies(self) -> None:
        """Write `_body_pos` and `_body_rotation` of all worlds; an engine says how."""
        raise NotImplementedError


class Physics(Protocol):
    """N worlds of one model, advanced together, tick by tick.

    The state tensors are live: what is written into them is the world's state at the next call.
    The derived tensors are live for reading. Lengths in m, angles in rad, quaternions wxyz.
    """

    num_worlds: int
    """N."""
    device: torch.device
    """Where all tensors live."""
    dt: float
    """Seconds of one tick."""
    model: mujoco.MjModel
    """The model that every world starts from; its numbers are nominal."""

    qpos: Tensor
    """Generalised positions, [N, nq]; state."""
    qvel: Tensor
    """Generalised velocities, [N, nv]; state."""
    ctrl: Tensor
    """Actuator inputs, [N, nu]; state."""
    sensordata: Tensor
    """Sensor readings, [N, nsensordata]; derived. Forces are those of the tick just made."""

    @property
    def body_pos(self) -> Tensor:
        """World position of every body's frame, [N, nbody, 3]; derived, computed when read."""
        ...

    @property
    def body_rotation(self) -> Tensor:
        """World orientation of every body's frame, matrices [N, nbody, 3, 3]; as `body_pos`."""
        ...

    def tick(self, last: bool) -> None:
        """Advance all worlds by dt; `last` says that the state is looked at before the next one.

        Sensed forces belong to the tick just made. Where the bodies are is computed only for
        those who read it: most tasks need the state alone, and it takes an eighth of a step.
        """
        ...

    def forward(self, ids: Tensor | None = None) -> None:
        """Have what was written into the state of the worlds `ids` (None: all) seen by readers."""
        ...

    def reset(self, ids: Tensor | None = None) -> None:
        """Put the worlds `ids` (sorted, None: all) to the default state.

        Time, inputs and the solver's warm start are cleared too. Derived tensors follow at the
        next `forward` or `tick`.
        """
        ...

    def model_field(self, name: str) -> Tensor:
        """Give a model field (`body_mass`, ...) a value per world; return them, [N, ...], live.

        Call `model_changed` after writing.

        Raises:
            ValueError: The model has no such field, or it cannot differ between worlds.
        """
        ...

    def present_field(self, name: str) -> Tensor:
        """A model field for reading: [N, ...] if it differs between worlds, else [1, ...]."""
        ...

    def model_changed(self) -> None:
        """Recompute the constants that follow from model fields after they were written."""
        ...

    def bad_worlds(self) -> Tensor:
        """Worlds that the engine warned of, reset by itself or failed on since the last call.

        Returns:
            [N] bool.
        """
        ...

    def bad_quantity(self, world: int) -> str:
        """Name of what was first found bad in a world that `bad_worlds` named."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """State, warm start and per-world model fields, for an exact continuation."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned.

        Raises:
            ValueError: It belongs to another model or another number of worlds.
        """
        ...

    def close(self) -> None:
        """Give back threads and memory; the tensors must not be used afterwards."""
        ...
