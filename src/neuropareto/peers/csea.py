"""CSEA: one network that tells whether a point is worse than a few reference points.

Its errors on held-out points of either kind decide how far it is trusted: search for what it
calls good, search for the opposite of what it calls bad, or take a child at random. Source: L.
Pan, C. He, Y. Tian, H. Wang, X. Zhang, Y. Jin, "A classification-based surrogate-assisted
evolutionary algorithm for expensive many-objective optimization", TEVC 2019. Notation: P population
(N rows of the archive), R references (k rows), label 1 for "not worse than any reference".
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import torch
from scipy.spatial.distance import cdist
from torch.nn import functional

from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive, Indices
from neuropareto.memory import Memory
from neuropareto.peers.infill import uniform
from neuropareto.peers.operators import platemo_sbx
from neuropareto.peers.radial import radial_selection
from neuropareto.randomness import Streams, torch_seed
from neuropareto.space import Array


@dataclass(frozen=True)
class CSEA:
    """CSEA: 6 references, 3000 predictions a round, network with 2 d units, 100 epochs of Adam.

    A round of the published loop finds between one and twelve points; those not asked for yet wait
    in memory. Where more are asked for, the next best of the same round follow. Feasibility counts
    before dominance in ranks and labels.
    """

    population: int = 50
    references: int = 6
    predictions: int = 3000
    epochs: int = 100
    minibatch: int = 32
    learning_rate: float = 1e-2
    eta_crossover: float = 15.0
    eta_mutation: float = 5.0
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
        """q points: those that wait from the last round, then those of a new round."""
        if len(archive) < 4:
            return Proposal(np.asarray(rng("csea").random((q, archive.d)), dtype=np.float64))
        queue = np.empty((0, archive.d)) if memory is None else memory["queue"]
        queue = rng("queue").permutation(_fresh(queue, np.concatenate([archive.U, pending])))
        notes: dict[str, object] = {"mode": "queue", "stage_seconds": {}}
        if len(queue) < q:
            known = np.concatenate([archive.U, pending, queue])
            found, notes = self._round(archive, q - len(queue), known, rng)
            queue = np.concatenate([queue, found])
        return Proposal(queue[:q], memory={"queue": queue[q:]}, notes=notes)

    def _round(
        self, archive: Archive, least: int, known: Array, rng: Streams
    ) -> tuple[Array, dict[str, object]]:
        """One round of the published loop: at least ``least`` new points, best first."""
        began = time.perf_counter()
        P = radial_selection(archive.F, archive.ranks, self.population)
        R = P[radial_selection(archive.F[P], archive.ranks[P], self.references)]
        label = not_worse(archive.F[P], archive.F[R], archive.violation[P], archive.violation[R])
        train, test = split(label, rng("split"))
        network = self._trained(archive.U[P[train]], label[train], rng("surrogate"))
        trained = time.perf_counter()
        error = np.abs(network(archive.U[P[test]]) - label[test])
        p0, p1 = (_mean(error[label[test] == kind]) for kind in (1.0, 0.0))
        mode = trusted(p0, p1, float(label.mean()))
        found = self._searched(archive.U[P], archive.U[R], network, mode, rng("candidates"))
        points, wanted = _ordered(found, network, mode, rng("selection"))
        points, wanted = _new(points, wanted, known)
        breeder = rng("more")
        while (missing := max(least, 1) - len(points)) > 0:
            # More points than one brood: its sisters, by the same rule.
            more = self._bred(archive.U[P], archive.U[R], breeder)
            order = np.argsort(-_direction(mode) * network(more), kind="stable")
            more, _ = _new(more[order], 0, np.concatenate([known, points]))
            if not len(more):  # parents that are all alike breed only what is known
                more = uniform(missing, archive.d, breeder)
            points = np.concatenate([points, more])
        count = min(len(points), max(least, wanted))
        seconds = {"surrogate": trained - began, "candidates": time.perf_counter() - trained}
        errors = [None if math.isnan(p) else p for p in (p0, p1)]
        return points[:count], {"mode": mode, "errors": errors, "stage_seconds": seconds}

    def _bred(self, A: Array, B: Array, rng: np.random.Generator) -> Array:
        return platemo_sbx(
            np.concatenate([A, B]), rng=rng,
            eta_crossover=self.eta_crossover, eta_mutation=self.eta_mutation,
        )  # fmt: skip

    def _searched(
        self, P: Array, R: Array, network: Network, mode: str, rng: np.random.Generator
    ) -> Array:
        """Children of P and R; in a search mode bred on from the extreme outputs, with R as mates."""
        children, used = self._bred(P, R, rng), 0
        while mode != "random" and used < self.predictions:
            best = np.argsort(-_direction(mode) * network(children), kind="stable")[: len(R)]
            children = self._bred(children[best], R, rng)
            used += len(children)
        return children

    def _trained(self, U: Array, label: Array, rng: np.random.Generator) -> Network:
        """A network of one hidden layer, fitted to squared error by Adam."""
        generator = torch.Generator().manual_seed(torch_seed(rng))
        centre, scale = U.mean(axis=0), U.std(axis=0)
        scale = np.where(scale > 1e-12, scale, 1.0)
        X, y = torch.as_tensor((U - centre) / scale), torch.as_tensor(label)
        n, d = U.shape
        sizes = [(d, 2 * d), (2 * d, 1)]
        W, w = (_glorot(size, generator) for size in sizes)
        gain, shift = torch.ones(2 * d, dtype=X.dtype), torch.zeros(2 * d, dtype=X.dtype)
        bias = torch.zeros(1, dtype=X.dtype)
        weights = [t.requires_grad_() for t in (W, gain, shift, w, bias)]
        adam = torch.optim.Adam(weights, lr=self.learning_rate)
        parts = math.ceil(n / self.minibatch)
        for _ in range(self.epochs):
            for rows in torch.randperm(n, generator=generator).tensor_split(parts):
                adam.zero_grad()
                hidden = functional.batch_norm(X[rows] @ W, None, None, gain, shift, training=True)
                output = torch.sigmoid(torch.relu(hidden) @ w + bias)[:, 0]
                ((output - y[rows]) ** 2).mean().backward()  # type: ignore[no-untyped-call]
                adam.step()
        A, g, s, b, c = (t.detach().numpy() for t in weights)
        # In prediction the statistics of all training points stand in for a minibatch's.
        H = X.numpy() @ A
        g = g / np.sqrt(H.var(axis=0) + 1e-5)
        A = A * g / scale[:, None]
        return Network(A, s - g * H.mean(axis=0) - centre @ A, b[:, 0], float(c[0]))


@dataclass(frozen=True)
class Network:
    """sigmoid(relu(U A + a) b + c): the trained network with its scalings folded in."""

    A: Array
    a: Array
    b: Array
    c: float

    def __call__(self, U: Array) -> Array:
        """Outputs in (0, 1), (n,): near one for points not worse than the references."""
        z = np.maximum(U @ self.A + self.a, 0.0) @ self.b + self.c
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))


def not_worse(F: Array, R: Array, violation: Array, R_violation: Array) -> Array:
    """1 for a row that is better than or equal to every reference in some objective, else 0; (n,).

    A row that violates the constraints more than a reference is worse, one that violates them less
    is not.
    """
    somewhere = (F[:, None, :] <= R[None]).any(axis=2)
    more = violation[:, None] > R_violation[None]
    less = violation[:, None] < R_violation[None]
    return np.asarray(((somewhere | less) & ~more).all(axis=1).astype(np.float64))


def split(label: Array, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Three quarters of either kind (rounded up) to train with, the rest to test with."""
    train, test = [], []
    for kind in (1.0, 0.0):
        rows = rng.permutation(np.flatnonzero(label == kind))
        cut = math.ceil(0.75 * len(rows))
        train.append(rows[:cut])
        test.append(rows[cut:])
    return np.concatenate(train), np.concatenate(test)


