"""Candidates: a large pool of points, bred from the archive by predicted rank.

Paper: section "Rank conditioned candidate generation"; it names no operators, so which operator
acts on which predicted stratum is ours (decision D-9). Notation: U (n, d) archive, K rank classes,
P (n, K) their predicted probabilities. A generator has one method, ``generate``, and generators
are joined by :class:`Several`. Nothing here knows where an optimum lies: moves are relative to
evaluated points, and descent follows the surrogate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from neuropareto.archive import Archive, Indices, new_rows
from neuropareto.classifier import RankBelief
from neuropareto.space import Array
from neuropareto.surrogate.contract import Fitted
from neuropareto.variation import differential, polynomial_mutation, sbx


@dataclass(frozen=True)
class Pool:
    """Candidates ``U`` (n, d) and, for diagnosis, the name of the operator that made each."""

    U: Array
    operator: npt.NDArray[np.str_]

    def __len__(self) -> int:
        """The number of candidates."""
        return len(self.U)

    def apart_from(self, known: Array) -> Pool:
        """Each point once, and none of the ``known`` (k, d); all as they are if nothing is left.

        Descents end in the same corner and children may equal a parent: such copies would take
        places in a batch, and be evaluated somewhere else, for nothing is evaluated twice.
        """
        kept = new_rows(self.U, known)
        return Pool(self.U[kept], self.operator[kept]) if len(kept) else self


class Candidates(Protocol):
    """A generator of candidates."""

    def generate(
        self, archive: Archive, belief: RankBelief, model: Fitted, *, rng: np.random.Generator
    ) -> Pool:
        """Candidates from the archive, the classifier's belief about its points, and the surrogate."""
        ...


@dataclass(frozen=True)
class Several:
    """The pools of several generators, one after the other."""

    generators: tuple[Candidates, ...]

    def generate(
        self, archive: Archive, belief: RankBelief, model: Fitted, *, rng: np.random.Generator
    ) -> Pool:
        """The joined pool; each generator draws from a stream of its own."""
        streams = rng.spawn(len(self.generators))
        pools = [
            g.generate(archive, belief, model, rng=s)
            for g, s in zip(self.generators, streams, strict=True)
        ]
        return joined(pools)


@dataclass(frozen=True)
class RankConditioned:
    """Offspring whose operator depends on the predicted stratum of its parent.

    top (class 1 predicted): polynomial mutation of few variables, and short differential moves:
    refine what is good. middle (up to the middle class): SBX with a top parent: recombine.
    low (the rest): long differential moves towards top parents: keep diversity. Parents are drawn
    with the classifier's probability of their stratum as weight, so an unsure point serves in
    several. ``shares`` are the parts of the pool that the three strata breed.
    """

    size: int = 1500
    shares: tuple[float, float, float] = (0.5, 0.3, 0.2)

    def generate(
        self, archive: Archive, belief: RankBelief, model: Fitted, *, rng: np.random.Generator
    ) -> Pool:
        """``size`` offspring; an archive of fewer than four points breeds by uniform draws."""
        U, d = archive.U, archive.d
        if len(U) < 4:
            return Pool(rng.random((self.size, d)), np.full(self.size, "uniform"))
        k = belief.probability.shape[1]
        middle = (k + 2) // 2
        weights = [
            belief.probability[:, :1].sum(axis=1),
            belief.probability[:, 1:middle].sum(axis=1),
            belief.probability[:, middle:].sum(axis=1),
        ]
        counts = np.floor(np.array(self.shares) * self.size).astype(int)
        counts[0] += self.size - counts.sum()

        def drawn(weight: Array, n: int) -> Array:
            p = weight + 1e-6
            return np.asarray(U[rng.choice(len(U), size=n, p=p / p.sum())])

        few = min(0.5, 3.0 / d)
        half = counts[0] // 2
        refined = polynomial_mutation(drawn(weights[0], half), eta=10.0, p_variable=few, rng=rng)
        n = counts[0] - half
        short = differential(
            drawn(weights[0], n), drawn(weights[0], n), drawn(weights[1], n),
            weight=0.5, p_variable=0.5, rng=rng,
        )  # fmt: skip
        crossed, _ = sbx(
            drawn(weights[1], counts[1]), drawn(weights[0], counts[1]),
            eta=10.0, p_pair=1.0, p_variable=0.5, rng=rng,
        )  # fmt: skip
        crossed = polynomial_mutation(crossed, eta=20.0, p_variable=1.0 / d, rng=rng)
        long = differential(
            drawn(weights[2], counts[2]), drawn(weights[0], counts[2]), drawn(weights[2], counts[2]),
            weight=0.9, p_variable=0.7, rng=rng,
        )  # fmt: skip
        parts = {"mutation": refined, "differential": short, "crossover": crossed, "long": long}
        return joined([Pool(u, np.full(len(u), name)) for name, u in parts.items()])


