"""NSGA-II (Deb, Pratap, Agarwal, Meyarivan 2002) as an Algorithm: the classical yardstick.

A population of N survivors by (rank, crowding); parents by binary tournament; SBX and polynomial
mutation. Each ``propose`` first lets the arrivals since the last call compete with the population,
then breeds q children. With q = N this is the generational algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto import pareto
from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive, Indices
from neuropareto.memory import Memory
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.variation import polynomial_mutation, sbx


@dataclass(frozen=True)
class NSGA2:
    """NSGA-II with its usual settings: SBX (eta 15, 0.9 a pair), mutation (eta 20, one variable)."""

    population: int = 50
    eta_crossover: float = 15.0
    eta_mutation: float = 20.0
    p_crossover: float = 0.9

    def propose(
        self,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal:
        """q children of the present population."""
        generator = rng("nsga2")
        survivors = self._survivors(archive, memory)
        if len(survivors) < 2:
            return Proposal(np.asarray(generator.random((q, archive.d)), dtype=np.float64))
        ranks, crowding = _fitness(archive, survivors)
        children = np.empty((0, archive.d))
        for _ in range(20):  # copies of a parent or of a sister are bred anew, as in the original
            born = self._bred(archive.U[survivors], ranks, crowding, q - len(children), generator)
            children = _fresh(children, born, np.concatenate([archive.U[survivors], pending]))
            if len(children) == q:
                break
        else:
            children = np.concatenate([children, born[: q - len(children)]])
        known = {"population": survivors, "seen": np.array([len(archive)])}
        return Proposal(children, memory=known)

    def _bred(
        self, U: Array, ranks: Indices, crowding: Array, n: int, rng: np.random.Generator
    ) -> Array:
        """n children of the population ``U`` by tournament, crossover and mutation."""
        pairs = -(-n // 2)
        parents = _tournament(ranks, crowding, 2 * pairs, rng)
        children = np.concatenate(
            sbx(
                U[parents[:pairs]], U[parents[pairs:]],
                eta=self.eta_crossover, p_pair=self.p_crossover, p_variable=0.5, rng=rng,
            )
        )[:n]  # fmt: skip
        # Mutation reaches nine children in ten, one variable each on average (pymoo's convention).
        p = min(0.5, 1.0 / U.shape[1]) * (rng.random((n, 1)) < 0.9)
        return polynomial_mutation(children, eta=self.eta_mutation, p_variable=p, rng=rng)

    def _survivors(self, archive: Archive, memory: Memory | None) -> Indices:
        """The best N of the last population and everything that arrived since."""
        if memory is None or int(memory["seen"][0]) > len(archive):
            rivals = np.arange(len(archive), dtype=np.int64)
        else:
            new = np.arange(int(memory["seen"][0]), len(archive), dtype=np.int64)
            rivals = np.concatenate([memory["population"].astype(np.int64), new])
        ranks, crowding = _fitness(archive, rivals)
        return np.asarray(rivals[np.lexsort((-crowding, ranks))[: self.population]])


def _fresh(found: Array, born: Array, known: Array) -> Array:
    """``found`` and those of ``born`` that repeat neither each other nor a known point."""
    together = np.concatenate([known, found, born])
    _, first = np.unique(together, axis=0, return_index=True)
    new = np.sort(first[first >= len(known)])
    return np.asarray(together[new])


def _fitness(archive: Archive, rows: Indices) -> tuple[Indices, Array]:
    """Ranks and per-front crowding distances among ``rows``."""
    F = archive.F[rows]
    if not len(rows):
        return np.empty(0, dtype=np.int64), np.empty(0)
    violation = archive.violation[rows]
    ranks = pareto.constrained_ranks(F, violation) if archive.c else pareto.ranks(F)
    return ranks, pareto.crowding_by_rank(F, ranks)


def _tournament(ranks: Indices, crowding: Array, n: int, rng: np.random.Generator) -> Indices:
    """n winners of binary tournaments: lower rank first, then larger crowding distance."""
    size = len(ranks)
    rounds = -(-2 * n // size)
    entrants = np.concatenate([rng.permutation(size) for _ in range(rounds)])[: 2 * n]
    a, b = entrants[0::2], entrants[1::2]
    first = (ranks[a] < ranks[b]) | ((ranks[a] == ranks[b]) & (crowding[a] > crowding[b]))
    tie = (ranks[a] == ranks[b]) & (crowding[a] == crowding[b]) & (rng.random(n) < 0.5)
    return np.where(first | tie, a, b)
