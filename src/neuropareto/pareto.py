"""Dominance, ranks, crowding, the front as it grows, IGD; and hypervolume from its own file.

Paper: Sec. Problem definition, Sec. Estimation of Diversity Score, the IGD metric. Notation: n
points, m objectives, k points on a front; ``F`` (n, m) objectives, all minimised. Every function
is pure, takes whatever reads as a matrix of finite numbers and refuses the rest with a ValueError
that names the row. moocore (C) computes where it is fastest; benchmarks/pareto.md says where.
"""

from __future__ import annotations

from bisect import bisect_right
from math import isfinite

import moocore
import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from neuropareto.hypervolume import (
    checked_rows,
    contributions,
    greedy_improvement,
    hypervolume,
    improvement,
)
from neuropareto.space import Array, numbers

__all__ = [
    "average_crowding",
    "constrained_ranks",
    "contributions",
    "crowding",
    "dominates",
    "front_after",
    "front_exits",
    "greedy_improvement",
    "hypervolume",
    "igd",
    "igd_history",
    "igd_plus",
    "improvement",
    "nondominated",
    "ranks",
]

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Pairs of points compared at once: a bound on memory (2 MB of float64).
_PAIRS = 2**18
# Tiles of the distance history; a width that is a power of two makes the cache twice as slow.
_TALL, _WIDE = 128, 1000


def dominates(a: npt.ArrayLike, b: npt.ArrayLike) -> bool:
    """Whether a (m,) is nowhere worse than b (m,) and somewhere better. Paper: Eq. dominance."""
    first, second = checked_rows(numbers(a, "a")[None])[0], checked_rows(numbers(b, "b")[None])[0]
    if first.shape != second.shape:
        raise ValueError(
            f"Both points need the same number of objectives, got {len(first)} and {len(second)}."
        )
    return bool((first <= second).all() and (first < second).any())


def nondominated(F: npt.ArrayLike) -> Mask:
    """True where no other row dominates the row; copies of such a row are all True; (n,)."""
    return np.asarray(moocore.is_nondominated(checked_rows(F), keep_weakly=True), dtype=np.bool_)


def ranks(F: npt.ArrayLike) -> Indices:
    """Non-domination ranks from 1, (n,): rank r is non-dominated once ranks below r are removed.

    Equal rows share a rank.
    """
    rows = checked_rows(F)
    if not len(rows):
        return np.empty(0, dtype=np.int64)
    if _many_fronts(rows):
        return _ranks_3d(rows)
    return np.asarray(moocore.pareto_rank(rows), dtype=np.int64) + 1


def constrained_ranks(F: npt.ArrayLike, violation: npt.ArrayLike) -> Indices:
    """Ranks from 1 with feasible rows (violation 0) first, by dominance; (n,).

    Infeasible rows follow in order of their total violation (n,); equal violation, equal rank.
    Raises ValueError if a violation is negative or not finite.
    """
    rows, total = checked_rows(F), numbers(violation, "Violations")
    if total.shape != (len(rows),):
        raise ValueError(
            f"Violations must be one number per row, shape ({len(rows)},), got {total.shape}."
        )
    bad = np.flatnonzero(~(np.isfinite(total) & (total >= 0)))
    if len(bad):
        raise ValueError(
            f"A violation must be a finite number >= 0, got {total[bad[0]]} in row {bad[0]}; sum "
            "the positive parts of the constraints."
        )
    feasible = total == 0
    result = np.empty(len(rows), dtype=np.int64)
    result[feasible] = ranks(rows[feasible])
    last = result[feasible].max(initial=0)
    result[~feasible] = last + 1 + np.unique(total[~feasible], return_inverse=True)[1]
    return result


def crowding(F: npt.ArrayLike, boundary: float = np.inf) -> Array:
    """Crowding distance of each row, (n,). Paper: Eq. crowding_per_point.

    CD_k = sum_j (f_j^(k+1) - f_j^(k-1)) / (max f_j - min f_j), neighbours in the order of
    objective j, equal values in order of arrival. An objective without range adds 0. A row that is
    first or last in an objective with range lacks a neighbour and gets ``boundary``; so does a
    lone row.
    """
    rows = checked_rows(F)
    n, m = rows.shape
    if n == 1:
        return np.full(1, float(boundary))
    distance, extreme = np.zeros(n), np.zeros(n, dtype=np.bool_)
    for j in range(m if n else 0):
        order = np.argsort(rows[:, j], kind="stable")
        value = rows[order, j]
        extent = value[-1] - value[0]
        if extent > 0:
            distance[order[1:-1]] += (value[2:] - value[:-2]) / extent
            extreme[order[[0, -1]]] = True
    distance[extreme] = boundary
    return distance


