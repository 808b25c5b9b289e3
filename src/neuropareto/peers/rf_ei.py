"""RF-EI: SMAC's random forest and expected improvement, several objectives by random weights.

SMAC (Hutter, Hoos, Leyton-Brown 2011): mean and variance of a forest's leaves give the expected
improvement of a cost; candidates are random points and local searches from evaluated points. The
cost is ParEGO's fold of the objectives (Knowles 2006) with weights drawn anew for every point, as
in SMAC's own multi-objective mode. EI(x) = (s* - mu) Phi(z) + sigma phi(z), z = (s* - mu) / sigma.
Notation: b trees, w (m,) weights, s (n,) folded values. SMAC knows no constraints: an infeasible
point costs more than every feasible one, by its violation; a failed point costs the worst.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr
from sklearn.ensemble import RandomForestRegressor

from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive
from neuropareto.memory import Memory
from neuropareto.randomness import Streams
from neuropareto.space import Array

_LEAST_VARIANCE = 1e-10
_FEWEST = 4  # evaluations below which no forest is fitted


@dataclass(frozen=True)
class Forest:
    """SMAC's forest: b trees on bootstrap samples, 5/6 of the variables a split, 10 rows to split."""

    trees: int = 10
    features: float = 5.0 / 6.0
    least_split: int = 10

    def fit(self, U: Array, s: Array, *, rng: np.random.Generator) -> FittedForest:
        """The forest of costs ``s`` (n,) at ``U`` (n, d)."""
        forest = RandomForestRegressor(
            n_estimators=self.trees,
            max_features=self.features,
            min_samples_split=self.least_split,
            random_state=int(rng.integers(2**31)),
        )
        return FittedForest(forest.fit(U, s))


@dataclass(frozen=True)
class FittedForest:
    """A fitted forest as a distribution of the cost at each point."""

    forest: RandomForestRegressor

    def moments(self, U: Array) -> tuple[Array, Array]:
        """Mean (n,) and variance (n,) of the cost: the mixture of the trees' leaves.

        mu = mean_b mu_b; sigma^2 = mean_b var_b + var_b(mu_b), with mu_b and var_b the mean and
        variance of the costs in the leaf of tree b (law of total variance).
        """
        X = U.astype(np.float32)  # what the trees compare with
        trees = [tree.tree_ for tree in self.forest.estimators_]
        leaves = [tree.apply(X) for tree in trees]
        means = np.stack([t.value[at, 0, 0] for t, at in zip(trees, leaves, strict=True)])
        within = np.stack([t.impurity[at] for t, at in zip(trees, leaves, strict=True)])
        variance = within.mean(axis=0) + means.var(axis=0)
        return means.mean(axis=0), np.maximum(variance, _LEAST_VARIANCE)


@dataclass(frozen=True)
class LocalSearch:
    """SMAC's moves: one variable by a normal step, ``neighbours`` a variable, best neighbour first.

    ``starts`` evaluated points of largest EI climb side by side, for at most ``steps`` steps.
    """

    starts: int = 10
    neighbours: int = 4
    step: float = 0.2
    steps: int = 100

    def climbed(
        self, U: Array, fitted: FittedForest, best: float, *, rng: np.random.Generator
    ) -> Array:
        """Where the searches from the best rows of ``U`` (n, d) end, (starts, d)."""
        value = expected_improvement(*fitted.moments(U), best)
        first = np.argsort(-value, kind="stable")[: self.starts]
        at, height = U[first].copy(), value[first]
        climbing = np.arange(len(at))
        for _ in range(self.steps):
            around = self.around(at[climbing], rng=rng)
            k, n, d = around.shape
            values = expected_improvement(*fitted.moments(around.reshape(-1, d)), best)
            values = values.reshape(k, n)
            up = values.argmax(axis=1)
            better = values[np.arange(k), up] > height[climbing]
            climbing = climbing[better]
            if not len(climbing):
                break
            at[climbing] = around[better, up[better]]
            height[climbing] = values[better, up[better]]
        return at

    def around(self, U: Array, *, rng: np.random.Generator) -> Array:
        """All neighbours of the rows of U, (k, neighbours * d, d), inside the unit cube."""
        k, d = U.shape
        n = self.neighbours * d
        moved = np.repeat(U[:, None], n, axis=1)
        variable = np.tile(np.arange(d), self.neighbours)
        steps = self.step * rng.standard_normal((k, n))
        moved[:, np.arange(n), variable] = np.clip(U[:, variable] + steps, 0.0, 1.0)
        return moved


