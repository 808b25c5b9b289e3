"""The archive: every evaluation in order of arrival, as an immutable value.

Notation: n successful evaluations, d variables, m objectives, c constraints. ``U`` (n, d) in the
unit cube, ``F`` (n, m) minimised, ``G`` (n, c) with feasible <= 0, ``failed`` (k, d) the points
whose evaluation failed; a failure never enters F. :meth:`Archive.extended` shares storage with
its parent and updates the front from the parent's, so one arrival costs the front's size and not
the archive's. Paper: section "Problem definition" and "Estimation of the diversity score".
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from neuropareto import pareto
from neuropareto.space import Array

Indices = npt.NDArray[np.int64]


class _Rows:
    """Append-only rows with spare capacity, shared by an archive and its extensions.

    Rows below the length of any archive are never written again, so sharing is invisible.
    """

    def __init__(self, first: Array) -> None:
        self._store = first
        self._used = len(first)
        self._lock = threading.Lock()

    def view(self, n: int) -> Array:
        rows = self._store[:n]
        rows.setflags(write=False)
        return rows

    def appended(self, n: int, new: Array) -> _Rows:
        """Rows that hold the first n of these and then ``new``."""
        with self._lock:
            if self._used != n:  # somebody extended the same archive before: go separate ways
                return _Rows(np.concatenate([self._store[:n], new]))
            if n + len(new) > len(self._store):
                grown = np.empty((max(16, 2 * n, n + len(new)), self._store.shape[1]))
                grown[:n] = self._store[:n]
                self._store = grown
            self._store[n : n + len(new)] = new
            self._used = n + len(new)
            return self


@dataclass(frozen=True)
class Gains:
    """What each of the last arrivals brought: hypervolume (w,) and diversity (w,)."""

    hypervolume: Array
    diversity: Array


@dataclass(frozen=True, eq=False)
class Archive:
    """All evaluations so far; build it with :meth:`empty` or :meth:`of`, grow it by ``extended``."""

    d: int
    m: int
    c: int
    n: int
    _points: _Rows = field(repr=False)
    _values: _Rows = field(repr=False)
    _limits: _Rows = field(repr=False)
    _failures: _Rows = field(repr=False)
    n_failed: int = 0
    _known_front: tuple[Indices, int] | None = field(default=None, repr=False)

    @classmethod
    def empty(cls, d: int, m: int, c: int = 0) -> Archive:
        """An archive without evaluations."""
        return cls(
            d, m, c, 0, _Rows(np.empty((0, d))), _Rows(np.empty((0, m))), _Rows(np.empty((0, c))),
            _Rows(np.empty((0, d))),
        )  # fmt: skip

    @classmethod
    def of(
        cls, U: Array, F: Array, G: Array | None = None, failed: Array | None = None
    ) -> Archive:
        """An archive of evaluations (n, d), (n, m) and, with constraints, (n, c)."""
        U, F = np.asarray(U, dtype=np.float64), np.asarray(F, dtype=np.float64)
        c = 0 if G is None else np.asarray(G).shape[1]
        return cls.empty(U.shape[1], F.shape[1], c).extended(U, F, G, failed)

    def extended(
        self, U: Array, F: Array, G: Array | None = None, failed: Array | None = None
    ) -> Archive:
        """This archive with more evaluations, in order of arrival; this one stays as it is."""
        G = np.empty((len(U), 0)) if G is None else np.asarray(G, dtype=np.float64)
        failed = np.empty((0, self.d)) if failed is None else np.asarray(failed, dtype=np.float64)
        U, F = np.asarray(U, dtype=np.float64), np.asarray(F, dtype=np.float64)
        if (
            U.shape != (len(U), self.d)
            or F.shape != (len(U), self.m)
            or G.shape != (len(U), self.c)
        ):
            raise ValueError(
                f"New evaluations must have shapes (n, {self.d}), (n, {self.m}) and (n, {self.c}), "
                f"got {U.shape}, {F.shape} and {G.shape}."
            )
        if not (np.isfinite(U).all() and np.isfinite(F).all() and np.isfinite(G).all()):
            raise ValueError(
                "An archive holds finite numbers only, got NaN or inf; record the point as failed."
            )
        known = self.__dict__.get("front_indices")
        return Archive(
            self.d,
            self.m,
            self.c,
            self.n + len(U),
            self._points.appended(self.n, U),
            self._values.appended(self.n, F),
            self._limits.appended(self.n, G),
            self._failures.appended(self.n_failed, failed),
            self.n_failed + len(failed),
            self._known_front if known is None else (known, self.n),
        )

    def __len__(self) -> int:
        """The number of successful evaluations."""
        return self.n

    @cached_property
    def U(self) -> Array:
        """Evaluated points in the unit cube, (n, d), read-only."""
        return self._points.view(self.n)

    @cached_property
    def F(self) -> Array:
        """Their objectives, (n, m), minimised, read-only."""
        return self._values.view(self.n)

    @cached_property
    def G(self) -> Array:
        """Their constraints, (n, c), feasible where <= 0, read-only."""
        return self._limits.view(self.n)

    @cached_property
    def failed(self) -> Array:
        """Points whose evaluation failed, (k, d), read-only."""
        return self._failures.view(self.n_failed)

    @property
    def outputs(self) -> Array:
        """Objectives and constraints side by side, (n, m + c): what a surrogate has to predict."""
        return np.concatenate([self.F, self.G], axis=1) if self.c else self.F

    @cached_property
    def violation(self) -> Array:
        """Total constraint violation of each point, (n,); 0 for a feasible one."""
        with np.errstate(over="ignore"):
            total = np.maximum(self.G, 0.0).sum(axis=1)
        return _readonly(np.minimum(total, np.finfo(np.float64).max))

    @cached_property
    def ranks(self) -> Indices:
        """Non-domination rank of each point from 1; infeasible points follow all feasible ones."""
        ranks = (
            pareto.constrained_ranks(self.F, self.violation) if self.c else pareto.ranks(self.F)
        )
        ranks.setflags(write=False)
        return ranks

    @cached_property
    def front_indices(self) -> Indices:
        """Rows of the feasible points that no other feasible point dominates, in arrival order."""
        known, n_known = self._known_front or (np.empty(0, dtype=np.int64), 0)
        new = np.arange(n_known, self.n, dtype=np.int64)
        if self.c:
            new = new[(self.G[n_known:] <= 0.0).all(axis=1)]
        if len(new) == 1:
            front = pareto.front_after(known, self.F, int(new[0]))
        else:
            rows = np.concatenate([known, new])
            front = rows[pareto.nondominated(self.F[rows])] if len(rows) else rows
        front = np.array(front, dtype=np.int64)
        front.setflags(write=False)
        return front

    @property
    def front(self) -> Array:
        """Objectives of the present front, (k, m)."""
        return np.asarray(self.F[self.front_indices])

    @cached_property
    def reference_point(self) -> Array:
        """The front's worst values plus a tenth of its extent, (m,).

        Where the front has no extent in an objective, the archive's extent stands in (or 1).
        """
        if not self.n:
            return _readonly(np.ones(self.m))
        front = self.front if len(self.front_indices) else self.F
        extent = np.ptp(front, axis=0)
        extent = np.where(extent > 0, extent, np.ptp(self.F, axis=0))
        extent = np.where(extent > 0, extent, 1.0)
        return _readonly(front.max(axis=0) + 0.1 * extent)

    def labels(self, k: int) -> Indices:
        """Rank classes 1..k for the classifier, (n,).

        Class 1 is the non-dominated front. The others are sorted by rank and, within a rank, by
        crowding (lonelier first), and cut into k - 1 classes whose sizes differ by at most one.
        Decision D-8.
        """
        labels = np.ones(self.n, dtype=np.int64)
        rest = np.flatnonzero(self.ranks > 1)
        if len(rest):
            lonely = np.zeros(len(rest))
            for rank in np.unique(self.ranks[rest]):
                same = self.ranks[rest] == rank
                lonely[same] = pareto.crowding(self.F[rest[same]])
            order = rest[np.lexsort((-lonely, self.ranks[rest]))]
            labels[order] = 2 + (np.arange(len(rest)) * (k - 1)) // len(rest)
        return labels

    def gains(self, last: int, reference: Array | None = None) -> Gains:
        """Hypervolume and diversity gain of each of the last arrivals, (w,) with w <= last.

        Delta_HV,i = HV(A_i) - HV(A_{i-1}) at one reference point for all (the archive's own if none
        is given), Delta_div,i = D(A_i) - D(A_{i-1}) with D the average crowding distance.
        Paper: Eqs. div_gain, avg_crowding.
        """
        reference = self.reference_point if reference is None else reference
        first = max(0, self.n - last)
        feasible = self.violation == 0
        before = np.flatnonzero(feasible[:first])
        front = before[pareto.nondominated(self.F[before])] if len(before) else before
        hypervolume, diversity = np.zeros(self.n - first), np.zeros(self.n - first)
        spread = pareto.average_crowding(self.F[:first])
        for i in range(first, self.n):
            after = pareto.front_after(front, self.F, i) if feasible[i] else front
            if after is not front:  # a dominated arrival gains nothing
                new = self.F[i : i + 1]
                hypervolume[i - first] = pareto.improvement(new, self.F[front], reference)[0]
                front = after
            wider = pareto.average_crowding(self.F[: i + 1])
            diversity[i - first], spread = wider - spread, wider
        return Gains(hypervolume, diversity)


def _readonly(array: Array) -> Array:
    array.setflags(write=False)
    return array


def new_rows(U: Array, known: Array) -> Indices:
    """Rows of U (n, d) that are not among the ``known`` (k, d), each point once, in order."""
    _, first = np.unique(np.concatenate([known, U]), axis=0, return_index=True)
    return np.asarray(np.sort(first[first >= len(known)]) - len(known), dtype=np.int64)