def trusted(p0: float, p1: float, share: float) -> str:
    """Which predictions to follow: "good", "bad" or, where neither kind deserves it, "random".

    ``p0`` and ``p1`` are the mean absolute errors on held-out points with label 1 and 0, NaN where
    there are none; ``share`` is that of label 1. With t = min(share, 1 - share) / 2 follow the good
    if p0 < 0.4 or (p1 < t and p0 < 1 - t); the bad if p1 > 1 - t, unless p1 < t < 1 - t < p0.
    """
    t = 0.5 * min(share, 1.0 - share)
    if p0 < 0.4 or (p1 < t and p0 < 1.0 - t):
        return "good"
    if p0 > 1.0 - t and p1 < t:
        return "random"
    return "bad" if p1 > 1.0 - t else "random"


def _direction(mode: str) -> float:
    """Search for high outputs, or for low ones where the network is wrong about the bad."""
    return -1.0 if mode == "bad" else 1.0


def _ordered(
    found: Array, network: Network, mode: str, rng: np.random.Generator
) -> tuple[Array, int]:
    """The found points, best first, and how many of them the published rule evaluates."""
    if mode == "random":
        return np.asarray(rng.permutation(found)), 1
    output = network(found)
    sure = output > 0.9 if mode == "good" else output < 0.1
    order = np.argsort(-_direction(mode) * output, kind="stable")
    return np.asarray(found[order]), max(1, int(sure.sum()))


def _new(points: Array, wanted: int, known: Array) -> tuple[Array, int]:
    """``points`` without copies of known ones, and how many of the first ``wanted`` remain."""
    points_kept = np.ones(len(points), dtype=np.bool_)
    points_kept[cdist(points, known).min(axis=1, initial=np.inf) == 0.0] = False
    first = np.zeros(len(points), dtype=np.bool_)
    first[np.unique(points, axis=0, return_index=True)[1]] = True
    kept = points_kept & first
    return np.asarray(points[kept]), int(kept[:wanted].sum())


def _fresh(points: Array, known: Array) -> Array:
    return _new(points, 0, known)[0]


def _mean(errors: Array) -> float:
    """The mean, or NaN where there is nothing to average: no comparison holds for it then."""
    return float(errors.mean()) if len(errors) else math.nan


def _glorot(size: tuple[int, int], generator: torch.Generator) -> torch.Tensor:
    bound = math.sqrt(6.0 / sum(size))
    return (torch.rand(size, generator=generator, dtype=torch.float64) * 2.0 - 1.0) * bound
