"""Hypervolume: of a set, of each of its points, and what candidates would add to it.

Paper: the HV metric of the experiments and the gain Delta HV of Sec. Method. Notation: n points,
m objectives (1 to 8, minimised), k points on a front; ``F`` (n, m), ``reference`` (m,). A point
that is not below the reference point in every objective counts nothing. All values are exact: no
sampling. moocore computes where it is fastest; benchmarks/pareto.md has the measurements.
"""

from __future__ import annotations

import heapq

import moocore
import numpy as np
import numpy.typing as npt

from neuropareto.space import Array, numbers

Indices = npt.NDArray[np.int64]

MOST_OBJECTIVES = 8
# A box list longer than this many numbers (64 MB) is given up for one moocore call per candidate.
_BOX_NUMBERS = 2**23
# Pairs of candidate and box handled at once: small enough to stay in the processor's cache.
_PAIRS, _LEAF = 2**14, 32
# Bounds of earlier rounds are computed along another path, so they may be off by rounding.
_ROUNDING = 1e-12


def checked_rows(F: npt.ArrayLike, what: str = "F") -> Array:
    """``F`` as an own float64 array (n, m) of finite numbers, or a ValueError naming the row."""
    rows = numbers(F, what)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(
            f"{what} must have shape (n, m), one row per point and one column per objective, got "
            f"shape {rows.shape}; reshape it."
        )
    finite = np.isfinite(rows)
    if not finite.all():
        row = int(np.flatnonzero(~finite.all(axis=1))[0])
        raise ValueError(
            f"{what} must be finite numbers, got {rows[row].tolist()} in row {row}; leave failed "
            "evaluations out."
        )
    return np.ascontiguousarray(rows)


def hypervolume(F: npt.ArrayLike, reference: npt.ArrayLike) -> float:
    """The volume dominated by F (n, m) up to the reference point (m,).

    HV(F, z) = measure of the union of the boxes [f, z]. Raises ValueError for a row or reference
    that is not finite, or for more than 8 objectives.
    """
    rows, z = _inside(F, "F", reference)
    return _volume(rows, z)


def contributions(F: npt.ArrayLike, reference: npt.ArrayLike) -> Array:
    """What the set would lose without each point alone, HV(F) - HV(F without row i); (n,).

    A dominated or repeated row contributes 0. A dominated row still lowers the contribution of the
    one point that dominates it, as the definition says.
    """
    rows = checked_rows(F)
    z = _checked_reference(reference, rows.shape[1])
    within = np.flatnonzero((rows < z).all(axis=1))
    lost = np.zeros(len(rows))
    if len(within):
        lost[within] = _contributions(rows[within], z)
    return lost


def improvement(
    candidates: npt.ArrayLike, front: npt.ArrayLike, reference: npt.ArrayLike
) -> Array:
    """The hypervolume each candidate alone would add: HV(front + c) - HV(front); (n,).

    ``candidates`` (n, m), ``front`` (k, m); the front may hold dominated rows. Zero exactly where
    the front weakly dominates the candidate or the candidate is outside the reference point.
    Paper: Delta HV of Sec. Method.
    """
    C = checked_rows(candidates, "Candidates")
    P, z = _inside(front, "The front", reference)
    _same_width(C, P)
    n, m = C.shape
    if m == 1:
        return np.asarray(np.maximum(P.min(initial=z[0]) - C[:, 0], 0.0))
    if m == 2 and n > 2:
        return _improvement_2d(C, P[_strictly_nondominated(P)], z)
    # Measured crossover: building the boxes pays for itself after about this many candidates.
    if m > 2 and n > (30 if m > 5 else 10 + min(len(P), 300)):
        boxes = _boxes(P[_strictly_nondominated(P)], z)
        if boxes is not None:
            return _box_volumes(C, *boxes)
    return np.array([_gain(c, P, z) for c in C], dtype=np.float64)


def greedy_improvement(
    candidates: npt.ArrayLike,
    front: npt.ArrayLike,
    reference: npt.ArrayLike,
    q: int,
    pending: npt.ArrayLike | None = None,
) -> Indices:
    """q different candidates, each the one that adds most hypervolume to those before it; (q,).

    ``pending`` (p, m) counts as already on the front. Gains only shrink as points are added, so an
    old gain bounds the present one and only the leaders are computed again: the choice is that of
    plain greedy search. Equal gains go to the lower index. When nothing adds hypervolume any more,
    the rest follow by additive epsilon, min over front points p of max_j (c_j - p_j) / scale_j,
    with vectors already chosen or pending last. Raises ValueError if q is not in 0..n.
    """
    C = checked_rows(candidates, "Candidates")
    if not 0 <= q <= len(C):
        raise ValueError(
            f"q must lie between 0 and the number of candidates, {len(C)}, got {q}; offer more."
        )
    P = checked_rows(front, "The front")
    z = _checked_reference(reference, C.shape[1])
    waiting = P[:0] if pending is None else checked_rows(pending, "Pending")
    _same_width(C, P)
    _same_width(C, waiting)
    known = np.vstack([P, waiting])
    chosen = _lazy_greedy(C, known, z, q)
    if len(chosen) < q:
        rest = np.setdiff1d(np.arange(len(C)), chosen)
        taken = np.vstack([waiting, C[chosen]])
        repeats = (C[rest, None, :] == taken[None]).all(axis=2).any(axis=1)
        order = np.lexsort((_additive_epsilon(C[rest], known, z), repeats))
        chosen = chosen + rest[order][: q - len(chosen)].tolist()
    return np.array(chosen, dtype=np.int64)


