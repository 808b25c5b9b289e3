"""Selection of AR-MOEA (Tian, Cheng, Zhang, Cheng, Jin 2018), as array functions.

The indicator IGD-NS charges a set for reference points far from it and for members that are
nearest to no reference point; the reference points adapt to the shape of the front found.
Notation: F (n, m) objectives translated to the ideal point, R (r, m) reference points,
D (n, r) adjusted distances, W (w, m) the lattice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from neuropareto import pareto
from neuropareto.archive import Indices
from neuropareto.space import Array

Mask = npt.NDArray[np.bool_]


def adjusted_distance(F: Array, R: Array) -> Array:
    """Distances (n, r) after each reference point moved along its ray; AR-MOEA Algorithm 5.

    It goes to the foot of the perpendicular from the row of F that lies nearest to the ray.
    """
    directions = _unit(R)
    along = F @ directions.T
    across = np.sqrt(np.maximum((F**2).sum(axis=1)[:, None] - along**2, 0.0))
    foot = along[across.argmin(axis=0), np.arange(len(R))]
    return np.asarray(cdist(F, directions * foot[:, None]))


def igd_ns(D: Array) -> float:
    """IGD-NS = sum_r min_p D + sum over the non-contributing p of min_r D. AR-MOEA Eq. 4."""
    idle = np.ones(len(D), dtype=np.bool_)
    idle[D.argmin(axis=0)] = False
    return float(D.min(axis=0).sum() + D[idle].min(axis=1).sum())


def without_each(D: Array) -> Array:
    """IGD-NS of the set without its p-th member, for every p, (n,); needs n >= 2.

    Taking p away sends its reference points to their second nearest member, which then contributes
    and is no longer charged itself; a non-contributing p takes only its own charge along.
    """
    n, columns = len(D), np.arange(D.shape[1])
    first, second = np.argpartition(D, 1, axis=0)[:2] if n > 2 else np.argsort(D, axis=0)
    # Equal distances count for the lower row, as in igd_ns.
    first, second = np.minimum(first, second), np.maximum(first, second)
    swap = D[second, columns] < D[first, columns]
    first, second = np.where(swap, second, first), np.where(swap, first, second)
    idle = np.ones(n, dtype=np.bool_)
    idle[first] = False
    charge = np.where(idle, D.min(axis=1), 0.0)
    longer = np.bincount(first, D[second, columns] - D[first, columns], minlength=n)
    heir = np.zeros((n, n), dtype=np.bool_)
    heir[first, second] = True
    total = D[first, columns].sum() + charge.sum()
    return np.asarray(total + longer - heir @ charge - charge)


def selected(F: Array, R: Array, size: int) -> Indices:
    """Rows of the next population: whole ranks, the last one thinned; AR-MOEA Algorithm 4.

    While the last rank is too large, the member without which IGD-NS is smallest leaves.
    """
    ranks = pareto.ranks(F)
    if len(F) <= size:
        return np.arange(len(F), dtype=np.int64)
    last = np.sort(ranks)[size - 1]
    sure, rest = np.flatnonzero(ranks < last), np.flatnonzero(ranks == last)
    D = adjusted_distance(F[rest], R)
    while len(sure) + len(rest) > size:
        leaving = int(without_each(D).argmin())
        rest, D = np.delete(rest, leaving), np.delete(D, leaving, axis=0)
    return np.sort(np.concatenate([sure, rest]))


def spread_by_angle(F: Array, chosen: Mask, size: int) -> Mask:
    """``chosen`` (n,) grown to ``size`` rows, each time by the widest angle to those chosen.

    That is the row whose largest cosine to a chosen row is smallest. Without any chosen row the
    first one starts.
    """
    chosen, directions = chosen.copy(), _unit(F)
    if not chosen.any() and size > 0 and len(F):
        chosen[0] = True
    nearest = np.max(directions @ directions[chosen].T, axis=1, initial=-np.inf)
    nearest[chosen] = np.inf
    for _ in range(min(size, len(F)) - int(chosen.sum())):
        new = int(nearest.argmin())
        chosen[new] = True
        nearest = np.maximum(nearest, directions @ directions[new])
        nearest[chosen] = np.inf
    return chosen


@dataclass(frozen=True)
class References:
    """Adaptive reference points R (r, m), the archive A (a, m) behind them, ideal and nadir (m,).

    ``valid`` is the share of the lattice's vectors that a contributing solution is nearest to.
    """

    R: Array
    A: Array
    ideal: Array
    nadir: Array
    valid: float

    @classmethod
    def first(cls, F: Array, W: Array) -> References:
        """References adapted to a first population F (n, m)."""
        front = F[pareto.nondominated(F)]
        start = cls(W, np.empty((0, F.shape[1])), front.min(axis=0), front.max(axis=0), 1.0)
        return start.updated(F, W)

    def updated(self, F: Array, W: Array) -> References:
        """References after the rows of F (k, m) arrived; AR-MOEA Algorithm 3."""
        A = np.concatenate([self.A, F])
        A = np.unique(A[pareto.nondominated(A)], axis=0)
        ideal = np.minimum(self.ideal, A.min(axis=0))
        extent = self.nadir - ideal
        scaled = W * np.where(extent > 1e-6, extent, 1.0)
        if len(A) < 2:
            return References(scaled, A, ideal, self.nadir, 1.0 / len(W))
        Z = A - ideal
        D = adjusted_distance(Z, scaled)
        contributing = np.unique(D.argmin(axis=0))
        valid = np.unique(D[contributing].argmin(axis=1))
        chosen = np.zeros(len(A), dtype=np.bool_)
        chosen[contributing] = True
        kept = spread_by_angle(Z, chosen, 3 * len(W))
        rivals = np.concatenate([scaled[valid], Z[kept]])
        R = rivals[spread_by_angle(rivals, np.arange(len(rivals)) < len(valid), len(W))]
        return References(R, A[kept], ideal, self.nadir, len(valid) / len(W))

    def ranging(self, F: Array) -> References:
        """The same with the nadir point of the population F (n, m)."""
        return References(self.R, self.A, self.ideal, F.max(axis=0), self.valid)


def _unit(F: Array) -> Array:
    return np.asarray(F / np.maximum(np.linalg.norm(F, axis=1, keepdims=True), 1e-300))
