"""MCEA/D: decomposition into sub-problems, each with a classifier of its own.

Each sub-problem's support vector machine learns which evaluated points are the best of its
neighbourhood; of ten differential children the first that it accepts is evaluated, or the one with
the highest score. Source: T. Sonoda, M. Nakata, "Multiple classifiers-assisted evolutionary
algorithm based on decomposition for high-dimensional multiobjective problems", TEVC 2022.
Notation: N weights W (N, m) with neighbourhoods (N, T); V (n, N) Chebyshev values of the archive's n
rows; x_i the archive row that stands for sub-problem i.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.svm import SVC

from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive, Indices
from neuropareto.memory import Memory
from neuropareto.peers.operators import de_current
from neuropareto.problems.fronts import simplex_lattice
from neuropareto.randomness import Streams
from neuropareto.space import Array


@dataclass(frozen=True)
class MCEAD:
    """MCEA/D: 10 children a visit, C = 1, kernel exp(-2 |x - y|^2), at most 2 replacements.

    One visit of a sub-problem is one evaluation; sub-problems take turns. An infeasible point has
    a larger Chebyshev value than every feasible one, in the order of violation.
    """

    subproblems: int = 50
    p_neighbours: float = 0.9
    replacements: int = 2
    attempts: int = 10
    C: float = 1.0
    gamma: float = 2.0
    eta_mutation: float = 20.0
    batch: int = 1

    def propose(
        self,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal:
        """One child for each of the next q sub-problems."""
        generator = rng("mcea-d")
        if len(archive) < 4:  # an accepting classifier needs both kinds, a step three parents
            return Proposal(np.asarray(generator.random((q, archive.d)), dtype=np.float64))
        began = time.perf_counter()
        W = np.maximum(simplex_lattice(self.subproblems, archive.m), 1e-6)
        near = neighbourhoods(W, math.ceil(len(W) / 10))
        V = chebyshev(archive.F, W, archive.violation)
        waiting, arrivals = _arrived(archive, pending, memory, len(W))
        if arrivals is None:
            population = assigned(V, generator)
        else:
            population = self._replaced(arrivals, V, near, generator)
        # Counting all points ever proposed makes the turns independent of memory.
        turn = len(archive) + archive.n_failed + len(pending)
        visits = (turn + np.arange(q)) % len(W)
        wide = generator.random(q) >= self.p_neighbours
        known, chosen, accepted = np.concatenate([archive.U, pending]), [], 0
        for i, anywhere in zip(visits, wide, strict=True):
            pool = np.arange(len(W)) if anywhere else near[i]
            trials = self._trials(archive.U[population], int(i), pool, generator)
            score = self._scores(archive.U, trials, positives(V, near[i]))
            # Where mates are one and the same point a child may be a copy: nothing to learn there.
            score[cdist(trials, known).min(axis=1) == 0.0] = -np.inf
            pick = int(np.argmax(score > 0)) if (score > 0).any() else int(np.argmax(score))
            accepted += int(score[pick] > 0)
            known = np.concatenate([known, trials[pick : pick + 1]])
            chosen.append(trials[pick])
        U = np.array(chosen).reshape(q, archive.d)
        left = {
            "population": population,
            "seen": np.array([len(archive)]),
            "waiting": np.concatenate([waiting.U, U]),
            "visit": np.concatenate([waiting.visit, visits]),
            "wide": np.concatenate([waiting.wide, wide]),
        }
        seconds = {"surrogate": time.perf_counter() - began}
        return Proposal(U, memory=left, notes={"stage_seconds": seconds, "accepted": accepted / q})

    def _replaced(
        self, arrivals: _Arrivals, V: Array, near: Indices, rng: np.random.Generator
    ) -> Indices:
        """The population after the arrivals, each in the pool of the visit that proposed it."""
        population = arrivals.population.copy()
        for row, i, anywhere in zip(arrivals.rows, arrivals.visit, arrivals.wide, strict=True):
            pool = rng.permutation(len(V[0])) if anywhere else rng.permutation(near[i])
            worse = pool[V[population[pool], pool] >= V[row, pool]]
            population[worse[: self.replacements]] = row
        return population

    def _trials(self, X: Array, i: int, pool: Indices, rng: np.random.Generator) -> Array:
        """All the children that a visit may try, (attempts, d): x_i plus a difference of mates."""
        mates = rng.permuted(np.tile(pool, (self.attempts, 1)), axis=1)
        return de_current(
            np.repeat(X[[i]], self.attempts, axis=0), X[mates[:, 0]], X[mates[:, -1]],
            rng=rng, eta_mutation=self.eta_mutation,
        )  # fmt: skip

    def _scores(self, U: Array, trials: Array, rows: Indices) -> Array:
        """The sub-problem's classifier on the trials: positive where it accepts, (attempts,)."""
        label = np.full(len(U), -1)
        label[rows] = 1
        machine = SVC(C=self.C, kernel="rbf", gamma=self.gamma).fit(U, label)
        return np.array(machine.decision_function(trials), dtype=np.float64)