def crowding_by_rank(F: npt.ArrayLike, ranks: npt.NDArray[np.int64]) -> Array:
    """The crowding distance of each row among the rows of its own rank, (n,)."""
    F = np.asarray(F, dtype=np.float64)
    found = np.zeros(len(F))
    for rank in np.unique(ranks):
        same = ranks == rank
        found[same] = crowding(F[same])
    return found


def average_crowding(F: npt.ArrayLike) -> float:
    """Mean crowding distance D(A) of a set, finite for every n. Paper: Eq. avg_crowding.

    An extreme's one gap counts twice, as if its missing neighbour were the mirror image of the one
    it has. The sum of neighbour gaps telescopes: with gaps a_j and b_j at the two ends of objective
    j, D = (1 / n) sum_j (2 + (a_j + b_j) / range_j), so D says nothing about the inside of the set.
    Objectives without range add 0.
    """
    rows = checked_rows(F)
    n = len(rows)
    if n < 2:
        return 0.0
    ends = np.partition(rows, sorted({0, 1, n - 2, n - 1}), axis=0)
    extent = ends[-1] - ends[0]
    spread = extent > 0
    gaps = (ends[1] - ends[0] + ends[-1] - ends[-2])[spread]
    return float((2.0 + gaps / extent[spread]).sum() / n)


def front_after(front: Indices, F: Array, new: int) -> Indices:
    """The front's row indices after row ``new`` of F arrived, in order of arrival; O(k m).

    ``front`` (k,) holds the indices of the front before. It is returned as it is when the new row
    is dominated; otherwise the rows that the new one dominates leave. Raises ValueError if the new
    row is not finite.
    """
    values = F[new].tolist()
    if not all(map(isfinite, values)):
        raise ValueError(
            f"F must be finite numbers, got {values} in row {new}; leave failed evaluations out."
        )
    if not len(front):
        return np.array([new], dtype=np.int64)
    old = F[front]
    # By column: numpy reduces a short last axis several times slower.
    below = old[:, 0] <= values[0]
    for j in range(1, len(values)):
        below &= old[:, j] <= values[j]
    first = int(below.argmax())
    if below[first]:
        # It dominates the new row or is a copy of it; beside a copy, no other row can dominate.
        if old[first].tolist() != values:
            return front
        return np.append(front, np.int64(new))
    above = old[:, 0] >= values[0]
    for j in range(1, len(values)):
        above &= old[:, j] >= values[j]
    return np.append(front[~above], np.int64(new))


def front_exits(F: npt.ArrayLike) -> Indices:
    """When each row leaves the front if rows arrive one by one, in a single pass; (n,).

    exits[i] = i if row i is dominated on arrival, the index of the arrival that dominates it if it
    leaves later, n if it never leaves. The front of the first t rows is
    ``np.flatnonzero(exits[:t] >= t)``.
    """
    rows = checked_rows(F)
    n = len(rows)
    exits = np.full(n, n, dtype=np.int64)
    front, start = np.empty(0, dtype=np.int64), 0
    while start < n:
        stop = min(n, start + max(256, len(front)))
        both = np.concatenate([front, np.arange(start, stop)])
        alive = nondominated(rows[both])
        arrivals = rows[start:stop]
        leavers = front[~alive[: len(front)]]
        exits[leavers] = start + _first_dominator(rows[leavers], arrivals)
        losers = start + np.flatnonzero(~alive[len(front) :])
        late = _first_dominator(rows[losers], rows[front]) == len(front)
        exits[losers[~late]] = losers[~late]
        losers = losers[late]
        # A dominator that came before the row means that the row was dominated on arrival.
        exits[losers] = np.maximum(losers, start + _first_dominator(rows[losers], arrivals))
        front, start = both[alive], stop
    return exits


def igd(F: npt.ArrayLike, front: npt.ArrayLike) -> float:
    """Mean distance from each point of the true front to its nearest row of F.

    IGD = (1 / |P|) sum over p in P of min_i ||p - F_i||. Paper: the IGD metric. ``front`` (p, m).
    Raises ValueError if either has no rows.
    """
    rows, P = _pair(F, front)
    # Measured: a tree wins once F has more than about this many rows.
    if len(rows) > 40 + 30 * rows.shape[1]:
        return float(np.mean(cKDTree(rows).query(P)[0]))
    return float(moocore.igd(rows, ref=P))


