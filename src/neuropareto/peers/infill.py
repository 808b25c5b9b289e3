"""What peers share in choosing points to evaluate: k-means labels, best of each, new points, scales.

Notation: n candidates U (n, d) in the unit cube with objectives F (n, m).
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from neuropareto import pareto
from neuropareto.archive import Indices, new_rows
from neuropareto.space import Array


def clusters(X: Array, k: int, rng: np.random.Generator) -> Indices:
    """k-means labels of the rows of X, (n,), with at most k clusters."""
    distinct = len(np.unique(X, axis=0))
    found = KMeans(min(k, distinct), n_init=1, random_state=int(rng.integers(2**31))).fit(X)
    return np.asarray(found.labels_, dtype=np.int64)


def best_of_each(value: Array, part: Indices) -> Indices:
    """Rows with the smallest value in each part that has members, in order of the parts."""
    order = np.lexsort((value, part))
    _, first = np.unique(part[order], return_index=True)
    return np.asarray(order[first], dtype=np.int64)


def novel(U: Array, known: Array) -> Array:
    """The distinct rows of U that are not among the known ones, in order."""
    return np.asarray(U[new_rows(U, known)])


def front_extent(F: Array) -> Array:
    """The range of the non-dominated rows of F in each objective, (m,).

    Where the front is much narrower than the set, as with a single point, the set's range stands
    in, and 1 where that is no more than rounding.
    """
    front, whole = np.ptp(F[pareto.nondominated(F)], axis=0), np.ptp(F, axis=0)
    whole = np.where(whole > 1e-12 * np.abs(F).max(axis=0), whole, 1.0)
    return np.where(front > 1e-3 * whole, front, whole)


def uniform(n: int, d: int, rng: np.random.Generator) -> Array:
    """n random points of the unit cube, (n, d)."""
    return np.asarray(rng.random((n, d)), dtype=np.float64)
