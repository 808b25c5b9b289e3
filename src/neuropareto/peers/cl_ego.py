"""CL-EGO: EGO in batches by the constant liar, several objectives by random weights.

Constant liar (Ginsbourger, Le Riche, Carraro 2010): to choose q points at once, maximise expected
improvement, pretend that the winner returned a constant L, and go on; hyper-parameters stay, and
the lies are forgotten when the values arrive. L = min is greedy, max spreads, mean lies between.
Objectives are folded as in ParEGO (Knowles 2006) with one weight vector a round, so that lies and
values are comparable. The label's citation in the paper (Zhang, Zhou, Zhang 2015) is a classifier
for preselection, so ``Preselected`` is the default search and ``Climbed`` the plain one.
Notation: s (n,) folded values, w (m,) weights, L the lie.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from sklearn.neighbors import KNeighborsClassifier

from neuropareto import pareto
from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive, Indices
from neuropareto.memory import Memory
from neuropareto.peers.gp_ei import folded, improvement
from neuropareto.peers.models import (
    Criterion,
    GPs,
    independent_gps,
    maximised,
    repeatable,
    start_points,
)
from neuropareto.peers.operators import de_current
from neuropareto.randomness import Streams
from neuropareto.space import Array

Mask = npt.NDArray[np.bool_]

_FEWEST = 4  # evaluations below which no model is fitted
_NEAR = 10  # rows of best folded value that the search also starts around


LIES: Mapping[str, Callable[[Array], float]] = {
    "min": lambda s: float(s.min()),
    "mean": lambda s: float(s.mean()),
    "max": lambda s: float(s.max()),
}
"""The lie from the folded values (n,) so far: the best is the most greedy, the worst spreads most."""


class Search(Protocol):
    """How the expected improvement is maximised."""

    def best(
        self, criterion: Criterion, archive: Archive, s: Array, *, rng: np.random.Generator
    ) -> Array:
        """One point (1, d) of large ``criterion``; ``s`` (n,) are the archive's folded values."""
        ...


@dataclass(frozen=True)
class Climbed:
    """L-BFGS-B from the best of random points and points near the best rows."""

    starts: int = 512
    restarts: int = 4
    iterations: int = 100

    def best(
        self, criterion: Criterion, archive: Archive, s: Array, *, rng: np.random.Generator
    ) -> Array:
        """The highest point that the climbs reach."""
        order = np.lexsort((s, archive.violation))[:_NEAR]
        starts = start_points(archive.U[order], self.starts, rng=rng)[:, None, :]
        return maximised(criterion, starts, restarts=self.restarts, iterations=self.iterations)[0]


@dataclass(frozen=True)
class Preselected:
    """Classification-based preselection: children of good points, of which good ones are scored.

    The better half of the archive by (rank, crowding) is good, the other half bad. ``pool``
    children of good points by differential evolution; those stay that more than half of their
    ``neighbours`` nearest evaluated points call good (all, if none is).
    """

    pool: int = 2000
    neighbours: int = 5

    def best(
        self, criterion: Criterion, archive: Archive, s: Array, *, rng: np.random.Generator
    ) -> Array:
        """The survivor of largest criterion."""
        good, bad = halves(archive)
        A, B, C = (archive.U[rng.choice(good, self.pool)] for _ in range(3))
        children = de_current(A, B, C, rng=rng)
        kept = children[self.called_good(archive.U, good, bad, children)]
        kept = kept if len(kept) else children
        with torch.no_grad():
            value = criterion(torch.tensor(kept[:, None, :])).numpy()
        return kept[[int(np.argmax(np.nan_to_num(value, nan=-np.inf)))]]

    def called_good(self, U: Array, good: Indices, bad: Indices, children: Array) -> Mask:
        """Which children the majority of their nearest evaluated points call good, (pool,)."""
        rows = np.concatenate([good, bad])
        label = np.arange(len(rows)) < len(good)
        neighbours = KNeighborsClassifier(min(self.neighbours, len(rows)))
        return np.asarray(neighbours.fit(U[rows], label).predict(children))


@dataclass(frozen=True)
class CLEGO:
    """EGO with preselected candidates and constant-liar batches of five, on ParEGO's fold.

    ``lie`` is "min", "mean" or "max"; ``search=Climbed()`` is EGO by gradients, without a classifier.
    """

    batch: int = 5
    lie: str = "min"
    search: Search = Preselected()
    rho: float = 0.05
    fit_iterations: int = 75

    def __post_init__(self) -> None:
        if self.lie not in LIES:
            raise ValueError(f"The lie must be one of {', '.join(LIES)}, got {self.lie!r}.")

    def propose(
        self,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal:
        """q points of one weight vector, each as if all before it had returned the lie."""
        draws = rng("cl-ego")
        if len(archive) < _FEWEST:
            return Proposal(np.asarray(draws.random((q, archive.d)), dtype=np.float64))
        seconds, began = {"surrogate": 0.0, "selection": 0.0}, time.perf_counter()
        w = draws.dirichlet(np.ones(archive.m))
        s = folded(archive.F, w, self.rho)
        lie = LIES[self.lie](s)
        with repeatable(rng("cl-ego-torch")):
            outputs = np.concatenate([s[:, None], archive.G], axis=1)
            gps = independent_gps(archive.U, outputs, iterations=self.fit_iterations)
            gps = lied(gps.warned(archive.failed), pending, lie)
            seconds["surrogate"] = time.perf_counter() - began
            chosen = np.empty((0, archive.d))
            for _ in range(q):
                criterion = improvement(gps, archive.violation, s)
                u = self.search.best(criterion, archive, s, rng=draws)
                chosen = np.concatenate([chosen, u])
                gps = lied(gps, u, lie)
            seconds["selection"] = time.perf_counter() - began - seconds["surrogate"]
        notes = {"stage_seconds": seconds, "weights": w.tolist(), "lie": lie}
        return Proposal(chosen, notes=notes)


def lied(gps: GPs, U: Array, lie: float) -> GPs:
    """As if points ``U`` had returned the folded value ``lie``; constraints as predicted."""
    if not len(U):
        return gps
    Z = gps.mean(U)
    Z[:, 0] = gps.scaled(np.array([lie]))[0]
    return gps.told(U, Z)


def halves(archive: Archive) -> tuple[Indices, Indices]:
    """Rows of the better and of the worse half of the archive by (rank, crowding)."""
    crowding = pareto.crowding_by_rank(archive.F, archive.ranks)
    order = np.lexsort((-crowding, archive.ranks))
    half = len(archive) // 2
    return order[:half], order[half:]