@dataclass(frozen=True)
class RFEI:
    """SMAC's loop on folded objectives; every fifth point, by lot, is uniform (``interleave``)."""

    batch: int = 1
    forest: Forest = Forest()
    search: LocalSearch = LocalSearch()
    rho: float = 0.05
    random: int = 10_000
    interleave: float = 0.2

    def propose(
        self,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        memory: Memory | None,
        rng: Streams,
    ) -> Proposal:
        """q points, each for weights of its own; earlier ones count with their predicted cost."""
        draws = rng("rf-ei")
        if len(archive) < _FEWEST:
            return Proposal(np.asarray(draws.random((q, archive.d)), dtype=np.float64))
        seconds = {"surrogate": 0.0, "selection": 0.0}
        waiting, by_lot = pending, 0
        for _ in range(q):
            began = time.perf_counter()
            if draws.random() < self.interleave:
                u, by_lot = draws.random((1, archive.d)), by_lot + 1
            else:
                w = draws.dirichlet(np.ones(archive.m))
                U, s = costs(archive, w, self.rho)
                fitted = self.forest.fit(U, s, rng=draws)
                if len(waiting):
                    believed = fitted.moments(waiting)[0]
                    fitted = self.forest.fit(
                        np.vstack([U, waiting]), np.concatenate([s, believed]), rng=draws
                    )
                seconds["surrogate"] += time.perf_counter() - began
                began = time.perf_counter()
                u = self._best(fitted, archive.U, float(s.min()), waiting, draws)
            waiting = np.concatenate([waiting, u])
            seconds["selection"] += time.perf_counter() - began
        notes = {"stage_seconds": seconds, "by_lot": by_lot}
        return Proposal(waiting[len(pending) :], notes=notes)

    def _best(
        self,
        fitted: FittedForest,
        U: Array,
        best: float,
        waiting: Array,
        rng: np.random.Generator,
    ) -> Array:
        """The point (1, d) of largest EI among searched and random ones; ties go by lot."""
        pool = np.concatenate(
            [self.search.climbed(U, fitted, best, rng=rng), rng.random((self.random, U.shape[1]))]
        )
        known = np.concatenate([U, waiting])
        # Only ends of searches can repeat an evaluated point: where no step led up.
        ends = pool[: -self.random]
        repeats = (ends[:, None] == known).all(axis=2).any(axis=1)
        pool = np.concatenate([ends[~repeats], pool[-self.random :]])
        pool = pool[rng.permutation(len(pool))]
        value = expected_improvement(*fitted.moments(pool), best)
        return pool[[int(np.argmax(value))]]


def costs(archive: Archive, w: Array, rho: float) -> tuple[Array, Array]:
    """Points and their costs for weights w (m,): folded objectives, (n + failed, d) and (n + failed,).

    s = max_j w_j f_j + rho sum_j w_j f_j with f moved to [0, 1] over the archive. Infeasible points
    come after all others by their violation; failed ones cost as much as the worst.
    """
    extent = np.ptp(archive.F, axis=0)
    weighted = w * (archive.F - archive.F.min(axis=0)) / np.where(extent > 0, extent, 1.0)
    s = weighted.max(axis=1) + rho * weighted.sum(axis=1)
    worst = archive.violation.max(initial=0.0)
    if worst > 0:
        s = np.where(archive.violation > 0, s.max() + archive.violation / worst, s)
    failed = archive.failed
    return np.concatenate([archive.U, failed]), np.append(s, np.full(len(failed), s.max()))


def expected_improvement(mean: Array, variance: Array, best: float) -> Array:
    """EI = (s* - mu) Phi(z) + sigma phi(z), z = (s* - mu) / sigma; (n,)."""
    sigma = np.sqrt(variance)
    z = (best - mean) / sigma
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    return np.asarray((best - mean) * ndtr(z) + sigma * density)
