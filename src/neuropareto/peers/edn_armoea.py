"""EDN-ARMOEA (Guo, Wang, Gao, Jin, Ding, Chai 2022): a dropout network in place of the GP.

One small network with dropout gives mean and spread of all objectives; AR-MOEA optimises the means
from a fresh random population; one solution for each of three clusters of the predicted front is
evaluated: the nearest to the ideal point, or the most uncertain if lattice vectors went empty.
Notation: W (w, m) lattice, F (N, m) predicted objectives relative to the training set's minimum
and the ranges of its front (so that units do not matter). Constraints are ignored.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive, Indices
from neuropareto.memory import Memory, part
from neuropareto.optimizer import start_design_size
from neuropareto.peers.ar_moea import (
    References,
    adjusted_distance,
    selected,
    spread_by_angle,
    without_each,
)
from neuropareto.peers.edn_network import DropoutNetwork, FittedDropoutNetwork
from neuropareto.peers.infill import best_of_each, clusters, front_extent, novel, uniform
from neuropareto.peers.operators import platemo_sbx
from neuropareto.problems.fronts import simplex_lattice
from neuropareto.randomness import Streams
from neuropareto.space import Array


@dataclass(frozen=True)
class EDNARMOEA:
    """EDN-ARMOEA with its published settings: population 50, 20 generations, 3 points a round.

    ``training`` is N_I; None takes the size of the start design (the published 11 d - 1 exceeds
    the whole budget).
    """

    batch: int = 3
    population: int = 50
    generations: int = 20
    delta: float = 0.05
    training: int | None = None
    network: DropoutNetwork = DropoutNetwork()

    def propose(
        self,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal:
        """q points, one for each of q clusters of the predicted front."""
        if len(archive) < 4:
            return Proposal(uniform(q, archive.d, rng("candidates")))
        if memory is not None and int(memory["seen"][0]) > len(archive):
            memory = None
        began = time.perf_counter()
        rows = self._training(archive, memory)
        model = Model.of(archive.U[rows], archive.F[rows], self.network, memory, rng("surrogate"))
        fitted = time.perf_counter()
        W = np.maximum(simplex_lattice(max(self.population, archive.m), archive.m), 1e-6)
        found = self._evolved(model, W, archive.d, rng("candidates"))
        evolved = time.perf_counter()
        before = found.first_share if memory is None else float(memory["share"][0])
        converging = diverse(before, found.share, self.delta)
        known = np.concatenate([archive.U, archive.failed, pending])
        U = infill(found, known, q, converging, rng("selection"))
        notes = {
            "stage_seconds": {
                "surrogate": fitted - began,
                "candidates": evolved - fitted,
                "selection": time.perf_counter() - evolved,
            },
            "mode": "convergence" if converging else "uncertainty",
            "valid_share": found.share,
            "training": len(rows),
        }
        known_now = {"seen": np.array([len(archive)]), "share": np.array([found.share])}
        network = {f"network/{name}": w for name, w in model.network.warm.items()}
        return Proposal(U, memory={**known_now, **network}, notes=notes)

    def _training(self, archive: Archive, memory: Memory | None) -> Indices:
        """The rows that train the network: all new ones, then by widest angle; at most N_I."""
        most = start_design_size(archive.d) if self.training is None else self.training
        if len(archive) <= most:
            return np.arange(len(archive), dtype=np.int64)
        seen = len(archive) - self.batch if memory is None else int(memory["seen"][0])
        new = np.arange(len(archive)) >= max(seen, len(archive) - most)
        Z = (archive.F - archive.F.min(axis=0)) / front_extent(archive.F)
        return np.flatnonzero(spread_by_angle(Z, new, most))

    def _evolved(self, model: Model, W: Array, d: int, rng: np.random.Generator) -> Evolved:
        """AR-MOEA on the predicted means, from a uniform population."""
        U = uniform(self.population, d, rng)
        F, std = model.predict(U, rng)
        references = References.first(F, W)
        first_share = references.valid
        for _ in range(1, self.generations):
            translated = F - references.ideal
            kept_when_gone = without_each(adjusted_distance(translated, references.R))
            children = platemo_sbx(U[tournament(kept_when_gone, len(U), rng)], rng=rng)
            born, born_std = model.predict(children, rng)
            references = references.updated(born, W)
            U, F = np.concatenate([U, children]), np.concatenate([F, born])
            std = np.concatenate([std, born_std])
            rows = selected(F - references.ideal, references.R, self.population)
            U, F, std = U[rows], F[rows], std[rows]
            references = references.ranging(F)
        return Evolved(U, F, std, first_share, references.valid)


@dataclass(frozen=True)
class Evolved:
    """The last population U with predicted F and deviations, and lattice shares first and last."""

    U: Array
    F: Array
    std: Array
    first_share: float
    share: float


@dataclass(frozen=True)
class Model:
    """A trained network and the scales between the cube, [-1, 1] and relative objectives."""

    network: FittedDropoutNetwork
    low: Array
    width: Array
    centre: Array
    reach: Array

    @classmethod
    def of(
        cls,
        U: Array,
        F: Array,
        spec: DropoutNetwork,
        memory: Memory | None,
        rng: np.random.Generator,
    ) -> Model:
        """Trained on U (n, d), F (n, m), each column brought to [-1, 1] by its range."""
        low, width = U.min(axis=0), np.ptp(U, axis=0)
        width = np.where(width > 0, width, 1.0)
        Z = (F - F.min(axis=0)) / front_extent(F)
        reach = 0.5 * np.where(np.ptp(Z, axis=0) > 0, np.ptp(Z, axis=0), 1.0)
        centre = Z.min(axis=0) + reach
        X, Y = 2.0 * (U - low) / width - 1.0, (Z - centre) / reach
        network = spec.fit(X, Y, warm=part(memory, "network"), rng=rng)
        return cls(network, low, width, centre, reach)

    def predict(self, U: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Mean and deviation of the relative objectives at U (k, d), both (k, m)."""
        X = 2.0 * (U - self.low) / self.width - 1.0
        mean, std = self.network.predict(X, rng=rng)
        return self.centre + self.reach * mean, self.reach * std


def diverse(before: float, now: float, delta: float) -> bool:
    """Whether the share of valid lattice vectors fell by less than delta since the last round."""
    return before - now < delta


def infill(
    found: Evolved, known: Array, q: int, converging: bool, rng: np.random.Generator
) -> Array:
    """q new points: the best of each of q clusters of F, then the next best, then uniform ones.

    Best is the smallest norm of the relative objectives when ``converging``, otherwise the largest
    mean deviation.
    """
    score = np.linalg.norm(found.F, axis=1) if converging else -found.std.mean(axis=1)
    new = np.flatnonzero(~_among(found.U, known))
    picked = new[:0]
    if len(new):
        picked = new[best_of_each(score[new], clusters(found.F[new], q, rng))]
    rest = new[np.argsort(score[new], kind="stable")]
    ordered = [found.U[picked], found.U[rest], uniform(q, known.shape[1], rng)]
    return novel(np.concatenate(ordered), known)[:q]


def tournament(fitness: Array, n: int, rng: np.random.Generator) -> Indices:
    """n winners of binary tournaments, larger fitness better, entrants drawn with replacement."""
    A, B = rng.integers(len(fitness), size=(2, n))
    return np.asarray(np.where(fitness[A] >= fitness[B], A, B), dtype=np.int64)


def _among(U: Array, known: Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows of U equal a known row, (n,)."""
    listed = {row.tobytes() for row in known}
    return np.array([row.tobytes() in listed for row in U], dtype=np.bool_)