@dataclass(frozen=True)
class _Waiting:
    """Proposed points without an answer: where, for which sub-problem, from which kind of pool."""

    U: Array
    visit: Indices
    wide: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Arrivals:
    """The population before, and the archive rows that arrived since, with their visits."""

    population: Indices
    rows: Indices
    visit: Indices
    wide: npt.NDArray[np.bool_]


def neighbourhoods(W: Array, T: int) -> Indices:
    """The T nearest weights of each weight, itself first, (N, T)."""
    return np.asarray(np.argsort(cdist(W, W), axis=1, kind="stable")[:, : max(T, min(2, len(W)))])


def chebyshev(F: Array, W: Array, violation: Array) -> Array:
    """V_ij = max_k w_jk |f_ik - z_k| / range_k with the ideal point z, (n, N).

    Rows with a violation follow all feasible ones in its order.
    """
    extent = np.ptp(F, axis=0)
    shifted = (F - F.min(axis=0)) / np.where(extent > 0, extent, 1.0)
    V = (shifted[:, None, :] * W[None]).max(axis=2)
    order = np.unique(violation, return_inverse=True)[1]
    return np.asarray(V + 2.0 * np.where(violation > 0, order + 1.0, 0.0)[:, None])


def positives(V: Array, neighbours: Indices) -> Indices:
    """For each neighbour in turn the best archive row not taken yet; the class +1, (<= T,)."""
    left, rows = V[:, neighbours].copy(), []
    for j in range(min(len(neighbours), len(V) // 2)):
        rows.append(int(np.argmin(left[:, j])))
        left[rows[-1]] = np.inf
    return np.array(rows, dtype=np.int64)


def assigned(V: Array, rng: np.random.Generator) -> Indices:
    """A first population: sub-problems in random order take their best row not taken yet, (N,)."""
    n, N = V.shape
    population, left = np.empty(N, dtype=np.int64), V.copy()
    for turn, j in enumerate(rng.permutation(N)):
        if turn % n == 0:  # fewer points than sub-problems: all are free again
            left = V.copy()
        population[j] = np.argmin(left[:, j])
        left[population[j]] = np.inf
    return population


def _arrived(
    archive: Archive, pending: Array, memory: Memory | None, N: int
) -> tuple[_Waiting, _Arrivals | None]:
    """Which visits were answered since the last call, and which still wait."""
    nothing = _Waiting(np.empty((0, archive.d)), np.empty(0, np.int64), np.empty(0, np.bool_))
    if memory is None or int(memory["seen"][0]) > len(archive) or len(memory["population"]) != N:
        return nothing, None
    seen, U, visit = int(memory["seen"][0]), memory["waiting"], memory["visit"].astype(np.int64)
    rows = np.arange(seen, len(archive), dtype=np.int64)
    if not len(U):  # evaluations from outside may replace anywhere
        outside = np.ones(len(rows), dtype=np.bool_)
        return nothing, _Arrivals(memory["population"], rows, 0 * rows, outside)
    # An optimizer may round a proposed point, so its visit is the one with the nearest proposal.
    own = cdist(archive.U[rows], U).argmin(axis=1)
    keep = np.unique(cdist(pending, U).argmin(axis=1))
    wide = memory["wide"].astype(np.bool_)
    return (
        _Waiting(U[keep], visit[keep], wide[keep]),
        _Arrivals(memory["population"], rows, visit[own], wide[own]),
    )
