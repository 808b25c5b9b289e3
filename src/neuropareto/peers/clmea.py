"""CLMEA (Chen, Jiao, Xue, Wang 2023): three cheap proposers take turns, one evaluation each.

A: a probabilistic neural network of four rank classes drives a differential evolution to the top
class; the member farthest from the archive is evaluated. B: an RBF interpolant of all objectives
is searched; the predicted point with the largest hypervolume gain is evaluated. C: the same around
the loneliest front member, and the predicted point farthest from the archive in objective space.
Source: arXiv 2304.09444, with the slips of the released code repaired (docs/peers.md).
Notation: ``U`` (n, d) archive, ``Z`` (n, m) standardised objectives, N internal population.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from neuropareto import pareto
from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive, Indices
from neuropareto.memory import Memory
from neuropareto.peers.operators import de_current
from neuropareto.peers.rbf import bumps, diameter, interpolant
from neuropareto.randomness import Streams
from neuropareto.space import Array

_FEWEST = 4  # below this, interpolants and four classes say nothing
_PASSES = 3  # how often turns that brought only known points are passed on


@dataclass(frozen=True)
class CLMEA:
    """CLMEA with its published settings; N is ``population``, from ``wide`` variables on larger."""

    batch: int = 1
    population: int = 100
    wide_population: int = 200
    wide: int = 100
    class_shares: tuple[float, ...] = (0.1, 0.3, 0.4, 0.2)
    enough: float = 0.9
    classifier_rounds: int = 51
    global_generations: int = 200
    local_generations: int = 50
    local_parents: int = 20
    reference_extent: float = 1.2
    extreme_generations: int = 20
    stagnation: int = 50
    apart: float = 1e-5

    def propose(
        self,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal:
        """q points by turns: first the minimiser of each objective's model, then A, B, C, A, ..."""
        turn = 0 if memory is None else int(memory["turn"][0])
        points, names, seconds = np.empty((0, archive.d)), list[str](), dict[str, float]()
        generators = {name: rng(f"clmea-{name}") for name in _PROPOSERS}
        for _ in range(_PASSES if len(archive) >= _FEWEST else 0):
            need = q - len(points)
            for name, turns in _schedule(turn, need, archive.m).items():
                began = time.perf_counter()
                size = self.population if archive.d < self.wide else self.wide_population
                known = np.concatenate([archive.U, archive.failed, pending, points])
                data = Knowledge.of(archive, known, size, self.apart)
                found = _PROPOSERS[name](self, data, turns, generators[name])
                points, names = np.concatenate([points, found]), names + [name] * len(found)
                seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - began
            turn += need
        rest = q - len(points)
        points = np.concatenate([points, rng("clmea-random").random((rest, archive.d))])
        notes = {"stage_seconds": seconds, "strategies": names + ["random"] * rest}
        return Proposal(points, memory={"turn": np.array([turn])}, notes=notes)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What a proposer sees: the archive in standard units, its best rows and its front.

    ``best`` are up to N rows by front and crowding, ``front`` the rows of the first front;
    ``known`` (k, d) are all points evaluated, failed, waiting or already chosen in this round.
    """

    U: Array
    Z: Array
    best: Indices
    front: Indices
    known: Array
    size: int
    apart: float

    @classmethod
    def of(cls, archive: Archive, known: Array, size: int, apart: float) -> Knowledge:
        """The view of an archive of at least one point; infeasible points rank last."""
        scale = archive.F.std(axis=0)
        Z = (archive.F - archive.F.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
        best = survivors(Z, size, archive.ranks)
        return cls(archive.U, Z, best, np.flatnonzero(archive.ranks == 1), known, size, apart)

    def unknown(self, U: Array) -> Indices:
        """Rows of ``U`` farther than ``apart`` from every known point."""
        return np.flatnonzero(cdist(U, self.known).min(axis=1) > self.apart)


@dataclass(frozen=True, eq=False)
class RankNetwork:
    """A probabilistic neural network: one Gaussian bump for each labelled point.

    The score of class r is the sum of exp(-ln 2 |u - u_i|^2 / s^2) over the points u_i of class r,
    s = d_max / sqrt(2 n); the class with the largest score wins. Step A.2.
    """

    centres: Array
    classes: Indices
    spread: float

    @classmethod
    def of(cls, centres: Array, classes: Indices) -> RankNetwork:
        """The network of n labelled points (n, d), classes from 1."""
        return cls(centres, classes, diameter(centres) / np.sqrt(2.0 * len(centres)))

    def predict(self, U: Array) -> Indices:
        """The class of each row, (k,); of equal scores the better class."""
        exponents = bumps(U, self.centres, self.spread)
        # Far from all points every bump underflows; relative to the largest, none that matters.
        heights = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        present = np.unique(self.classes)
        scores = heights @ (self.classes[:, None] == present).astype(np.float64)
        return np.asarray(present[scores.argmax(axis=1)])


def survivors(Z: Array, n: int, ranks: Indices | None = None) -> Indices:
    """Up to n rows, best first: by non-domination rank, then by crowding distance within it."""
    ranks = pareto.ranks(Z) if ranks is None else ranks
    last = np.sort(ranks)[min(n, len(ranks)) - 1]
    lonely = np.zeros(len(Z))
    for rank in range(1, int(last) + 1):
        rows = ranks == rank
        lonely[rows] = pareto.crowding(Z[rows])
    return np.lexsort((-lonely, ranks))[:n]


def rank_classes(n: int, shares: Sequence[float]) -> Indices:
    """Classes from 1 of n rows sorted best first, cut in the given shares. Step A.1."""
    edges = np.maximum(np.round(np.cumsum(shares) * n), np.arange(1, len(shares) + 1))
    return np.minimum(np.searchsorted(edges, np.arange(n), side="right"), len(shares) - 1) + 1


def farthest(X: Array, known: Array, k: int) -> Indices:
    """Up to k rows of X, each farthest from the known rows and from those before it."""
    nearest = cdist(X, known).min(axis=1) if len(X) else np.empty(0)
    chosen: list[int] = []
    for _ in range(min(k, len(X))):
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, cdist(X, X[chosen[-1:]])[:, 0])
        nearest[chosen[-1]] = -np.inf
    return np.array(chosen, dtype=np.int64)


def _classifier(spec: CLMEA, data: Knowledge, turns: Indices, rng: np.random.Generator) -> Array:
    """Strategy A: members of the predicted top class, farthest from what is known."""
    n, centres = data.size, data.U[data.best]
    classes = rank_classes(len(centres), spec.class_shares)
    network = RankNetwork.of(centres, classes)
    brood, predicted = np.empty((0, data.U.shape[1])), np.empty(0, dtype=np.int64)
    for _ in range(1 + spec.classifier_rounds):
        top = brood[predicted == 1] if (predicted == 1).any() else centres[classes == 1]
        upper = brood[predicted <= 2] if (predicted == 1).any() else centres[classes <= 2]
        rows = rng.integers(len(top), size=(2, n)), rng.integers(len(upper), size=n)
        trial = de_current(top[rows[0][0]], top[rows[0][1]], upper[rows[1]], rng=rng, CR=0.5)
        theirs = network.predict(trial)
        if not len(brood):
            brood, predicted = trial, theirs
        better = theirs <= predicted  # step A.4: the survivor keeps its own class
        brood = np.where(better[:, None], trial, brood)
        predicted = np.minimum(theirs, predicted)
        if (predicted == 1).sum() >= spec.enough * n:
            break
    fresh = data.unknown(brood)
    fresh = fresh[predicted[fresh] == predicted[fresh].min(initial=len(spec.class_shares))]
    return np.asarray(brood[fresh][farthest(brood[fresh], data.known, len(turns))])


def _hypervolume(spec: CLMEA, data: Knowledge, turns: Indices, rng: np.random.Generator) -> Array:
    """Strategy B: the predicted front's largest gains in hypervolume over the true front."""
    model = interpolant(data.U, data.Z)
    parents = data.U[data.best]
    values = model(parents)
    for _ in range(spec.global_generations):
        first, second = rng.permutation(len(parents)), rng.permutation(len(parents))
        brood = de_current(parents, parents[first], parents[second], rng=rng)
        both, theirs = np.concatenate([parents, brood]), np.concatenate([values, model(brood)])
        kept = survivors(theirs, data.size)
        parents, values = both[kept], theirs[kept]
    fresh = data.unknown(parents)
    fresh = fresh[pareto.nondominated(values[fresh])] if len(fresh) else fresh
    front = data.Z[data.front]
    reference = reference_point(front, spec.reference_extent)
    k = min(len(turns), len(fresh))
    chosen = pareto.greedy_improvement(values[fresh], front, reference, k)
    return np.asarray(parents[fresh[chosen]])