def _checked_reference(reference: npt.ArrayLike, m: int) -> Array:
    z = numbers(reference, "The reference point")
    if z.shape != (m,) or not np.isfinite(z).all():
        raise ValueError(
            f"The reference point needs {m} finite values, one per objective, got {z.tolist()}."
        )
    if m > MOST_OBJECTIVES:
        raise ValueError(
            f"Hypervolume is computed for 1 to {MOST_OBJECTIVES} objectives, got {m}; use IGD."
        )
    return z


def _same_width(C: Array, other: Array) -> None:
    if C.shape[1] != other.shape[1]:
        raise ValueError(
            f"Candidates, front and pending must have equally many objectives, got {C.shape[1]} "
            f"and {other.shape[1]}."
        )


def _inside(F: npt.ArrayLike, what: str, reference: npt.ArrayLike) -> tuple[Array, Array]:
    """The rows of F below the reference point in every objective, and the reference point."""
    rows = checked_rows(F, what)
    z = _checked_reference(reference, rows.shape[1])
    return rows[(rows < z).all(axis=1)], z


def _strictly_nondominated(F: Array) -> npt.NDArray[np.bool_]:
    """True for one copy of each non-dominated row."""
    return np.asarray(moocore.is_nondominated(F), dtype=np.bool_)


def _volume(rows: Array, z: Array) -> float:
    if not len(rows):
        return 0.0
    if len(z) == 1:
        return float(z[0] - rows.min())
    return float(moocore.hypervolume(rows, ref=z))


def _gain(c: Array, P: Array, z: Array) -> float:
    """The gain of one candidate: its own box less what the front covers of it."""
    # The difference of two equal volumes is rounding, so a covered candidate is told apart first.
    if not (c < z).all() or (c >= P).all(axis=1).any():
        return 0.0
    return max(float(np.prod(z - c)) - _volume(np.maximum(c, P), z), 0.0)


def _contributions(rows: Array, z: Array) -> Array:
    m = len(z)
    if m == 2:
        return np.asarray(moocore.hv_contributions(rows, ref=z, ignore_dominated=False))
    first = np.asarray(moocore.is_nondominated(rows, keep_weakly=True))
    if m in (3, 4):  # without dominated rows, ignoring them is the same and far faster
        ignore = bool(first.all())
        return np.asarray(moocore.hv_contributions(rows, ref=z, ignore_dominated=ignore))
    # What a third layer covers, the second covers too, whichever point of the first is left out.
    front, second = rows[first], rows[~first]
    second = second[_strictly_nondominated(second)]
    others = [np.vstack([np.delete(front, i, axis=0), second]) for i in range(len(front))]
    lost = np.zeros(len(rows))
    lost[first] = [_gain(f, other, z) for f, other in zip(front, others, strict=True)]
    return lost


def _improvement_2d(C: Array, P: Array, z: Array) -> Array:
    """Closed form over vertical strips: strip j lies left of right[j] and below top[j]."""
    P = P[np.argsort(P[:, 0])]
    right, top = np.append(P[:, 0], z[0]), np.concatenate([z[1:], P[:, 1]])
    x, y = C[:, 0], C[:, 1]
    first = np.searchsorted(P[:, 0], x, side="right")
    last = np.maximum(np.searchsorted(-top, -y, side="left"), 1) - 1
    # Heights are counted down from the reference, so a shift of both objectives changes nothing.
    covered = np.cumsum(np.diff(right, prepend=right[0]) * (z[1] - top))
    whole = (z[1] - y) * (right[last] - right[first]) - (covered[last] - covered[first])
    gain = (right[first] - x) * (top[first] - y) + np.maximum(whole, 0.0)
    return np.where((x < z[0]) & (y < top[first]), gain, 0.0)


