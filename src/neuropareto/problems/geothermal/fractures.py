"""Vertical fractures as straight lines in plan, and how the grid cuts them into segments.

A line is (x0, y0, x1, y1) in metres; a network is an array (k, 4). Every fracture reaches from the
bottom to the top of the layer and has one aperture b; its permeability follows the cubic law,
k = b^2 / 12. Two kinds of network share one contract, ``lines(reach)``: a random one, drawn from
a seed, and one that is given line by line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from neuropareto.problems.geothermal.checks import not_negative, positive
from neuropareto.problems.geothermal.geometry import Grid
from neuropareto.randomness import stream
from neuropareto.space import Array, numbers

Indices = npt.NDArray[np.intp]


class Fractures(Protocol):
    """Where the natural fractures are."""

    def lines(self, reach: float) -> Array:
        """The fractures as lines (k, 4); all end points have |x|, |y| <= ``reach``."""
        ...


@dataclass(frozen=True)
class NaturalFractures:
    """``count`` random fractures in sets of parallel ones.

    Lengths are log-normal (``median``, ``spread`` of the logarithm) clipped to [``shortest``,
    ``longest``] metres; fracture number i belongs to the set ``angles[i mod sets]`` (degrees from
    the x axis) with a normal ``scatter``; centres are uniform where the fracture fits in the core.
    """

    count: int = 22
    median: float = 260.0
    spread: float = 0.4
    shortest: float = 120.0
    longest: float = 600.0
    angles: tuple[float, ...] = (30.0, 120.0)
    scatter: float = 5.0
    seed: int = 0

    def __post_init__(self) -> None:
        positive(self.median, "NaturalFractures.median")
        positive(self.shortest, "NaturalFractures.shortest")
        not_negative(self.spread, "NaturalFractures.spread")
        not_negative(self.scatter, "NaturalFractures.scatter")
        object.__setattr__(self, "angles", tuple(self.angles))
        if self.count < 0 or not self.angles or self.longest < self.shortest:
            raise ValueError(
                f"NaturalFractures needs count >= 0, at least one angle and shortest <= longest, "
                f"got count={self.count}, angles={self.angles}, lengths {self.shortest} to "
                f"{self.longest}."
            )

    def lines(self, reach: float) -> Array:
        """The drawn fractures, (count, 4). Raises ValueError if one is too long for the core."""
        # Only uniform numbers are drawn, so that every numpy release makes the same network.
        draws = stream(self.seed, 0, "fractures").random((self.count, 4))
        normal = ndtri(np.clip(draws[:, :2], 1e-12, 1 - 1e-12))
        length = np.exp(np.log(self.median) + self.spread * normal[:, 0])
        length = np.clip(length, self.shortest, self.longest)
        angle = np.resize(self.angles, self.count) + self.scatter * normal[:, 1]
        half = 0.5 * length[:, None] * _directions(angle)
        room = reach - np.abs(half)
        if self.count and room.min() < 0:
            raise ValueError(
                f"A fracture of {length.max():.0f} m does not fit in a core of half width "
                f"{reach:g} m; lower NaturalFractures.longest or raise Geometry.core."
            )
        centre = room * (2 * draws[:, 2:] - 1)
        return np.hstack([centre - half, centre + half])


@dataclass(frozen=True)
class GivenFractures:
    """Fractures given one by one as ((x0, y0, x1, y1), ...) in metres, for a mapped network."""

    given: tuple[tuple[float, float, float, float], ...] = ()

    def __post_init__(self) -> None:
        table = numbers(self.given, "GivenFractures") if len(self.given) else np.zeros((0, 4))
        if table.ndim != 2 or table.shape[1] != 4 or not np.isfinite(table).all():
            raise ValueError(
                f"GivenFractures must be finite rows (x0, y0, x1, y1), got shape {table.shape}."
            )
        if (np.hypot(table[:, 2] - table[:, 0], table[:, 3] - table[:, 1]) <= 0).any():
            raise ValueError("A given fracture has length 0; its two end points must differ.")
        object.__setattr__(self, "given", tuple(map(tuple, table.tolist())))

    def lines(self, reach: float) -> Array:
        """The given fractures, (k, 4). Raises ValueError if one leaves the core."""
        table = np.array(self.given, dtype=np.float64).reshape(-1, 4)
        check_reach(table, reach)
        return table


def centred_line(x: float, y: float, length: float, angle: float) -> Array:
    """The line (1, 4) of a fracture with centre (x, y), in metres, ``angle`` in degrees."""
    half = 0.5 * length * _directions(np.array([angle]))
    return np.hstack([np.array([[x, y]]) - half, np.array([[x, y]]) + half])


def check_reach(lines: Array, reach: float) -> None:
    """Raise a ValueError unless all end points of ``lines`` (k, 4) have |x|, |y| <= ``reach``."""
    if len(lines) and np.abs(lines).max() > reach + 1e-9:
        raise ValueError(
            f"Every fracture must lie in the core, |x|, |y| <= {reach:g} m, but one reaches "
            f"{np.abs(lines).max():.1f} m; shorten or move it, or raise Geometry.core."
        )


@dataclass(frozen=True, eq=False)
class Segments:
    """Fractures cut by the grid: fracture number, cell, and the end points as shares of the line.

    ``fracture`` (s,), ``cell`` (s,), ``start`` and ``end`` (s,) in [0, 1] along ``lines`` (k, 4).
    """

    lines: Array
    fracture: Indices
    cell: Indices
    start: Array
    end: Array

    @property
    def lengths(self) -> Array:
        """Lengths of the segments, (s,), in metres."""
        x0, y0, x1, y1 = self.lines[self.fracture].T
        return np.asarray((self.end - self.start) * np.hypot(x1 - x0, y1 - y0), dtype=np.float64)

    def at(self, fracture: int, share: float) -> int:
        """The segment of ``fracture`` that holds the point at ``share`` of its length."""
        own = np.flatnonzero(self.fracture == fracture)
        return int(own[np.searchsorted(self.end[own[:-1]], share, side="right")])


def cut(lines: Array, grid: Grid, *, shortest: float = 0.05) -> Segments:
    """Cut fractures (k, 4) at the grid lines.

    A piece shorter than ``shortest`` of the smallest cell is joined to its longer neighbour: it
    would hold almost no water and spoil the condition of the equations.
    """
    cells, starts, ends, owners = [], [], [], []
    for number, line in enumerate(lines):
        marks = _crossings(line, grid.edges)
        length = float(np.hypot(line[2] - line[0], line[3] - line[1]))
        marks = _joined(marks, shortest * float(grid.widths.min()) / length)
        middle = 0.5 * (marks[1:] + marks[:-1])
        x, y = line[0] + middle * (line[2] - line[0]), line[1] + middle * (line[3] - line[1])
        cells.append(grid.cell(x, y))
        starts.append(marks[:-1])
        ends.append(marks[1:])
        owners.append(np.full(len(middle), number, dtype=np.intp))
    if not cells:
        none, whole = np.zeros(0), np.zeros(0, dtype=np.intp)
        return Segments(lines, whole, whole, none, none)
    return Segments(
        lines,
        np.concatenate(owners),
        np.concatenate(cells),
        np.concatenate(starts),
        np.concatenate(ends),
    )


def intersections(lines: Array) -> list[tuple[int, int, float, float]]:
    """All pairs of crossing fractures (i, j, share along i, share along j), i < j."""
    found = []
    start, step = lines[:, :2], lines[:, 2:] - lines[:, :2]
    for i in range(len(lines) - 1):
        gap, other = start[i + 1 :] - start[i], step[i + 1 :]
        area = step[i, 0] * other[:, 1] - step[i, 1] * other[:, 0]
        safe = np.where(np.abs(area) > 1e-9, area, np.inf)
        along = (gap[:, 0] * other[:, 1] - gap[:, 1] * other[:, 0]) / safe
        across = (gap[:, 0] * step[i, 1] - gap[:, 1] * step[i, 0]) / safe
        inside = (along >= 0) & (along <= 1) & (across >= 0) & (across <= 1)
        for k in np.flatnonzero(inside & np.isfinite(safe)):
            found.append((i, i + 1 + int(k), float(along[k]), float(across[k])))
    return found


def _directions(angle: Array) -> Array:
    radians = np.deg2rad(angle)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1)


def _crossings(line: Array, edges: Array) -> Array:
    """0, 1 and the shares of ``line`` at which it crosses a grid line, in order."""
    marks = [np.array([0.0, 1.0])]
    for low, high in ((line[0], line[2]), (line[1], line[3])):
        if abs(high - low) > 1e-9:
            share = (edges - low) / (high - low)
            marks.append(share[(share > 0) & (share < 1)])
    return np.unique(np.concatenate(marks))


def _joined(marks: Array, shortest: float) -> Array:
    """Drop marks until no piece is shorter than ``shortest`` (of the whole line)."""
    while len(marks) > 2:
        pieces = np.diff(marks)
        k = int(np.argmin(pieces))
        if pieces[k] >= shortest:
            break
        left = pieces[k - 1] if k > 0 else -1.0
        right = pieces[k + 1] if k + 1 < len(pieces) else -1.0
        marks = np.delete(marks, k if left > right else k + 1)
    return marks