def igd_plus(F: npt.ArrayLike, front: npt.ArrayLike) -> float:
    """IGD with only the worse part of each difference: mean_p min_i ||max(F_i - p, 0)||."""
    rows, P = _pair(F, front)
    # A dominated row is never nearer in this distance than the row that dominates it.
    return float(moocore.igd_plus(rows[moocore.is_nondominated(rows)], ref=P))


def igd_history(F: npt.ArrayLike, front: npt.ArrayLike) -> Array:
    """IGD of the first i rows of F for i = 1..n, in one pass; (n,)."""
    rows, P = checked_rows(F), checked_rows(front, "The front")
    if not len(rows):
        return np.empty(0)
    _pair(rows[:1], P)
    total = np.zeros(len(rows))
    for first in range(0, len(P), _WIDE):
        part = P[first : first + _WIDE]
        nearest = np.full(len(part), np.inf)
        for start in range(0, len(rows), _TALL):
            distance = cdist(rows[start : start + _TALL], part)
            np.minimum(distance[0], nearest, out=distance[0])
            np.minimum.accumulate(distance, axis=0, out=distance)
            nearest = distance[-1]
            total[start : start + _TALL] += distance.sum(axis=1)
    return total / len(P)


def _pair(F: npt.ArrayLike, front: npt.ArrayLike) -> tuple[Array, Array]:
    rows, P = checked_rows(F), checked_rows(front, "The front")
    if not len(rows) or not len(P) or rows.shape[1] != P.shape[1]:
        raise ValueError(
            "F and the front must have rows, and equally many objectives, got shapes "
            f"{rows.shape} and {P.shape}."
        )
    return rows, P


def _first_dominator(A: Array, B: Array) -> Indices:
    """The first row of B that dominates each row of A, or len(B) if none does; (len(A),)."""
    first = np.full(len(A), len(B), dtype=np.int64)
    step = max(1, _PAIRS // max(1, len(B)))
    for start in range(0, len(A) if len(B) else 0, step):
        part = A[start : start + step]
        covers, equals = B[:, 0] <= part[:, :1], B[:, 0] == part[:, :1]
        for j in range(1, A.shape[1]):
            covers &= B[:, j] <= part[:, j : j + 1]
            equals &= B[:, j] == part[:, j : j + 1]
        covers &= ~equals
        found = covers.any(axis=1)
        first[start : start + step][found] = covers[found].argmax(axis=1)
    return first


def _many_fronts(rows: Array) -> bool:
    """Whether a large three-objective set has so many ranks that peeling them is the slower way.

    A sample of 1000 rows tells: the number of ranks grows about as n^0.4 from there, and peeling
    costs about 3 ns per row and rank against 2.7 us per row for the staircases (measured).
    """
    n, m = rows.shape
    if m != 3 or n < 10_000:
        return False
    sample = rows[:: n // 1000]
    return bool(moocore.pareto_rank(sample).max() * (n / len(sample)) ** 0.4 > 900)


def _ranks_3d(rows: Array) -> Indices:
    """Ranks from 1 of three-objective rows in O(n log^2 n), however many ranks there are.

    Rows are taken in lexicographic order, so only earlier ones can dominate and the first
    objective is settled. Each rank keeps the staircase of its second and third objectives. A row
    that a rank dominates is dominated by every lower one, so its rank is found by bisection.
    """
    order = np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))
    seconds: list[list[float]] = []
    thirds: list[list[float]] = []
    found, previous, rank = [], None, 0
    for row in rows[order].tolist():
        if row != previous:
            rank, previous = _place(row[1], row[2], seconds, thirds), row
        found.append(rank)
    result = np.empty(len(rows), dtype=np.int64)
    result[order] = found
    return result + 1


def _place(y: float, z: float, seconds: list[list[float]], thirds: list[list[float]]) -> int:
    """The rank (from 0) of the next row, which joins that rank's staircase."""
    low, high = 0, len(seconds)
    while low < high:
        middle = (low + high) // 2
        at = bisect_right(seconds[middle], y)
        if at and thirds[middle][at - 1] <= z:
            low = middle + 1
        else:
            high = middle
    if low == len(seconds):
        seconds.append([])
        thirds.append([])
    steps, heights = seconds[low], thirds[low]
    first = last = bisect_right(steps, y)
    if first and steps[first - 1] == y:
        first -= 1
    while last < len(steps) and heights[last] >= z:
        last += 1
    steps[first:last], heights[first:last] = [y], [z]
    return low