def _boxes(P: Array, z: Array) -> tuple[Array, Array] | None:
    """Disjoint boxes that fill the region below z which P leaves undominated; (m, b) each.

    Keeps the local upper bounds U of the points so far and, for each bound u and objective i, a
    point Z[i] with Z[i]_i = u_i; a new point replaces every bound above it by up to m lower ones
    (Lacour, Klamroth and Fonseca 2017). The box of u reaches from max over i < j of Z[i]_j up to
    u_j (Daechert et al. 2017). Returns None when there are too many.
    """
    m, n = len(z), 1
    U, Z = np.empty((m, 64)), np.full((64, m, m), -np.inf)
    U[:, 0] = z
    for p in P:
        # Strict < here and >= below act as if ties were broken by arrival: no box is lost to a
        # tie, and those that a tie adds have no volume.
        hit = (p[:, None] < U[:, :n]).all(axis=0).nonzero()[0]
        defining = Z[hit]
        bound, j = (p >= defining.max(axis=1)).nonzero()
        at, lower, points = np.arange(len(bound)), U[:, hit[bound]], defining[bound]
        lower[j, at] = p[j]
        points[at, j] = p
        points[at, j, j] = -np.inf  # Z[j]_j is u_j itself and must not count in the maxima
        size = n - len(hit) + len(bound)
        if size * m * m > _BOX_NUMBERS:
            return None
        if size > U.shape[1]:
            U, Z = np.pad(U, ((0, 0), (0, size))), np.pad(Z, ((0, size), (0, 0), (0, 0)))
        slots = np.concatenate([hit, np.arange(n, size)])[: len(bound)]
        U[:, slots], Z[slots] = lower, points
        if len(bound) < len(hit):
            keep = np.delete(np.arange(n), hit[len(bound) :])
            U[:, :size], Z[:size] = U[:, keep], Z[keep]
        n = size
    low = np.full((m, n), -np.inf)
    for i in range(1, m):
        low[i] = Z[:n, :i, i].max(axis=1)
    solid = (low < U[:, :n]).all(axis=0)
    return low[:, solid], U[:, :n][:, solid]


def _box_volumes(C: Array, low: Array, high: Array) -> Array:
    """The volume above each candidate in the boxes, (n,).

    Candidates are halved along their widest objective, and each half keeps only the boxes it can
    reach, until a group fits the cache.
    """
    total = np.zeros(len(C))
    work = [(np.arange(len(C)), low, high)]
    while work:
        group, low, high = work.pop()
        points = C[group]
        least = points.min(axis=0)
        reached = (high > least[:, None]).all(axis=0)
        if np.count_nonzero(reached) < 0.8 * len(reached):
            low, high = low[:, reached], high[:, reached]
        if len(group) <= _LEAF or len(group) * high.shape[1] <= _PAIRS:
            total[group] = _overlaps(points, low, high)
            continue
        widest = int(np.argmax(points.max(axis=0) - least))
        half = len(group) // 2
        order = np.argpartition(points[:, widest], half)
        work += [(group[order[:half]], low, high), (group[order[half:]], low, high)]
    return total


def _overlaps(C: Array, low: Array, high: Array) -> Array:
    """Sum over boxes of prod_j (high_j - max(low_j, c_j))+ for each candidate, (n,)."""
    product = np.maximum(high[0] - C[:, :1], 0.0)
    side = np.empty_like(product)
    for j in range(1, len(high)):
        np.maximum(low[j], C[:, j : j + 1], out=side)
        np.subtract(high[j], side, out=side)
        np.maximum(side, 0.0, out=side)
        if j < len(high) - 1:
            product *= side
    return np.asarray(np.einsum("ij,ij->i", product, side))


def _lazy_greedy(C: Array, known: Array, z: Array, q: int) -> list[int]:
    """Up to q greedy choices, stopping where nothing adds hypervolume."""
    front = known[(known < z).all(axis=1)]
    front = front[_strictly_nondominated(front)]
    slack = _ROUNDING * np.prod(np.maximum(z - C, 0.0), axis=1)
    gains = improvement(C, front, z)
    heap = [(-(gains[i] + slack[i]), int(i)) for i in np.flatnonzero(gains > 0)]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < q:
        best, leader, seen = 0.0, -1, []
        while heap and -heap[0][0] >= best:
            i = heapq.heappop(heap)[1]
            gain = _gain(C[i], front, z)
            seen.append((gain, i))
            if gain > best or (gain == best and i < leader):
                best, leader = gain, i
        for gain, i in seen:
            if i != leader and gain > 0:
                heapq.heappush(heap, (-(gain + slack[i]), i))
        if leader >= 0:
            chosen.append(leader)
            front = np.vstack([front[~(C[leader] <= front).all(axis=1)], C[leader]])
    return chosen


def _additive_epsilon(C: Array, P: Array, z: Array) -> Array:
    """How far each candidate must be improved to weakly dominate some point of P, (n,).

    In units of the extent of P and the reference point; with no P, the reference stands in for it.
    """
    goals = P if len(P) else z[None]
    extent = np.ptp(np.vstack([goals, z]), axis=0)
    scale = np.where(extent > 0, extent, 1.0)
    goals, scaled = goals[_strictly_nondominated(goals)] / scale, C / scale
    nearest = np.full(len(C), np.inf)
    for p in goals:
        np.minimum(nearest, (scaled - p).max(axis=1), out=nearest)
    return nearest