def reference_point(front: Array, extent: float) -> Array:
    """ymin + 1.1 extent (ymax - ymin) of the front; the 1.1 is the field's usual margin. Step B.2.

    A front without range in an objective gets a tenth of a standard deviation there.
    """
    spans = np.ptp(front, axis=0)
    return np.asarray(front.min(axis=0) + 1.1 * extent * np.where(spans > 0, spans, 0.1))


def _local(spec: CLMEA, data: Knowledge, turns: Indices, rng: np.random.Generator) -> Array:
    """Strategy C: around the loneliest front members, one point for each."""
    lonely = pareto.crowding(data.Z[data.front])
    lonely[np.isinf(lonely)] = 0.0
    guides = data.front[np.argsort(-lonely, kind="stable")]
    found = np.empty((0, data.U.shape[1]))
    for i in range(len(turns)):
        seen = np.concatenate([data.known, found])
        here = Knowledge(data.U, data.Z, data.best, data.front, seen, data.size, data.apart)
        found = np.concatenate([found, _around(spec, here, int(guides[i % len(guides)]), rng)])
    return found


def _around(spec: CLMEA, data: Knowledge, guide: int, rng: np.random.Generator) -> Array:
    """Steps C.2 to C.4: search the local model about archive row ``guide``; one point or none."""
    n = data.size
    near = np.argsort(cdist(data.Z[guide : guide + 1], data.Z)[0], kind="stable")[:n]
    model = interpolant(data.U[near], data.Z[near])
    low, high = data.U[near].min(axis=0), data.U[near].max(axis=0)
    base = np.repeat(data.U[guide : guide + 1], n, axis=0)
    parents = data.U[data.best[: spec.local_parents]]
    values = model(parents)
    for _ in range(spec.local_generations):
        some = rng.integers(min(spec.local_parents, len(parents)), size=(2, n))
        brood = de_current(base, parents[some[0]], parents[some[1]], rng=rng, CR=0.5)
        brood = brood.clip(low, high)
        predicted = model(brood)
        both, theirs = np.concatenate([parents, brood]), np.concatenate([values, predicted])
        kept = survivors(theirs, n)
        parents, values = both[kept], theirs[kept]
    fresh = data.unknown(brood)
    free = pareto.nondominated(np.concatenate([predicted, data.Z[near]]))[: len(brood)]
    fresh = fresh[free[fresh]]
    return np.asarray(brood[fresh][farthest(predicted[fresh], data.Z, 1)])


