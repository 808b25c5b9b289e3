"""Environmental selection of SPEA2 (Zitzler, Laumanns, Thiele 2001).

Fitness of row i: R_i + 1 / (d_i + 2). R_i adds up the strengths of its dominators, a strength being
the number of rows that a row dominates; d_i is the distance to the k-th nearest row, k = sqrt(n).
Notation: ``Z`` (n, m) objectives in comparable units, minimised.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from neuropareto.archive import Indices
from neuropareto.space import Array


def fitness(Z: Array) -> Array:
    """Strength fitness, (n,): below 1 exactly for the non-dominated rows; lower is better."""
    n = len(Z)
    below = (Z[:, None, :] <= Z[None]).all(axis=2) & (Z[:, None, :] < Z[None]).any(axis=2)
    raw = below.sum(axis=1) @ below
    kth = np.sort(cdist(Z, Z), axis=1)[:, min(int(np.sqrt(n)), n - 1)]
    return np.asarray(raw + 1.0 / (kth + 2.0))


def selected(Z: Array, n: int, penalty: Array) -> Indices:
    """n rows: the best by fitness plus ``penalty`` (len(Z),), best first.

    If more than n rows have a fitness below 1, the nearest of them are thinned out one by one.
    """
    score = fitness(Z) + penalty
    order = np.argsort(score, kind="stable")
    first = order[score[order] < 1.0]
    return _thinned(Z, first, n) if len(first) > n else order[:n]


def _thinned(Z: Array, rows: Indices, n: int) -> Indices:
    """Truncation: of the closest pair goes the one whose next neighbours are closer."""
    distance = cdist(Z[rows], Z[rows])
    np.fill_diagonal(distance, np.inf)
    alive = np.ones(len(rows), dtype=bool)
    for _ in range(len(rows) - n):
        i, j = np.unravel_index(distance.argmin(), distance.shape)
        goes = i if tuple(np.sort(distance[i])) < tuple(np.sort(distance[j])) else j
        distance[goes], distance[:, goes], alive[goes] = np.inf, np.inf, False
    return np.asarray(rows[alive])