@dataclass(frozen=True)
class SurrogateDescent:
    """Points reached by following the surrogate's mean downhill from evaluated points.

    Each start has a direction w of the simplex and descends the augmented Chebyshev scalarisation
    s_w(f) = max_j (f_j - z_j) / (r_j w_j) + rho sum_j (f_j - z_j) / r_j, with r the extent of the
    front and z a little below the best values seen; where a path gets ahead of z, its z moves on
    along the diagonal, so that every direction leads further. Half of the directions look into the
    widest gaps of the present front; the first m starts descend one objective alone. Steps are
    projected Adam steps in the cube; ``keep`` points of each path enter the pool, because the
    surrogate is trusted less far away.
    """

    starts: int = 60
    steps: int = 40
    rate: float = 0.04
    keep: int = 3
    rho: float = 0.005

    def generate(
        self, archive: Archive, belief: RankBelief, model: Fitted, *, rng: np.random.Generator
    ) -> Pool:
        """``starts * keep`` points; nothing for an archive of fewer than four points."""
        if len(archive) < 4:
            return Pool(np.empty((0, archive.d)), np.empty(0, dtype=np.str_))
        best, extent = _scale(archive)
        W = directions(archive, self.starts, rng=rng)
        N = (archive.F - best) / extent + 0.1
        value = (N[None] / W[:, None]).max(axis=2) + self.rho * N.sum(axis=1)
        value[: archive.m] = N.T[: self.starts]
        paths = self._descend(archive.U[_good_starts(value, rng)], W, best, extent, model)
        pool = np.concatenate(paths)
        return Pool(pool, np.full(len(pool), "descent"))

    def _descend(
        self, U: Array, W: Array, best: Array, extent: Array, model: Fitted
    ) -> list[Array]:
        m = W.shape[1]
        momentum, size = np.zeros_like(U), np.zeros_like(U)
        marks = {max(1, round(self.steps * (i + 1) / self.keep)) for i in range(self.keep)}
        paths, slope = [], np.zeros_like(W)
        for t in range(1, self.steps + 1):
            if t % 4 == 1:  # which objective binds changes slowly; its mean need not be exact
                N = (model.posterior(U).mean[:, :m] - best) / extent
                ahead = np.maximum(-N.min(axis=1, keepdims=True), 0.0)
                slope = self._slope(N + ahead + 0.1, W)
            G = np.einsum("nm,nmd->nd", slope / extent, model.mean_gradient(U)[:, :m])
            norm = np.abs(G).max(axis=1, keepdims=True)
            G = G / np.where(norm > 0, norm, 1.0)
            momentum = 0.9 * momentum + 0.1 * G
            size = 0.99 * size + 0.01 * G**2
            step = (momentum / (1 - 0.9**t)) / (np.sqrt(size / (1 - 0.99**t)) + 1e-8)
            U = np.clip(U - self.rate * (1.0 - 0.9 * t / self.steps) * step, 0.0, 1.0)
            if t in marks:
                paths.append(U.copy())
        return paths

    def _slope(self, N: Array, W: Array) -> Array:
        """d s_w / d n at scaled objectives N; the first m rows follow one objective each."""
        n, m = N.shape
        slope = np.full((n, m), self.rho)
        rows = np.arange(n)
        worst = (N / W).argmax(axis=1)
        slope[rows, worst] += 1.0 / W[rows, worst]
        alone = np.arange(min(n, m))
        slope[alone] = 2 * self.rho
        slope[alone, alone] += 1.0
        return slope


def joined(pools: Sequence[Pool]) -> Pool:
    """One pool of several."""
    return Pool(np.concatenate([p.U for p in pools]), np.concatenate([p.operator for p in pools]))


def directions(archive: Archive, n: int, *, rng: np.random.Generator) -> Array:
    """n directions of the simplex, (n, m): the m corners, then gaps of the front, then any.

    A gap is found by drawing many directions and taking those whose nearest front direction is
    farthest away, one after the other.
    """
    m = archive.m
    corners = np.full((m, m), 0.01) + (1.0 - 0.01 * m) * np.eye(m)
    drawn = np.clip(rng.dirichlet(np.ones(m), size=max(8 * n, 64)), 0.01, None)
    drawn /= drawn.sum(axis=1, keepdims=True)
    if len(archive.front_indices):
        best, extent = _scale(archive)
        taken = np.clip((archive.front - best) / extent + 0.1, 1e-3, None)
        taken /= taken.sum(axis=1, keepdims=True)
        distance = np.linalg.norm(drawn[:, None] - taken[None], axis=2).min(axis=1)
    else:
        distance = np.full(len(drawn), np.inf)
    chosen = []
    for _ in range(max(0, (n - m) // 2)):
        widest = int(distance.argmax())
        chosen.append(widest)
        distance = np.minimum(distance, np.linalg.norm(drawn - drawn[widest], axis=1))
    rest = [i for i in range(len(drawn)) if i not in set(chosen)][: max(0, n - m - len(chosen))]
    return np.concatenate([corners, drawn[chosen], drawn[rest]])[:n]


def _scale(archive: Archive) -> tuple[Array, Array]:
    """The best value of each objective on the front, and the front's extent."""
    front = archive.front if len(archive.front_indices) else archive.F
    low, high = front.min(axis=0), front.max(axis=0)
    extent = np.where(high > low, high - low, np.ptp(archive.F, axis=0))
    extent = np.where(extent > 0, extent, 1.0)
    return low, extent


def _good_starts(value: Array, rng: np.random.Generator) -> Indices:
    """For each direction one of its three best evaluated points, the best most often."""
    best = np.argsort(value, axis=1, kind="stable")[:, :3]
    pick = np.minimum(rng.choice(3, size=len(value), p=[0.6, 0.25, 0.15]), best.shape[1] - 1)
    return np.asarray(best[np.arange(len(value)), pick])