def _extremes(spec: CLMEA, data: Knowledge, turns: Indices, rng: np.random.Generator) -> Array:
    """Start-up: the minimiser of each due objective's interpolant by differential evolution."""
    d = data.U.shape[1]
    size = 100 + d // 10
    model = interpolant(data.U, data.Z)
    found = np.empty((0, d))
    for j in turns:
        start = data.U[np.argsort(data.Z[:, j], kind="stable")[: size // 2]]
        X = np.concatenate([start, rng.random((size - len(start), d))])
        y, idle = model(X)[:, j], 0
        for _ in range(spec.extreme_generations * d):
            best = np.repeat(X[[y.argmin()]], size, axis=0)
            pairs = rng.integers(size, size=(2, size))
            trial = de_current(best, X[pairs[0]], X[pairs[1]], rng=rng, CR=0.5)
            theirs = model(trial)[:, j]
            idle = 0 if theirs.min() < y.min() else idle + 1
            X, y = np.where((theirs < y)[:, None], trial, X), np.minimum(theirs, y)
            if idle >= spec.stagnation:
                break
        found = np.concatenate([found, X[[y.argmin()]]])
    return np.asarray(found[data.unknown(found)])


_Proposer = Callable[[CLMEA, Knowledge, Indices, np.random.Generator], Array]
_PROPOSERS: dict[str, _Proposer] = {
    "extremes": _extremes,
    "classifier": _classifier,
    "hypervolume": _hypervolume,
    "local": _local,
}


def _schedule(turn: int, n: int, m: int) -> dict[str, Indices]:
    """Which proposer has which of the next n turns: m extremes once, then A, B, C in a circle."""
    turns = np.arange(turn, turn + n)
    circle = np.where(turns < m, -1, (turns - m) % 3) + 1
    return {name: turns[circle == i] for i, name in enumerate(_PROPOSERS) if (circle == i).any()}
