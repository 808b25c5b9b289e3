"""Which variables matter: permutation importance of a random forest, and rank correlation.

n evaluations, d variables in the unit cube, m objectives. Two halves of the data take turns: a
forest is fitted to one, and on the other a variable is shuffled. Its importance is the growth of
the squared error, as a share of the objective's variance. Every half is unseen by its forest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata
from sklearn.ensemble import RandomForestRegressor

from neuropareto.randomness import stream
from neuropareto.space import Array

FEWEST, MOST, TESTED = 20, 1500, 40


@dataclass(frozen=True, eq=False)
class Importance:
    """``share`` (d, m) of variance lost by shuffling, ``correlation`` (d, m) of ranks, ``r2`` (m,)."""

    share: Array
    correlation: Array
    r2: Array

    def top(self, n: int) -> list[int]:
        """The n variables that matter most for any objective, most important first."""
        strength = (self.share * np.maximum(self.r2, 0.05)).max(axis=1)
        strength = strength + 1e-6 * np.abs(self.correlation).max(axis=1)
        return [int(i) for i in np.argsort(-strength)[:n]]


def importance_of(U: Array, F: Array, *, seed: int) -> Importance | None:
    """Importance of every variable for every objective; None with too few evaluations."""
    if len(U) < FEWEST:
        return None
    rng = stream(seed, 0, "importance")
    if len(U) > MOST:
        rows = np.sort(rng.choice(len(U), MOST, replace=False))
        U, F = U[rows], F[rows]
    columns = [_one(U, F[:, j], rng) for j in range(F.shape[1])]
    share = np.stack([c[0] for c in columns], axis=1)
    return Importance(share, _correlation(U, F), np.array([c[1] for c in columns]))


def _one(U: Array, f: Array, rng: np.random.Generator) -> tuple[Array, float]:
    share, variance = np.zeros(U.shape[1]), float(f.var())
    if variance == 0.0:
        return share, 0.0
    order = rng.permutation(len(U))
    halves = order[: len(U) // 2], order[len(U) // 2 :]
    missed = 0.0
    for seen, unseen in (halves, halves[::-1]):
        forest = RandomForestRegressor(
            80, max_features=0.33, min_samples_leaf=2, random_state=int(rng.integers(2**31))
        ).fit(U[seen], f[seen])
        error = float(((forest.predict(U[unseen]) - f[unseen]) ** 2).mean())
        missed += error / 2
        # A variable that no tree splits on cannot matter to the forest: only the leaders are shuffled.
        leaders = np.argsort(-forest.feature_importances_)[:TESTED]
        for i in leaders:
            shuffled = U[unseen].copy()
            shuffled[:, i] = rng.permutation(shuffled[:, i])
            worse = float(((forest.predict(shuffled) - f[unseen]) ** 2).mean())
            share[i] += max(0.0, worse - error) / variance / 2
    return share, 1.0 - missed / variance


def _correlation(U: Array, F: Array) -> Array:
    """Spearman's rank correlation, (d, m); 0 where something is constant."""
    ranks = [rankdata(values, axis=0) for values in (U, F)]
    R, S = (r - r.mean(axis=0) for r in ranks)
    norm = np.linalg.norm(R, axis=0)[:, None] * np.linalg.norm(S, axis=0)[None]
    return np.asarray(R.T @ S / np.where(norm > 0, norm, 1.0))
