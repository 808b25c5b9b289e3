"""The grid of the reservoir: one layer of square cells in the core, growing ones around it.

The plan is a square, so x and y share one vector of edges (n + 1,) in metres, symmetric about 0.
Cells are numbered row by row: cell = i n + j with i along x and j along y. The outermost ring of
cells is held at the initial state; it stands for the undisturbed rock around the reservoir.
The number of core cells is odd, so that a layout that is symmetric stays symmetric on the grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from neuropareto.problems.geothermal.checks import positive
from neuropareto.space import Array


@dataclass(frozen=True)
class Geometry:
    """The block of rock, in metres: a square of half width ``half_width``, ``thickness`` thick.

    ``cell`` is the wanted width of the cells where |x|, |y| <= ``core``; outside, each cell is
    ``growth`` times as wide as the one before it (then scaled to fit). ``cover`` are the layers
    of cap and base rock, nearest first; heat is conducted into them and none leaves the last.
    """

    half_width: float = 1000.0
    core: float = 620.0
    cell: float = 40.0
    growth: float = 1.5
    thickness: float = 100.0
    cover: tuple[float, ...] = (10.0, 20.0, 40.0, 80.0)

    def __post_init__(self) -> None:
        for name in ("half_width", "core", "cell", "thickness"):
            positive(getattr(self, name), f"Geometry.{name}")
        for layer in self.cover:
            positive(layer, "Each layer of Geometry.cover")
        if not self.cell <= self.core < self.half_width:
            raise ValueError(
                f"Geometry needs cell <= core < half_width, got cell={self.cell}, "
                f"core={self.core}, half_width={self.half_width}; widen the block or refine it."
            )
        if not 1.0 <= self.growth <= 3.0:
            raise ValueError(f"Geometry.growth must lie in [1, 3], got {self.growth}.")
        object.__setattr__(self, "cover", tuple(self.cover))

    def edges(self) -> Array:
        """The positions of the grid lines along x (and along y), (n + 1,), in metres."""
        half = max(0, round((2 * self.core / self.cell - 1) / 2))
        core = np.linspace(-self.core, self.core, 2 * half + 2)
        margin, width = self.half_width - self.core, float(core[1] - core[0])
        outward: list[float] = []
        while math.fsum(outward) < margin:
            width *= self.growth
            outward.append(width)
        steps = np.cumsum(outward) * (margin / math.fsum(outward))
        steps[-1] = margin
        return np.concatenate([-self.core - steps[::-1], core, self.core + steps])


@dataclass(frozen=True, eq=False)
class Grid:
    """The cells of a geometry: edges (n + 1,) in metres, n x n cells."""

    edges: Array

    @property
    def n(self) -> int:
        """Cells along one side."""
        return len(self.edges) - 1

    @property
    def widths(self) -> Array:
        """Cell widths along one side, (n,)."""
        return np.diff(self.edges)

    @property
    def centres(self) -> Array:
        """Cell centres along one side, (n,)."""
        return 0.5 * (self.edges[1:] + self.edges[:-1])

    @property
    def areas(self) -> Array:
        """Plan areas of all cells, (n n,), in m2."""
        return np.outer(self.widths, self.widths).ravel()

    @property
    def ring(self) -> Array:
        """1 for the cells of the outermost ring and 0 for all others, (n n,)."""
        mark = np.ones((self.n, self.n))
        mark[1:-1, 1:-1] = 0.0
        return mark.ravel()

    def cell(self, x: Array, y: Array) -> np.typing.NDArray[np.intp]:
        """The numbers of the cells that hold the points (x, y)."""
        i = np.clip(np.searchsorted(self.edges, x, side="right") - 1, 0, self.n - 1)
        j = np.clip(np.searchsorted(self.edges, y, side="right") - 1, 0, self.n - 1)
        return np.asarray(i * self.n + j, dtype=np.intp)
