"""One world's robot as plain numbers, for a drawing. Free of torch.

An env may offer `pose(world)`, which returns the fields of a `RobotPose` by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float32]"


class Quantity(NamedTuple):
    """Something that the robot is told, beside what it does."""

    label: str
    unit: str
    told: float
    real: float
    low: float
    """The least that it was told in training."""
    high: float
    """The most."""


@dataclass(frozen=True, slots=True)
class RobotPose:
    """Where a robot is and what it is about. Lengths in m, angles in rad, axes of the world."""

    world: int
    """Index of the world."""
    seconds: float
    """Age of the running episode, s."""
    limit: float
    """Time limit of an episode, s."""
    place: str
    """On what kind of ground the world is; empty where there is only one."""
    position: Floats
    """Of the base, [3]."""
    heading: float
    """Yaw of the base's x axis."""
    tilt: float
    """Angle of the base's z axis from the vertical."""
    is_fixed: bool
    """Whether the base is fixed to the ground."""
    view: Floats
    """Lowest and highest corner of what a drawing shows, [2, 3]: for a fixed base in the world, for
    a free one about the point of the ground below it, turned with its heading."""
    lines: Floats
    """The robot's links and edges, from end to end, [L, 2, 3]."""
    balls: Floats
    """Its round parts: centre and radius, [K, 4]."""
    scenery: Floats
    """Edges of what never moves, [S, 2, 3]."""
    contact_names: tuple[str, ...]
    """The C bodies at the ends of its limbs whose contacts are sensed."""
    contact_points: Floats
    """Where they are, [C, 3]."""
    contacts: NDArray[np.bool_]
    """Whether each touches something, [C]."""
    touching: tuple[str, ...]
    """Other sensed bodies that touch something."""
    floor: float | None
    """Height of flat ground; None where there is none, or it is not flat."""
    ground: Floats | None
    """Heights of generated ground about the base, turned with its heading, [G, G]: rows from right
    to left, columns from behind to ahead. NaN beyond its edge."""
    ground_step: float
    """Distance of neighbouring heights."""
    quantities: tuple[Quantity, ...]
    """What the robot is told, number by number, in the order in which a person steers it."""
    velocity: Floats
    """Of the base, seen from it: forward, left (m/s) and turning rate (rad/s), [3]."""
    told_velocity: Floats | None
    """The same as commanded, [3]; None where no velocity is."""
    target: Floats | None
    """A commanded pose: position, then the ends of its three axes of 0.1 m, [4, 3]; None where no
    pose is commanded."""


class Choice(StrEnum):
    """Which world's robot a person looks at."""

    CHOSEN = "chosen"
    """The one that was named."""
    WORST = "worst"
    """The one with the least reward a step in its running episode, until that ends."""
    BEST = "best"
    """The one with the most."""


@dataclass(frozen=True, slots=True)
class RobotRequest:
    """What a person wants to see of the worlds while they train."""

    choice: Choice = Choice.WORST
    world: int = 0
    """Index of the chosen world; one beyond the last is taken for the last."""


@runtime_checkable
class Posing(Protocol):
    """An env that can describe one of its worlds for a drawing."""

    def pose(self, world: int) -> Mapping[str, Any]:
        """Return the fields of `RobotPose`, by name."""
        ...


@runtime_checkable
class Steerable(Protocol):
    """An env whose robots can be told what to do by a person."""

    def hold_commands(self) -> None:
        """From now on goals change with episodes alone, and by `steer` and `redraw_commands`."""
        ...

    def steer(self, world: int, values: Sequence[float]) -> None:
        """Tell one world's robot what to do, in the order of `RobotPose.quantities`."""
        ...

    def redraw_commands(self, world: int) -> None:
        """Draw a new goal for one world."""
        ...


def pose_of(env: object, world: int) -> RobotPose | None:
    """Return one world's pose, or None from an env that has no picture of its worlds."""
    if not isinstance(env, Posing):
        return None
    fields = dict(env.pose(world))
    fields["quantities"] = tuple(Quantity(*numbers) for numbers in fields["quantities"])
    return RobotPose(**fields)
