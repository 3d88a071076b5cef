"""One world as plain numbers for a drawing: lines, contacts, ground and goals, NumPy throughout.

Where the bodies are is computed for that world alone, from a copy of its state: looking changes
nothing, and costs the same whatever the number of worlds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray

from sim.rotations import matrix_from_quat, quat_multiply, quat_rotate

if TYPE_CHECKING:
    from sim.managers.command import Command
    from sim.scene import Scene
    from sim.step import SteppedEnv
    from sim.terrain.generator import TerrainMap

Floats = NDArray[np.float32]

ROD = 5.0
"""A box that is longer than this times its next side is drawn as a line, else by its edges."""
SHORTEST_LINK = 1e-3
"""m; bodies nearer than this to their parent have no link to it."""
GROUND_REACH, GROUND_STEP = 2.0, 0.1
"""Ground is described so far about the robot, and so finely, m."""
AXIS_LENGTH = 0.1
"""m; of a commanded pose's drawn axes."""

_CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float64)
_EDGES = [
    (i, j)
    for i in range(8)
    for j in range(i + 1, 8)
    if np.abs(_CORNERS[i] - _CORNERS[j]).sum() == 2
]
_SLIDE = int(mujoco.mjtJoint.mjJNT_SLIDE)
_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)
_BOX = int(mujoco.mjtGeom.mjGEOM_BOX)
_SPHERE = int(mujoco.mjtGeom.mjGEOM_SPHERE)
_CAPSULE = int(mujoco.mjtGeom.mjGEOM_CAPSULE)
_CYLINDER = int(mujoco.mjtGeom.mjGEOM_CYLINDER)


class Figure:
    """A robot as lines and balls.

    A line leads from each body to its parent, unless it slides along it. Boxes that are no rods are
    drawn by their edges; bodies that have one, those without children, and those fixed to the world
    are drawn by their shapes too.

    Args:
        scene: The worlds with the robot.
    """

    def __init__(self, scene: Scene) -> None:
        model = self._model = scene.physics.model
        self._data = mujoco.MjData(model)
        self._kinds: list[int] = model.geom_type.tolist()
        geoms, owners, parents = range(model.ngeom), model.geom_bodyid, model.body_parentid.tolist()
        bodies = range(1, model.nbody)
        fixed = {b for b in range(model.nbody) if model.body_weldid[b] == 0}
        leaves = set(bodies) - set(parents)
        boxes = {int(owners[g]) for g in geoms if self._kinds[g] == _BOX and not self._is_rod(g)}
        self._geoms = [g for g in geoms if int(owners[g]) in (boxes | leaves) - fixed]
        slides = {
            int(body)
            for body, kind in zip(model.jnt_bodyid, model.jnt_type, strict=True)
            if kind == _SLIDE
        }
        self._links = [
            (b, parents[b])
            for b in bodies
            if b not in fixed | slides and parents[b] not in boxes | {0}
        ]

        mujoco.mj_kinematics(model, self._data)
        self.scenery = _stacked(self._edges([g for g in geoms if int(owners[g]) in fixed]))
        """Edges of what never moves, [S, 2, 3] m."""
        planes = [g for g in geoms if self._kinds[g] == _PLANE and owners[g] == 0]
        self.floor = float(self._data.geom_xpos[planes[0]][2]) if planes else None
        """Height of the plane that the robot stands on, m; None if there is none."""
        sensed = [model.body(name).id for name in scene.contacts.body_names]
        self.ends = [i for i, body in enumerate(sensed) if body in leaves]
        """Columns of the sensed bodies at the ends of limbs."""
        self._end_bodies = [sensed[i] for i in self.ends]

    def place(self, qpos: NDArray[np.float64]) -> tuple[Floats, Floats, Floats]:
        """Lines [L, 2, 3], balls [K, 4] and ends of limbs [C, 3] in a state, m."""
        data = self._data
        data.qpos[:] = qpos
        mujoco.mj_kinematics(self._model, data)
        links = (data.xpos[[parent, body]] for body, parent in self._links)
        long = (link for link in links if np.linalg.norm(link[1] - link[0]) > SHORTEST_LINK)
        balls = [
            np.append(data.geom_xpos[g], self._model.geom_size[g][0])
            for g in self._geoms
            if self._kinds[g] == _SPHERE
        ]
        return (
            _stacked([*long, *self._edges(self._geoms)]),
            np.array(balls, np.float32).reshape(-1, 4),
            np.array(data.xpos[self._end_bodies], np.float32).reshape(-1, 3),
        )

    def _edges(self, geoms: list[int]) -> Iterator[NDArray[np.float64]]:
        """Lines [2, 3] of these shapes; spheres, planes and height fields have none."""
        for g in geoms:
            size = self._model.geom_size[g]
            if self._kinds[g] in (_CAPSULE, _CYLINDER):
                half = size[1] + (size[0] if self._kinds[g] == _CAPSULE else 0.0)
                yield self._in_world(g, np.array([[0, 0, -half], [0, 0, half]]))
            elif self._kinds[g] == _BOX and self._is_rod(g):
                axis = np.where(size == size.max(), size, 0.0)
                yield self._in_world(g, np.stack((-axis, axis)))
            elif self._kinds[g] == _BOX:
                corners = self._in_world(g, _CORNERS * size)
                yield from (corners[[i, j]] for i, j in _EDGES)

    def _in_world(self, geom: int, points: NDArray[np.float64]) -> NDArray[np.float64]:
        rotation = self._data.geom_xmat[geom].reshape(3, 3)
        return np.asarray(points @ rotation.T + self._data.geom_xpos[geom])

    def _is_rod(self, geom: int) -> bool:
        second, largest = np.sort(self._model.geom_size[geom])[1:]
        return bool(largest > ROD * second)


