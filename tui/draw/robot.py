"""A robot in the terminal: seen from its right, from above, and in numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trainer.pose import RobotPose
from tui.draw.canvas import Canvas
from tui.draw.numbers import known
from tui.draw.spans import Charset, Line, Role, Span, block, fit

Floats = NDArray[np.float64]

NO_POSE = "this env has no picture of its worlds"
SECONDS_AHEAD = 0.5
"""An arrow reaches where its velocity would lead in so many seconds."""
TILE = 0.5
"""m; the ground is marked so often, at places that stay where they are while the robot walks."""
CONTOUR = 0.05
"""m; least height between two contour lines."""
FOOTPRINT = 0.3
"""m; the ground about the robot whose mean height the view keeps level."""
FAR = 3
"""Of what lies on the far side one dot in so many is drawn."""
ARC_RADII = (0.42, 0.34)
"""m; of the arcs that show how fast it turns, as told and in truth."""


class _View:
    """From the world to a canvas: the robot looks to the right, the scale is the same all over."""

    def __init__(self, pose: RobotPose, canvas: Canvas, upward: int) -> None:
        self._axes = [0, upward]
        turn = 0.0 if pose.is_fixed else pose.heading
        cos, sin = math.cos(turn), math.sin(turn)
        self._turn = np.array([[cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]])
        self.origin = np.zeros(3) if pose.is_fixed else ground_below(pose)
        low, high = np.asarray(pose.view, np.float64)[:, self._axes]
        width, height = canvas.size
        self.scale = max(
            min((width - 1) / (high[0] - low[0]), (height - 1) / (high[1] - low[1])), 0
        )
        """Dots a metre."""
        middle = (low + high) / 2
        if upward == 2:  # the ground stays at the bottom of a view that is higher than needed
            middle[1] = low[1] + (height - 1) / 2 / max(self.scale, 1e-9)
        self._middle = middle
        self._centre = np.array([(width - 1) / 2, (height - 1) / 2])

    def turned(self, points: NDArray[np.floating]) -> Floats:
        """World points [..., 3] as the view has them: ahead, left, up, m."""
        return np.asarray((np.asarray(points, np.float64) - self.origin) @ self._turn.T)

    def dots(self, turned: Floats) -> Floats:
        """Dots [..., 2] of turned points [..., 3]."""
        flat = (turned[..., self._axes] - self._middle) * self.scale
        return np.asarray(self._centre + flat * (1.0, -1.0))

    def __call__(self, points: NDArray[np.floating]) -> Floats:
        """Dots [..., 2] of world points [..., 3]."""
        return self.dots(self.turned(points))


def ground_below(pose: RobotPose) -> Floats:
    """The point of the ground below the robot, its height a mean over the footprint, [3] m."""
    point = np.array(pose.position, np.float64)
    if pose.ground is not None:
        half = round(FOOTPRINT / pose.ground_step)
        middle = len(pose.ground) // 2
        near = pose.ground[middle - half : middle + half + 1, middle - half : middle + half + 1]
        point[2] = near[np.isfinite(near)].mean() if np.isfinite(near).any() else 0.0
    elif pose.floor is not None:
        point[2] = pose.floor
    else:
        point[2] = 0.0
    return point


def side_view(
    pose: RobotPose, width: int, height: int, charset: Charset = Charset.BRAILLE
) -> list[Line]:
    """Draw the robot from its right: it looks to the right, its left side is drawn in dots.

    Below it is the ground, with marks that stay where they are. A foot that touches it is a full
    disc.

    Returns:
        `height` lines of `width` cells.
    """
    canvas = Canvas(width, height, charset)
    view = _View(pose, canvas, upward=2)
    _draw_profile(canvas, view, pose)
    canvas.lines(view(pose.scenery), Role.GUIDE)
    _draw_robot(canvas, view, pose, depth=1)
    _draw_target(canvas, view, pose)
    return _finished(canvas, width, height)


def top_view(
    pose: RobotPose,
    width: int,
    height: int,
    charset: Charset = Charset.BRAILLE,
    trail: NDArray[np.floating] | None = None,
) -> list[Line]:
    """Draw the robot from above: ahead is right. Ground that rises has contour lines.

    A dotted arrow is the velocity that it is told, a full one its own; arcs about it show in the
    same way how fast it turns.

    Args:
        pose: the robot.
        width: cells.
        height: lines.
        charset: what the font can show.
        trail: where its base was before, [P, 3] m.

    Returns:
        `height` lines of `width` cells.
    """
    canvas = Canvas(width, height, charset)
    view = _View(pose, canvas, upward=1)
    _draw_ground(canvas, view, pose)
    canvas.lines(view(pose.scenery), Role.GUIDE)
    if trail is not None and len(trail):
        canvas.dots(view(trail), Role.TREND)
    _draw_robot(canvas, view, pose, depth=2)
    _draw_target(canvas, view, pose)
    if pose.told_velocity is not None:
        _draw_velocity(canvas, view, pose, pose.told_velocity, ARC_RADII[0], Role.WARNING, 2)
        _draw_velocity(canvas, view, pose, pose.velocity, ARC_RADII[1], Role.SUCCESS, 1)
    return _finished(canvas, width, height)


def readings(pose: RobotPose, width: int, charset: Charset = Charset.BRAILLE) -> list[Line]:
    """Say in numbers what the robot is told and what it does; as many lines as there is to say."""
    lines: list[Line] = []
    if pose.quantities:
        lines.append((Span(f"{'':<9}{'told':>7} {'real':>7}", Role.MUTED),))
        lines += [
            (
                Span(f"{entry.label:<9}", Role.MUTED),
                Span(_fixed(entry.told), Role.WARNING),
                Span(" "),
                Span(_fixed(entry.real), Role.SUCCESS),
                Span(f" {entry.unit}", Role.MUTED),
            )
            for entry in pose.quantities
        ]
    tilt = f"{math.degrees(pose.tilt):.1f}"
    if not pose.is_fixed:
        role = Role.WARNING if pose.tilt > math.radians(30) else Role.TEXT
        lines.append((Span(f"{'tilt':<9}", Role.MUTED), Span(f"{tilt:>7}", role), Span(" deg")))
    if pose.contact_names:
        lines.append(_contacts(pose, charset))
    if pose.touching:
        names = ", ".join(pose.touching)
        lines.append((Span(f"{'touching':<9}", Role.MUTED), Span(names, Role.ERROR)))
    if pose.place:
        lines.append((Span(f"{'ground':<9}", Role.MUTED), Span(pose.place)))
    clock = f"{pose.seconds:.1f} of {pose.limit:.0f} s"
    lines.append((Span(f"{'episode':<9}", Role.MUTED), Span(clock)))
    return [fit(line, width) for line in lines]


def legend(charset: Charset = Charset.BRAILLE) -> Line:
    """Say what the two arrows are."""
    told, real = ("..>", "-->") if charset is Charset.ASCII else ("··▸", "──▸")
    return (
        Span(told, Role.WARNING),
        Span(" told  ", Role.MUTED),
        Span(real, Role.SUCCESS),
        Span(" real", Role.MUTED),
    )


def short_names(names: Sequence[str]) -> list[str]:
    """Drop the ending that all names share: FL_foot and RR_foot become FL and RR."""
    endings = {name.rpartition("_")[2] for name in names}
    if len(endings) == 1 and all("_" in name for name in names):
        return [name.rpartition("_")[0] for name in names]
    return list(names)


def _fixed(value: float) -> str:
    """A number that keeps its place and has two decimals; what rounds to 0 has no sign."""
    if not abs(value) < 100:
        return known(value, 7, sign=True)
    return f"{value:+7.2f}" if abs(value) >= 0.005 else f"{0.0:7.2f}"


def _contacts(pose: RobotPose, charset: Charset) -> Line:
    on, off = ("#", ".") if charset is Charset.ASCII else ("●", "·")
    line = [Span(f"{'contact':<9}", Role.MUTED)]
    for name, touches in zip(short_names(pose.contact_names), pose.contacts.tolist(), strict=True):
        line.append(Span(f"{name} ", Role.TEXT if touches else Role.MUTED))
        line.append(Span(f"{on if touches else off} ", Role.SUCCESS if touches else Role.MUTED))
    return tuple(line)


def has_top_view(pose: RobotPose) -> bool:
    """Whether there is something to see from above: the task is not all in one plane."""
    return pose.told_velocity is not None or pose.target is not None or pose.ground is not None


def _draw_profile(canvas: Canvas, view: _View, pose: RobotPose) -> None:
    """Draw the ground below the robot, along its heading."""
    across = canvas.size[0]
    if (pose.ground is None and pose.floor is None) or not view.scale:
        return
    left = view.dots(np.zeros(3))[0]
    ahead = (np.arange(across) - left) / view.scale
    turned = np.stack((ahead, np.zeros(across), np.zeros(across)), axis=1)
    if pose.ground is not None:
        row = pose.ground[len(pose.ground) // 2].astype(np.float64)
        reach = (len(row) - 1) / 2 * pose.ground_step
        at = np.linspace(-reach, reach, len(row))
        heights = np.interp(ahead, at, row, left=np.nan, right=np.nan) - view.origin[2]
        turned[:, 2] = heights
    else:
        turned[:, 2] = (pose.floor or 0.0) - view.origin[2]
    dots = view.dots(turned)
    canvas.lines(np.stack((dots[:-1], dots[1:]), axis=1), Role.GUIDE)
    world = _unturned(turned, pose, view)
    marked = (np.floor(world[:, :2] / TILE).sum(axis=1) % 2).astype(bool)
    for below in (2, 3):
        canvas.dots(dots[marked] + (0, below), Role.GUIDE, mark="=")


def _draw_ground(canvas: Canvas, view: _View, pose: RobotPose) -> None:
    """Draw contour lines, or the corners of the tiles of a flat floor."""
    if pose.ground is not None:
        heights = pose.ground.astype(np.float64)
        reach = (len(heights) - 1) / 2 * pose.ground_step
        at = np.linspace(-reach, reach, len(heights))
        finite = heights[np.isfinite(heights)]
        spread = float(np.ptp(finite)) if finite.size else 0.0
        level = np.floor(heights / max(CONTOUR, spread / 8))
        ahead, left = np.meshgrid(at, at)
        half = pose.ground_step / 2
        steps = []
        for axis, shift in ((1, (half, 0.0)), (0, (0.0, half))):
            change = np.diff(level, axis=axis)
            kept = np.isfinite(change) & (change != 0)
            cut = (slice(None), slice(None, -1)) if axis == 1 else (slice(None, -1), slice(None))
            x, y = ahead[cut][kept] + shift[0], left[cut][kept] + shift[1]
            beside = np.array([0.0, half, 0.0] if axis == 1 else [half, 0.0, 0.0])
            point = np.stack((x, y, np.zeros_like(x)), axis=1)
            steps.append(np.stack((point - beside, point + beside), axis=1))
        canvas.lines(view.dots(np.concatenate(steps)), Role.GUIDE)
    elif pose.floor is not None and not pose.is_fixed:
        low, high = np.asarray(pose.view, np.float64)
        reach = 3 * float(np.hypot(*np.maximum(-low[:2], high[:2])))
        first = np.floor((view.origin[:2] - reach) / TILE)
        count = int(2 * reach / TILE) + 2
        x, y = np.meshgrid(
            (first[0] + np.arange(count)) * TILE, (first[1] + np.arange(count)) * TILE
        )
        corners = np.stack((x.ravel(), y.ravel(), np.zeros(x.size)), axis=1)
        canvas.dots(view(corners), Role.GUIDE, mark="+")


def _unturned(turned: Floats, pose: RobotPose, view: _View) -> Floats:
    heading = 0.0 if pose.is_fixed else pose.heading
    cos, sin = math.cos(heading), math.sin(heading)
    back = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
    return np.asarray(turned @ back.T + view.origin)


def _draw_robot(canvas: Canvas, view: _View, pose: RobotPose, depth: int) -> None:
    """Draw lines and balls; what lies on the far side along the axis `depth` first, and thinly."""
    lines = view.turned(pose.lines)
    base = view.turned(pose.position)[depth]
    if depth == 1 and not pose.is_fixed:
        far = lines[:, :, 1].mean(axis=1) > base + 0.02
    else:
        far = np.zeros(len(lines), bool)
    canvas.lines(view.dots(lines[far]), Role.TREND, every=FAR)
    touching = {tuple(p) for p in np.round(pose.contact_points[pose.contacts], 3).tolist()}
    balls = view.turned(pose.balls[:, :3])
    order = np.argsort(-balls[:, 1]) if depth == 1 else np.argsort(balls[:, 2])
    far_balls = [k for k in order if depth == 1 and balls[k, 1] > base + 0.02]
    near_balls = [k for k in order if k not in far_balls]

    def draw_balls(chosen: list[int], role: str) -> None:
        for k in chosen:
            touches = tuple(np.round(pose.balls[k, :3], 3).tolist()) in touching
            x, y = view.dots(balls[k])
            radius = max(float(pose.balls[k, 3]) * view.scale, 1.0)
            canvas.disc(
                (float(x), float(y)), radius, Role.SUCCESS if touches else role, filled=touches
            )

    draw_balls(far_balls, Role.TREND)
    canvas.lines(view.dots(lines[~far]), Role.PRIMARY)
    draw_balls(near_balls, Role.PRIMARY)


def _draw_target(canvas: Canvas, view: _View, pose: RobotPose) -> None:
    """Draw a commanded pose: its three axes, and a mark in the middle."""
    if pose.target is None:
        return
    dots = view(pose.target)
    canvas.lines(np.stack((np.repeat(dots[:1], 3, axis=0), dots[1:]), axis=1), Role.WARNING)
    canvas.disc((float(dots[0, 0]), float(dots[0, 1])), 2.0, Role.WARNING)


def _draw_velocity(
    canvas: Canvas,
    view: _View,
    pose: RobotPose,
    velocity: NDArray[np.floating],
    radius: float,
    role: str,
    every: int,
) -> None:
    """Draw a velocity as an arrow from the base, and its turning rate as an arc about it."""
    base = view.turned(pose.position)
    ahead, left, turn = (float(part) for part in velocity)
    if not all(map(math.isfinite, (ahead, left, turn))):
        return
    tip = base + np.array([ahead, left, 0.0]) * SECONDS_AHEAD
    start, end = view.dots(base), view.dots(tip)
    length = float(np.hypot(*(end - start)))
    if length >= 2:
        canvas.lines(np.stack((start, end))[None], role, every=every)
        back = math.atan2(-(start - end)[1], (start - end)[0])
        size = min(max(length / 3, 2.0), 5.0)
        heads = [
            end + size * np.array([math.cos(back + a), -math.sin(back + a)]) for a in (-0.5, 0.5)
        ]
        canvas.lines(np.array([[end, head] for head in heads]), role)
    angle = min(max(turn * 2 * SECONDS_AHEAD, -math.pi), math.pi)
    if abs(angle) > 0.03:
        x, y = start
        canvas.arc((float(x), float(y)), radius * view.scale, 0.0, angle, role)
        tip_x = x + radius * view.scale * math.cos(angle)
        tip_y = y - radius * view.scale * math.sin(angle)
        canvas.disc((float(tip_x), float(tip_y)), 1.0, role)


def _finished(canvas: Canvas, width: int, height: int) -> list[Line]:
    return block(canvas.render(), width, height)
