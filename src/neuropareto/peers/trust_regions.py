"""The trust regions of MORBO: boxes that move, grow, shrink and end, as values.

A region is a box of edge L around an archive row. Points proposed by a region are successes or
failures; streaks double or halve L; below the least L the region ends, its centre becomes tabu and
it waits for a restart. Daulton, Eriksson, Balandat, Bakshy, "Multi-objective Bayesian optimization
over high-dimensional search spaces", UAI 2022, Sec. 3; numbers as in the authors' code.
Notation: t regions, d variables, k front points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from neuropareto.archive import Indices
from neuropareto.peers.local_gp import Box
from neuropareto.space import Array

Mask = npt.NDArray[np.bool_]

ENDED, ASKED = -1, -2  # in place of a centre: the restart is still to be asked, or is under way
_ROUNDING = 1e-10


@dataclass(frozen=True)
class Regions:
    """The state of all regions: centres as archive rows (t,), edges (t,), counters, tabu rows."""

    centre: Indices
    length: Array
    successes: Indices
    failures: Indices
    tabu: Indices
    tenure: Indices

    @property
    def active(self) -> Indices:
        """The numbers of the regions that have a centre."""
        return np.flatnonzero(self.centre >= 0)


@dataclass(frozen=True)
class Growth:
    """When a region grows, shrinks and ends; ``failures=None`` stands for max(10, d // 3) points.

    The published success streak of 10000 means that a region never grows.
    """

    start: float = 0.8
    least: float = 0.01
    most: float = 1.6
    successes: int = 10_000
    failures: int | None = None
    tenure: int = 100

    def begun(self, n_regions: int) -> Regions:
        """Regions of the start size that have no centre yet."""
        zero, none = np.zeros(n_regions, dtype=np.int64), np.empty(0, dtype=np.int64)
        return Regions(
            np.full(n_regions, ENDED), np.full(n_regions, self.start), zero, zero, none, none
        )

    def counted(self, regions: Regions, points: Indices, improved: Mask, d: int) -> Regions:
        """The regions after ``points`` (t,) evaluations each, of which some ``improved`` (t,).

        A success counts one, a failure counts its points; regions without points stay as they are.
        Ended regions lose their centre, which becomes tabu.
        """
        took_part = (points > 0) & (regions.centre >= 0)
        won, lost = took_part & improved, took_part & ~improved
        successes = np.where(won, regions.successes + 1, np.where(lost, 0, regions.successes))
        failures = np.where(lost, regions.failures + points, np.where(won, 0, regions.failures))
        limit = max(10, d // 3) if self.failures is None else self.failures
        grows = won & (successes >= self.successes)
        shrinks = lost & (failures >= limit)
        length = np.where(grows, np.minimum(2.0 * regions.length, self.most), regions.length)
        length = np.where(shrinks, length / 2.0, length)
        reset = grows | shrinks
        ends = shrinks & (length < self.least)
        return Regions(
            np.where(ends, ENDED, regions.centre),
            length,
            np.where(reset, 0, successes),
            np.where(reset, 0, failures),
            np.concatenate([regions.tabu, regions.centre[ends]]),
            np.concatenate([regions.tenure, np.full(int(ends.sum()), self.tenure)]),
        )

    def restarted(self, regions: Regions, which: int, centre: int, decay: float) -> Regions:
        """Region ``which`` begun anew at an archive row; later restarts are smaller."""
        length, row = regions.length.copy(), regions.centre.copy()
        length[which] = self.least + (self.start - self.least) * decay
        row[which] = centre
        return replace(regions, centre=row, length=length)


def aged(regions: Regions, front: Indices) -> Regions:
    """One round later: tabu rows whose time is over, or that left the front, are free again."""
    keep = (regions.tenure > 1) & np.isin(regions.tabu, front)
    return replace(regions, tabu=regions.tabu[keep], tenure=regions.tenure[keep] - 1)


def decay(n: int, n_start: int, n_most: int) -> float:
    """1 - ln(n - n0 + 1) / (2 ln(n_max - n0 + 1)): from one down to one half over the budget."""
    n_most = max(n_most, n)
    if n <= n_start:
        return 1.0
    return float(1.0 - 0.5 * np.log(n - n_start + 1) / np.log(n_most - n_start + 1))


def inside(U: Array, centre: Array, length: float) -> Mask:
    """Which rows of U lie in the box of edge ``length`` around ``centre``."""
    return np.asarray((np.abs(U - centre) <= length / 2.0 + _ROUNDING).all(axis=1))


def box(centre: Array, length: float) -> Box:
    """The box of edge ``length`` around ``centre``, cut off at the unit cube."""
    half = length / 2.0
    return Box(np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0))


def recentred(
    regions: Regions, which: Indices, U: Array, front: Indices, contribution: Array
) -> Regions:
    """Regions ``which`` moved one by one to the free front row of largest ``contribution`` (k,).

    First choice: rows of ``front`` inside the region that are neither tabu nor another region's
    centre; then any such row; then the largest of all. The front must not be empty.
    """
    centre = regions.centre.copy()
    for i in which:
        others = np.delete(centre, i)
        free = ~np.isin(front, np.concatenate([regions.tabu, others]))
        near = free & (
            inside(U[front], U[centre[i]], regions.length[i])
            if centre[i] >= 0
            else np.zeros(len(front), dtype=np.bool_)
        )
        allowed = near if near.any() else free if free.any() else np.ones_like(free)
        centre[i] = front[np.argmax(np.where(allowed, contribution, -np.inf))]
    return replace(regions, centre=centre)


def training_rows(U: Array, centre: Array, length: float, fewest: int, most: int) -> Indices:
    """Rows within the box of edge 2 ``length``, made up to ``fewest`` or cut to ``most``.

    Both by distance from the centre.
    """
    rows = np.flatnonzero(inside(U, centre, 2.0 * length))
    if fewest <= len(rows) <= most:
        return rows
    wanted = min(fewest if len(rows) < fewest else most, len(U))
    nearest = np.argsort(((U - centre) ** 2).sum(axis=1), kind="stable")[:wanted]
    return np.sort(nearest)


def perturbed(
    parents: Array, region: Box, n: int, probability: float, *, rng: np.random.Generator
) -> Array:
    """n candidates: random parents of which each variable is redrawn with ``probability``.

    New values are a scrambled Sobol sequence in the box. A candidate to which nothing happened
    gets ceil(d p) random variables redrawn instead. Parents inside the box give candidates inside.
    """
    d = parents.shape[1]
    candidates = parents[rng.integers(len(parents), size=n)]
    changed = rng.random((n, d)) < probability
    idle = np.flatnonzero(~changed.any(axis=1))
    if len(idle):
        order = rng.random((len(idle), d)).argsort(axis=1)
        changed[idle] = order < int(np.ceil(d * probability))
    fresh = region.lower + (region.upper - region.lower) * sobol(n, d, rng=rng)
    return np.where(changed, fresh, candidates)


def sobol(n: int, d: int, *, rng: np.random.Generator) -> Array:
    """n points of a scrambled Sobol sequence in the unit cube, (n, d)."""
    engine = qmc.Sobol(d, scramble=True, rng=rng)
    points: Array = engine.random_base2(int(np.ceil(np.log2(max(n, 2)))))[:n]
    return points
