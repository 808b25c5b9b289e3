"""Banded linear systems with a fixed pattern: order the unknowns once, factorise many times.

All couplings of the embedded fracture model are local in plan, so a reverse Cuthill-McKee order
leaves a narrow band. For 1,656 unknowns band Cholesky takes 0.6 ms and band LU 1.0 ms, against 2.8
for SuperLU (MMD) and 1.4 for SuperLU given a fixed order; a solve takes 0.09 against 0.05. With six
solves a factorisation the last two are nearly equal, and the band is the simpler. Fixed nodes drop
out: unknowns are deviations from the initial state, exactly 0 there.
Notation: N nodes, f free ones, c connections, half band width b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee

from neuropareto.problems.geothermal.edfm import Network
from neuropareto.problems.geothermal.fractures import Indices
from neuropareto.space import Array


class SimulationFailed(RuntimeError):
    """The equations of a simulation could not be solved to the promised accuracy."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where each connection goes in the band matrix of the free nodes.

    ``node`` (f,) is the node of each unknown; ``left`` and ``right`` (i,) are the unknowns of the
    ``inner`` connections, those between two free nodes; ``width`` is the half band width.
    """

    node: Indices
    inner: Indices
    left: Indices
    right: Indices
    width: int

    def __len__(self) -> int:
        return len(self.node)


def pattern(network: Network) -> Pattern:
    """Order the free nodes of a network for a narrow band."""
    free = np.flatnonzero(network.fixed == 0)
    place = np.full(network.nodes, -1, dtype=np.intp)
    place[free] = np.arange(len(free))
    left, right = place[network.connections.left], place[network.connections.right]
    inner = np.flatnonzero((left >= 0) & (right >= 0))
    ones = np.ones(len(inner))
    graph = coo_matrix((ones, (left[inner], right[inner])), (len(free), len(free))).tocsr()
    order = reverse_cuthill_mckee((graph + graph.T).tocsr(), symmetric_mode=True)
    node = free[order]
    place[node] = np.arange(len(node))
    left, right = place[network.connections.left[inner]], place[network.connections.right[inner]]
    width = int(np.abs(left - right).max(initial=0))
    return Pattern(np.asarray(node, dtype=np.intp), inner, left, right, width)


@dataclass(frozen=True, eq=False)
class Factors:
    """The LU factors of a band matrix with partial pivoting."""

    lu: Array
    pivots: Indices
    width: int

    def solve(self, b: Array) -> Array:
        """x with A x = b, (f,) or (f, k)."""
        x, info = lapack.dgbtrs(self.lu, self.width, self.width, b, self.pivots)
        if info != 0 or not np.isfinite(x).all():
            raise SimulationFailed("A linear solve gave values that are not finite numbers.")
        return np.asarray(x, dtype=np.float64)


def factorise(p: Pattern, diagonal: Array, to_left: Array, to_right: Array) -> Factors:
    """LU of the matrix with ``diagonal`` (f,), A[left, right] = ``to_left`` and
    A[right, left] = ``to_right`` (i,). Raises :class:`SimulationFailed` if it is singular.
    """
    n, b = len(p), p.width
    rows = 3 * b + 1
    band = np.zeros(n * rows)
    column = np.arange(n) * rows + 2 * b
    band[column] = diagonal
    band[column[p.right] + p.left - p.right] = to_left
    band[column[p.left] + p.right - p.left] = to_right
    lu, pivots, info = lapack.dgbtrf(band.reshape(n, rows).T, b, b, overwrite_ab=1)
    if info != 0:
        raise SimulationFailed("A linear system of the simulation is singular.")
    return Factors(lu, pivots, b)


def solve_symmetric(p: Pattern, diagonal: Array, off_diagonal: Array, b: Array) -> Array:
    """x with A x = b for the positive definite A with these entries. Raises as above."""
    n, rows = len(p), p.width + 1
    band = np.zeros(n * rows)
    band[np.arange(n) * rows] = diagonal
    low, high = np.minimum(p.left, p.right), np.maximum(p.left, p.right)
    band[low * rows + high - low] = off_diagonal
    _, x, info = lapack.dpbsv(band.reshape(n, rows).T, b, lower=1, overwrite_ab=1)
    if info != 0 or not np.isfinite(x).all():
        raise SimulationFailed("The flow equations are not positive definite.")
    return np.asarray(x, dtype=np.float64)