def describe(
    env: SteppedEnv, figure: Figure, world: int, command: Command | None
) -> dict[str, Any]:
    """Describe a world.

    Args:
        env: The worlds.
        figure: Its robot.
        world: Which one.
        command: What its robot is told, if anything.

    Returns:
        world, seconds, limit, place, position, heading, tilt, is_fixed, view, lines, balls,
        scenery, contact_names, contact_points, contacts, touching, floor, ground, ground_step,
        quantities, velocity, told_velocity, target: numbers, texts and arrays, in m, s and rad.
    """
    scene, robot = env.scene, env.scene.robot
    lines, balls, ends = figure.place(scene.physics.qpos[world].double().cpu().numpy())
    touching = (scene.contacts.contact_ticks[world] > 0).cpu().numpy()
    names = scene.contacts.body_names
    position = _array(robot.root_pos_w[world])
    heading = 0.0 if robot.is_fixed_base else float(robot.heading_w[world])
    up = -float(robot.projected_gravity_b[world, 2])
    told = None if command is None else command.value[world]
    is_velocity = command is not None and command.kind == "velocity"
    is_pose = command is not None and command.kind == "pose"
    terrain = scene.terrain
    return {
        "world": world,
        "seconds": float(env.episode_length[world]) * env.step_dt,
        "limit": env.max_episode_length * env.step_dt,
        "place": "" if terrain is None else _place(terrain, world),
        "position": position,
        "heading": heading,
        "tilt": float(np.arccos(np.clip(up, -1.0, 1.0))),
        "is_fixed": robot.is_fixed_base,
        "view": np.array(robot.description.view, np.float32),
        "lines": lines,
        "balls": balls,
        "scenery": figure.scenery,
        "contact_names": tuple(names[i] for i in figure.ends),
        "contact_points": ends,
        "contacts": touching[figure.ends],
        "touching": tuple(
            name for i, name in enumerate(names) if touching[i] and i not in figure.ends
        ),
        "floor": figure.floor if terrain is None else None,
        "ground": None if terrain is None else ground_about(terrain.map, position, heading),
        "ground_step": GROUND_STEP,
        "quantities": () if command is None else _quantities(command, world),
        "velocity": np.append(
            _array(robot.root_lin_vel_b[world, :2]), _array(robot.root_ang_vel_b[world, 2:])
        ),
        "told_velocity": _array(told[:3]) if told is not None and is_velocity else None,
        "target": _target(env, world, told) if told is not None and is_pose else None,
    }


def ground_about(terrain: TerrainMap, position: Floats, heading: float) -> Floats:
    """Heights of the ground about a point, turned with a heading, [G, G] m; NaN beyond the edge."""
    reach = np.arange(-GROUND_REACH, GROUND_REACH + GROUND_STEP / 2, GROUND_STEP)
    ahead, left = np.meshgrid(reach, reach)
    cos, sin = np.cos(heading), np.sin(heading)
    half_x, half_y = terrain.half_extent
    u = (position[0] + cos * ahead - sin * left + half_x) / terrain.horizontal_scale
    v = (position[1] + sin * ahead + cos * left + half_y) / terrain.horizontal_scale
    last_row, last_column = (size - 1 for size in terrain.heights.shape)
    inside = (u >= 0) & (v >= 0) & (u <= last_column) & (v <= last_row)
    u, v = np.where(inside, u, 0.0), np.where(inside, v, 0.0)
    column, row = (
        np.minimum(u.astype(int), last_column - 1),
        np.minimum(v.astype(int), last_row - 1),
    )
    a, b = u - column, v - row
    h = terrain.heights
    near = h[row, column] * (1 - a) + h[row, column + 1] * a
    far = h[row + 1, column] * (1 - a) + h[row + 1, column + 1] * a
    return np.where(inside, near * (1 - b) + far * b, np.nan).astype(np.float32)


def _place(terrain: Any, world: int) -> str:  # noqa: ANN401 - a Terrain, not imported for its name
    kind = terrain.map.names[int(terrain.kinds[world])]
    return f"{kind}, level {int(terrain.levels[world])}"


def _quantities(command: Command, world: int) -> tuple[tuple[Any, ...], ...]:
    """Label, unit, told, real, least and most of each number that a person can steer."""
    told = command.value[world].tolist()
    real = command.actual()[world].tolist()
    return tuple(
        (axis.label, axis.unit, wanted, is_, axis.low, axis.high)
        for axis, wanted, is_ in zip(command.axes, told, real, strict=False)
    )


def _target(env: SteppedEnv, world: int, told: torch.Tensor) -> Floats:
    """A commanded pose in the world: position and the ends of its axes, [4, 3] m."""
    robot, pose = env.scene.robot, told.cpu()
    root, turn = robot.root_pos_w[world].cpu(), robot.root_quat_w[world].cpu()
    position = root + quat_rotate(turn, pose[:3])
    axes = matrix_from_quat(quat_multiply(turn, pose[3:7])).T * AXIS_LENGTH
    return torch.cat((position[None], position + axes)).numpy().astype(np.float32)


def _array(row: torch.Tensor) -> Floats:
    return row.detach().cpu().numpy().astype(np.float32)


def _stacked(lines: Any) -> Floats:  # noqa: ANN401 - any number of [2, 3] arrays
    return np.array(list(lines), np.float32).reshape(-1, 2, 3)
