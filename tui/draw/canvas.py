"""A plane of dots to draw lines and discs on, in braille, half blocks or ASCII."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tui.draw.chart import RASTERS
from tui.draw.spans import Charset, Line, Role, runs

FARTHEST = 1e5
"""Dots beyond which a point is taken to be nowhere."""
_SLOPES = "-/|\\"
"""What a line of slope 0, 45, 90, 135 degrees looks like in ASCII."""


class Canvas:
    """Dots of equal distance along both axes; x grows to the right, y downward.

    What is drawn later lies on top: a cell takes the role of the last dot in it, and text hides
    dots. Points that are not finite are left out. In ASCII a line is made of characters that lean
    as it does.

    Args:
        width: cells.
        height: cells.
        charset: what the font can show.
    """

    def __init__(self, width: int, height: int, charset: Charset = Charset.BRAILLE) -> None:
        self.cells = (max(width, 0), max(height, 0))
        """Columns and rows."""
        self._charset = charset
        raster = RASTERS[charset]
        # ASCII has no dots: two to a cell keep its shape, and each cell gets one character
        self._per_cell = (1, 2) if charset is Charset.ASCII else (raster.across, raster.down)
        columns, rows = self.cells
        across, down = self._per_cell
        self.size = (columns * across, rows * down)
        """Dots across and down."""
        self._dots = np.zeros((rows * down, columns * across), bool)
        self._roles = np.zeros((rows, columns), np.int64)
        self._named: list[str] = [Role.TEXT]
        self._text: dict[tuple[int, int], tuple[str, str]] = {}

    def dots(self, points: ArrayLike, role: str, mark: str = ".") -> None:
        """Set single dots.

        Args:
            points: x and y of each, [P, 2].
            role: what they mean.
            mark: what stands for one in ASCII.
        """
        at = np.asarray(points, np.float64).reshape(-1, 2)
        self._set(at, role, np.full(len(at), ord(mark)))

    def lines(self, ends: ArrayLike, role: str, *, every: int = 1) -> None:
        """Draw straight lines.

        Args:
            ends: x and y of both ends, [L, 2, 2].
            role: what they mean.
            every: dots that one drawn stands for; more than 1 leaves gaps.
        """
        lines = np.asarray(ends, np.float64).reshape(-1, 2, 2)
        lines = lines[(np.abs(lines) < FARTHEST).all(axis=(1, 2))]  # also drops NaN
        if not len(lines):
            return
        span = lines[:, 1] - lines[:, 0]
        steps = np.ceil(np.abs(span).max(axis=1)).astype(np.int64) + 1
        line = np.repeat(np.arange(len(lines)), steps)
        nth = np.arange(len(line)) - np.repeat(np.cumsum(steps) - steps, steps)
        share = nth / np.maximum(steps - 1, 1)[line]
        points = lines[line, 0] + share[:, None] * span[line]
        shown = nth % every == 0
        leaning = np.round(np.arctan2(-span[:, 1], span[:, 0]) / (math.pi / 4)).astype(int) % 4
        marks = np.frombuffer(_SLOPES.encode(), np.uint8)[leaning][line]
        self._set(points[shown], role, marks[shown])

    def arc(
        self, centre: tuple[float, float], radius: float, start: float, end: float, role: str
    ) -> None:
        """Draw part of a circle, between two angles in rad that count from x to up."""
        length = abs(end - start) * radius
        if not length < FARTHEST:  # also where it is NaN
            return
        count = max(int(length) + 1, 2)
        angle = np.linspace(start, end, count)
        x, y = centre[0] + radius * np.cos(angle), centre[1] - radius * np.sin(angle)
        self.dots(np.stack((x, y), axis=1), role)

    def disc(
        self, centre: tuple[float, float], radius: float, role: str, *, filled: bool = True
    ) -> None:
        """Draw a disc, or a circle."""
        if not radius < FARTHEST:
            return
        radius = max(radius, 0.5)
        if self._charset is Charset.ASCII:
            self.label(centre, "@" if filled else "o", role)
            return
        if not filled:
            self.arc(centre, radius, 0.0, 2 * math.pi, role)
            return
        reach = np.arange(-math.ceil(radius), math.ceil(radius) + 1)[: 2 * max(self.size) + 1]
        x, y = np.meshgrid(reach, reach)
        near = x**2 + y**2 <= radius**2 + 0.25
        self.dots(np.stack((centre[0] + x[near], centre[1] + y[near]), axis=1), role)

    def text(self, column: int, row: int, text: str, role: str = Role.TEXT) -> None:
        """Write over the dots, from a cell on; what does not fit is left out."""
        columns, rows = self.cells
        for offset, character in enumerate(text):
            if 0 <= row < rows and 0 <= column + offset < columns:
                self._text[row, column + offset] = (character, role)

    def label(self, point: ArrayLike, text: str, role: str = Role.TEXT) -> None:
        """Write a text in the middle of a point, x and y in dots."""
        x, y = np.asarray(point, np.float64)
        if math.isfinite(x) and math.isfinite(y) and max(abs(x), abs(y)) < FARTHEST:
            across, down = self._per_cell
            self.text(int(x // across) - (len(text) - 1) // 2, int(y // down), text, role)

    def render(self) -> list[Line]:
        """Return the picture, a line a row of cells."""
        columns, rows = self.cells
        if not columns or not rows:
            return [()] * rows
        characters = self._characters()
        roles = [[self._named[role] for role in row] for row in self._roles.tolist()]
        for (row, column), (character, role) in self._text.items():
            characters[row][column], roles[row][column] = character, role
        return [runs(text, role) for text, role in zip(characters, roles, strict=True)]

    def _characters(self) -> list[list[str]]:
        columns, rows = self.cells
        across, down = self._per_cell
        if self._charset is Charset.ASCII:
            return [[" "] * columns for _ in range(rows)]
        grid = self._dots.reshape(rows, down, columns, across)
        weights = 1 << np.arange(across * down).reshape(across, down)
        codes = np.einsum("hdwa,ad->hw", grid.astype(np.int64), weights)
        glyphs = RASTERS[self._charset].glyphs
        return [[glyphs[code] for code in row] for row in codes.tolist()]

    def _set(self, points: NDArray[np.float64], role: str, marks: NDArray[np.integer]) -> None:
        """Set the dots [P, 2] that lie inside, in ASCII the characters that stand for them."""
        inside = _inside(points, self.size)
        at, marks = np.rint(points[inside]).astype(np.int64), marks[inside]
        across, down = self._per_cell
        columns, rows = at[:, 0] // across, at[:, 1] // down
        if role not in self._named:
            self._named.append(role)
        self._roles[rows, columns] = self._named.index(role)
        self._dots[at[:, 1], at[:, 0]] = True
        if self._charset is Charset.ASCII:
            for row, column, mark in zip(
                rows.tolist(), columns.tolist(), marks.tolist(), strict=True
            ):
                self._text[row, column] = (chr(mark), role)


def _inside(points: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.bool_]:
    """Say which points [P, 2] lie on the canvas; NaN does not."""
    return np.asarray(((points >= -0.5) & (points < np.array(size) - 0.5)).all(axis=1))
