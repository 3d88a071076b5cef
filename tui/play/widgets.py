"""The parts of the play screen: header, two views, numbers, and the last seconds."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import ClassVar

from tui.draw.numbers import known, plural
from tui.draw.robot import NO_POSE, legend, readings, side_view, top_view
from tui.draw.spans import Line, Role, Span, cells, clean
from tui.draw.tracking import tracking_strips
from tui.draw.trail import Trail
from tui.panels.drawing import Drawing
from tui.play.performance import Frame

HISTORY_SECONDS = 10.0
"""Simulated seconds that the strips show."""


class PlayWidget(Drawing):
    """A part that draws frames."""

    frame = Frame()

    def show(self, frame: Frame) -> None:
        """Draw a new frame."""
        self.frame = frame
        self.redraw()

    @property
    def has_content(self) -> bool:
        """Whether the worlds are built."""
        return self.frame.is_ready

    def without_pose(self) -> Sequence[Line]:
        """What stands where a picture would be."""
        return [(Span(NO_POSE, Role.MUTED),)]


class PlayHeader(PlayWidget):
    """One line: what plays, and how fast."""

    DEFAULT_CSS = "PlayHeader, PlayHeader.-ascii { height: 1; border: none; }"

    def __init__(self, names: Sequence[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._names = tuple(clean(name) for name in names)

    @property
    def has_content(self) -> bool:
        """Always."""
        return True

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return names on the left, world and pace on the right; names give way, the last first."""
        right = self._state()
        names = list(self._names)
        while len(names) > 1 and sum(len(name) + 2 for name in names) + cells(right) > width:
            names.pop()
        left: list[Span] = [Span(names[0], Role.STRONG)]
        left += [Span(f"  {name}", Role.MUTED) for name in names[1:]]
        gap = max(width - cells(left) - cells(right), 1)
        return [(*left, Span(" " * gap), *right)]

    def _state(self) -> Line:
        frame = self.frame
        if not frame.is_ready:
            return (Span(" BUILDING ", Role.WARNING),)
        state = " PAUSED " if frame.is_paused else " PLAYS "
        role = Role.CURRENT if frame.is_paused else Role.SUCCESS
        asked = "most" if math.isinf(frame.speed) else f"x{frame.speed:g}"
        pace = "" if frame.is_paused else f" (x{known(frame.pace, 5).strip()})"
        return (
            Span(f"world {frame.world + 1}/{frame.num_worlds}", Role.MUTED),
            Span(f"  {state}", role),
            Span(f" {asked}{pace}".ljust(12)),
        )


class SideView(PlayWidget):
    """The robot from its right."""

    TITLE: ClassVar[str] = "from the right"

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the view."""
        pose = self.frame.pose
        if pose is None:
            return self.without_pose()
        return side_view(pose, width, height, self.charset)


class TopView(PlayWidget):
    """The robot from above, and where it came from."""

    TITLE: ClassVar[str] = "from above"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.trail = Trail()

    def show(self, frame: Frame) -> None:
        """Draw a new frame, and remember where the robot is."""
        self.trail.follow(frame.pose)
        super().show(frame)

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the view."""
        pose = self.frame.pose
        if pose is None:
            return ()
        return top_view(pose, width, height, self.charset, self.trail.points)


class Numbers(PlayWidget):
    """What the robot is told and does, and how the episode goes."""

    TITLE: ClassVar[str] = "numbers"

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the robot's numbers, then the episode's."""
        frame = self.frame
        lines: list[Line] = []
        if frame.pose is not None:
            lines += readings(frame.pose, width, self.charset)
            if frame.pose.quantities:
                self.caption(subtitle="told by you" if frame.is_steered else "told by the env")
        lines.append(_row("reward", f"{known(frame.reward, 7, sign=True)} a step"))
        lines.append(_row("return", f"{known(frame.total, 7, sign=True)} so far"))
        if frame.last is not None:
            end = "fell" if frame.last.fell else "time limit"
            text = f"{known(frame.last.total, 7, sign=True)} in {frame.last.seconds:.1f} s, {end}"
            lines.append(_row("last", text))
        counted = f"{plural(frame.episodes, 'episode')}, {plural(frame.falls, 'fall')}"
        lines.append(_row("so far", counted.rjust(7)))
        if frame.pose is not None and frame.pose.told_velocity is not None and len(lines) < height:
            lines.insert(1 + len(frame.pose.quantities), legend(self.charset))
        return lines


class Tracking(PlayWidget):
    """Told and real, over the last seconds."""

    TITLE: ClassVar[str] = "told and real"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._world = -1
        self._history: deque[tuple[float, list[float], list[float]]] = deque()

    def show(self, frame: Frame) -> None:
        """Draw a new frame, and remember its numbers."""
        pose = frame.pose
        if pose is not None and pose.quantities:
            if pose.world != self._world:
                self._history.clear()
                self._world = pose.world
            told = [entry.told for entry in pose.quantities]
            real = [entry.real for entry in pose.quantities]
            if not self._history or frame.seconds > self._history[-1][0]:
                self._history.append((frame.seconds, told, real))
            while self._history[-1][0] - self._history[0][0] > HISTORY_SECONDS:
                self._history.popleft()
        super().show(frame)

    def draw(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        """Return the strips."""
        pose = self.frame.pose
        if pose is None or not self._history:
            return ()
        self.caption(subtitle=f"last {HISTORY_SECONDS:.0f} s")
        seconds, told, real = zip(*self._history, strict=True)
        return tracking_strips(
            [f"{entry.label} {entry.unit}" for entry in pose.quantities],
            [(entry.low, entry.high) for entry in pose.quantities],
            seconds, told, real, HISTORY_SECONDS, width, height, self.charset,
        )  # fmt: skip


def _row(label: str, text: str) -> Line:
    return (Span(f"{label:<9}", Role.MUTED), Span(text))
