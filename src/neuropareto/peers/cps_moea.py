"""CPS-MOEA: classification-based preselection before an evolutionary algorithm's evaluations.

Every parent has several differential children; nearest neighbours among good and bad evaluated
points say which are promising, and one promising child a parent is evaluated. No objective is
modelled. Source: J. Zhang, A. Zhou, G. Zhang, "A classification and Pareto domination based
multiobjective evolutionary algorithm", CEC 2015. Notation: P population (N rows of the archive), G
and B the good and bad sets (N / 2 rows each), Q the children evaluated since the last generation.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from neuropareto import pareto
from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive, Indices
from neuropareto.memory import Memory
from neuropareto.peers.operators import de_current
from neuropareto.randomness import Streams
from neuropareto.space import Array


@dataclass(frozen=True)
class CPSMOEA:
    """CPS-MOEA: 3 children a parent, 5 nearest neighbours, DE with CR = 1 and F = 0.5.

    A round shorter than a generation serves the next parents of the same generation; constraints
    count before dominance in every sort.
    """

    population: int = 50
    candidates: int = 3
    neighbours: int = 5
    CR: float = 1.0
    F: float = 0.5
    eta_mutation: float = 20.0
    batch: int = 50

    def propose(
        self,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal:
        """One preselected child of each of the next q parents."""
        generator = rng("cps-moea")
        if len(archive) < 4:  # two points of either kind are the least that a vote can use
            return Proposal(np.asarray(generator.random((q, archive.d)), dtype=np.float64))
        began = time.perf_counter()
        state = _remembered(memory, archive) or self._first(archive)
        chosen, accepted = np.empty((0, archive.d)), 0
        while len(chosen) < q:
            if state.served >= len(state.P):
                state = self._next(archive, state)
            parents = state.P[state.served : state.served + q - len(chosen)]
            known = np.concatenate([archive.U, pending, chosen])
            children, good = self._children(archive.U, parents, state, known, generator)
            chosen, accepted = np.concatenate([chosen, children]), accepted + good
            state = replace(state, served=state.served + len(parents))
        notes = {
            "stage_seconds": {"candidates": time.perf_counter() - began},
            "promising": accepted / q,
        }
        return Proposal(chosen, memory=state.memory, notes=notes)

    def _children(
        self, U: Array, parents: Indices, state: _State, known: Array, rng: np.random.Generator
    ) -> tuple[Array, int]:
        """One child for each parent, (n, d), and how many of them are labelled good."""
        n, k = len(parents), self.candidates
        mates = rng.choice(state.P, size=(2, n * k))
        trials = de_current(
            np.repeat(U[parents], k, axis=0), U[mates[0]], U[mates[1]],
            rng=rng, CR=self.CR, F=self.F, eta_mutation=self.eta_mutation,
        )  # fmt: skip
        good = promising(trials, U[state.G], U[state.B], self.neighbours).reshape(n, k)
        # Two equal mates leave a parent as it was: such a copy has nothing to tell.
        copied = (cdist(trials, known).min(axis=1) == 0.0).reshape(n, k)
        # One label and a number below one: any of the good, or any of all where none is good.
        pick = np.argmax(good + rng.random((n, k)) - 2.0 * copied, axis=1)
        rows = np.arange(n)
        return trials.reshape(n, k, -1)[rows, pick], int(good[rows, pick].sum())

    def _first(self, archive: Archive) -> _State:
        """Population and good set from the best of all points so far, bad set from the worst."""
        order = _sorted(archive, np.arange(len(archive), dtype=np.int64))
        half = min(max(self.population // 2, 1), len(order) // 2)
        return _State(
            order[: self.population], order[:half], order[-half:], begun=len(archive), served=0
        )

    def _next(self, archive: Archive, state: _State) -> _State:
        """Let what arrived since the generation began compete for P, G and B."""
        Q = np.arange(state.begun, len(archive), dtype=np.int64)
        first = _ranks(archive, Q) == 1
        half = max(self.population // 2, 1)
        return _State(
            P=_sorted(archive, np.concatenate([state.P, Q]))[: self.population],
            G=_sorted(archive, np.concatenate([state.G, Q[first]]))[:half],
            # The bad set keeps its best too, so it follows the border between good and bad.
            B=_sorted(archive, np.concatenate([state.B, Q[~first]]))[:half],
            begun=len(archive),
            served=0,
        )


@dataclass(frozen=True)
class _State:
    """Rows of the archive: P (N,), G and B (N / 2,); archive length and parents served so far."""

    P: Indices
    G: Indices
    B: Indices
    begun: int
    served: int

    @property
    def memory(self) -> Memory:
        count = np.array([self.begun, self.served])
        return {"population": self.P, "good": self.G, "bad": self.B, "count": count}


def promising(candidates: Array, good: Array, bad: Array, neighbours: int) -> Array:
    """1 where more than half of a candidate's nearest evaluated neighbours are good, else 0; (n,).

    ``candidates`` (n, d), ``good`` (g, d) and ``bad`` (b, d), distances Euclidean.
    """
    distance = cdist(candidates, np.concatenate([good, bad]))
    k = min(neighbours, distance.shape[1])
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :k]
    return np.asarray((2 * (nearest < len(good)).sum(axis=1) > k).astype(np.float64))


def _remembered(memory: Memory | None, archive: Archive) -> _State | None:
    """The state that a call left, None where nothing or another run's is remembered."""
    if memory is None or int(memory["count"][0]) > len(archive):
        return None
    P, G, B = (memory[name].astype(np.int64) for name in ("population", "good", "bad"))
    return _State(P, G, B, begun=int(memory["count"][0]), served=int(memory["count"][1]))


def _ranks(archive: Archive, rows: Indices) -> Indices:
    F = archive.F[rows]
    if archive.c:
        return pareto.constrained_ranks(F, archive.violation[rows])
    return pareto.ranks(F)


def _sorted(archive: Archive, rows: Indices) -> Indices:
    """``rows`` by front, then by crowding distance within their front, lonelier first."""
    ranks = _ranks(archive, rows)
    crowding = pareto.crowding_by_rank(archive.F[rows], ranks)
    return np.asarray(rows[np.lexsort((-crowding, ranks))])
