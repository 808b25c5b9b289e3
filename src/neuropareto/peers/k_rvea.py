"""K-RVEA (Chugh, Jin, Miettinen, Hakanen, Sindhya 2018): Kriging-assisted RVEA.

One Kriging model an objective; RVEA runs on the predicted means; then one solution for each
cluster of reference vectors is evaluated, by angle-penalised distance while the vectors stay
populated, by predicted variance when they go empty. A bounded set of evaluations trains the models.
Notation: A1 the training rows (at most N_I), V0 (v, m) fixed and V adapted vectors, F objectives
divided by the ranges of A1's front (so that units do not matter). Constraints are ignored.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive, Indices
from neuropareto.memory import Memory
from neuropareto.optimizer import start_design_size
from neuropareto.peers import rvea
from neuropareto.peers.dace import FittedKriging, Kriging, means
from neuropareto.peers.infill import best_of_each, clusters, front_extent, novel, uniform
from neuropareto.peers.operators import platemo_sbx
from neuropareto.randomness import Streams
from neuropareto.space import Array


@dataclass(frozen=True)
class KRVEA:
    """K-RVEA with its published settings: 20 generations, 5 evaluations a round, delta 0.05 N.

    ``training`` is N_I; None takes the size of the start design (the published 11 d - 1 exceeds
    the whole budget).
    """

    batch: int = 5
    vectors: int = 50
    generations: int = 20
    alpha: float = 2.0
    adapt_share: float = 0.1
    delta: float = 0.05
    training: int | None = None
    kriging: Kriging = Kriging()

    def propose(
        self,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal:
        """q points, one for each of q clusters of reference vectors."""
        if len(archive) < 4:
            return Proposal(uniform(q, archive.d, rng("candidates")))
        began = time.perf_counter()
        rows = self._training(archive, memory, rng("training"))
        U, F = archive.U[rows], archive.F[rows]
        F = (F - F.min(axis=0)) / front_extent(F)
        models = self._fitted(U, F, memory)
        fitted = time.perf_counter()
        V0 = rvea.unit_vectors(self.vectors, archive.m)
        population, pool, V = self._evolved(U, models, V0, rng("candidates"))
        evolved = time.perf_counter()
        lost = _empty(means(models, population), V0) - _empty(F, V0)
        converging = diverse(lost, len(V0), self.delta)
        known = np.concatenate([archive.U, archive.failed, pending])
        generator = rng("selection")
        candidates = Candidates.of(novel(population, known), models, V, converging)
        spare = Candidates.of(novel(pool, known), models, V, converging)
        chosen = one_a_cluster(candidates, V, q, generator)
        ordered = [candidates.U[chosen], candidates.best_first, spare.best_first]
        U = novel(np.concatenate([*ordered, uniform(q, archive.d, generator)]), known)[:q]
        notes = {
            "stage_seconds": {
                "surrogate": fitted - began,
                "candidates": evolved - fitted,
                "selection": time.perf_counter() - evolved,
            },
            "mode": "convergence" if converging else "uncertainty",
            "vectors_lost": int(lost),
            "training": len(rows),
            "population": len(population),
        }
        thetas = np.stack([model.theta for model in models])
        memory = {"training": rows, "seen": np.array([len(archive)]), "theta": thetas}
        return Proposal(U, memory=memory, notes=notes)

    def _training(
        self, archive: Archive, memory: Memory | None, rng: np.random.Generator
    ) -> Indices:
        """A1: the rows that train the models, at most N_I of them."""
        most = start_design_size(archive.d) if self.training is None else self.training
        if memory is None or int(memory["seen"][0]) > len(archive):
            split = max(len(archive) - self.batch, min(len(archive), most))
            old = np.arange(split, dtype=np.int64)
        else:
            split, old = int(memory["seen"][0]), memory["training"].astype(np.int64)
        new = np.arange(split, len(archive), dtype=np.int64)
        V0 = rvea.unit_vectors(self.vectors, archive.m)
        return managed(archive.U, archive.F, old, new, V0, most, rng=rng)

    def _fitted(self, U: Array, F: Array, memory: Memory | None) -> list[FittedKriging]:
        """One model an objective, each from the theta of last time."""
        known = memory is not None and memory["theta"].shape == (F.shape[1], U.shape[1])
        thetas = memory["theta"] if known and memory is not None else [None] * F.shape[1]
        return [self.kriging.fit(U, y, theta=theta) for y, theta in zip(F.T, thetas, strict=True)]

    def _evolved(
        self, U: Array, models: list[FittedKriging], V0: Array, rng: np.random.Generator
    ) -> tuple[Array, Array, Array]:
        """RVEA on the predicted means: last population, all of its last contest, adapted vectors."""
        V, population, rivals = V0, U, U
        every = max(1, int(np.ceil(self.adapt_share * self.generations)))
        for w in range(1, self.generations + 1):
            rivals = np.concatenate([population, _bred(population, rng)])
            F = means(models, rivals)
            value, part = rvea.angle_penalised(F, V, (w / self.generations) ** self.alpha)
            survivors = best_of_each(value, part)
            population = rivals[survivors]
            if w % every == 0:
                V = rvea.adapted(V0, F[survivors])
        return population, rivals, V


@dataclass(frozen=True)
class Candidates:
    """Points U (n, d) with the vector each belongs to and a score to be minimised, both (n,)."""

    U: Array
    part: Indices
    score: Array

    @classmethod
    def of(cls, U: Array, models: list[FittedKriging], V: Array, converging: bool) -> Candidates:
        """Scored by APD with the full angle penalty, or by minus the mean predicted variance."""
        if not len(U):
            return cls(U, np.empty(0, dtype=np.int64), np.empty(0))
        distance, part = rvea.angle_penalised(means(models, U), V, 1.0)
        if converging:
            return cls(U, part, distance)
        return cls(U, part, -np.mean([model.variance(U) for model in models], axis=0))

    @property
    def best_first(self) -> Array:
        """The points in the order of their scores, (n, d)."""
        return np.asarray(self.U[np.argsort(self.score, kind="stable")])


def one_a_cluster(candidates: Candidates, V: Array, q: int, rng: np.random.Generator) -> Indices:
    """The best candidate of each of at most q clusters of the vectors that have candidates."""
    used, place = np.unique(candidates.part, return_inverse=True)
    if not len(used):
        return np.empty(0, dtype=np.int64)
    return best_of_each(candidates.score, clusters(V[used], q, rng)[place])


def diverse(lost: int, vectors: int, delta: float) -> bool:
    """Whether diversity is fine: at most delta N more empty vectors than in the training set."""
    return lost <= delta * vectors


def managed(
    U: Array,
    F: Array,
    old: Indices,
    new: Indices,
    V: Array,
    most: int,
    *,
    rng: np.random.Generator,
) -> Indices:
    """The next A1, sorted: all rows ``new`` and at most ``most`` - len(new) of the rows ``old``.

    Copies leave first. The old rows that stay represent parts of the objective space which the
    new ones do not: where more vectors without new members are populated than places are left,
    clusters of those vectors; otherwise clusters of the objectives. One random row a cluster.
    """
    rows = np.concatenate([old, new])
    # From the back, so that of equal points the newest one stays.
    _, last = np.unique(U[rows][::-1], axis=0, return_index=True)
    rows = np.sort(rows[len(rows) - 1 - last])
    if len(rows) <= most:
        return rows
    fresh = np.isin(rows, new)
    kept, rest = rows[fresh][-most:], rows[~fresh]
    room = most - len(kept)
    if room <= 0:
        return kept
    Z = (F[rows] - F[rows].min(axis=0)) / front_extent(F[rows])
    used = np.unique(rvea.associated(Z[fresh], V)[0])
    free = np.setdiff1d(np.arange(len(V)), used)
    rest_Z = Z[~fresh]
    populated, place = np.unique(rvea.associated(rest_Z, V[free])[0], return_inverse=True)
    if len(populated) > room:
        group = clusters(V[free][populated], room, rng)[place]
    else:
        group = clusters(rest_Z, room, rng)
    return np.sort(np.concatenate([kept, rest[best_of_each(rng.random(len(rest)), group)]]))


def _bred(U: Array, rng: np.random.Generator) -> Array:
    """Children of the population paired in order; a lone survivor is paired with itself."""
    parents = U if len(U) > 1 else np.repeat(U, 2, axis=0)
    return platemo_sbx(parents, rng=rng)


def _empty(F: Array, V: Array) -> int:
    """How many vectors have no member among the rows of F."""
    return len(V) - len(rvea.active(F, V))
