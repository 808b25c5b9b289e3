"""Correlated objectives: the linear model of coregionalisation around any surrogate.

f(x) = W g(x) with W (m, R) and R independent latent functions g, each an output of the inner
surrogate. W diagonalises the correlation of the observed objectives (decision D-30): with R = m
the latent data are uncorrelated, which is the assumption that makes independent models right.
Paper: section "Inter-Objective Correlation Modeling", Eqs. lmc_revised, predictive_cov_revised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto.memory import Memory
from neuropareto.space import Array
from neuropareto.surrogate.contract import Fitted, Posterior, Surrogate
from neuropareto.surrogate.scaling import Scale, check_data


@dataclass(frozen=True)
class Coregional:
    """Wraps ``inner``; ``rank`` is R, by default the number of objectives."""

    inner: Surrogate
    rank: int | None = None

    def fit(
        self, U: Array, F: Array, *, warm: Memory | None, rng: np.random.Generator
    ) -> FittedCoregional:
        """Fit W by the correlation of ``F`` (n, m), the latent functions by ``inner``."""
        U, F = check_data(U, F)
        scale = Scale.of(F)
        Y = scale.standardised(F)
        m = Y.shape[1]
        rank = m if self.rank is None else min(self.rank, m)
        C = Y.T @ Y / len(Y)
        values, vectors = np.linalg.eigh(C)
        order = np.argsort(-values)[:rank]
        values = np.maximum(values[order], 1e-6 * max(float(values.max()), 1e-12))
        W = vectors[:, order] * np.sqrt(values)
        G = Y @ vectors[:, order] / np.sqrt(values)
        # A warm start belongs to latent functions of the same signs and order.
        signs = np.sign(W[np.abs(W).argmax(axis=0), np.arange(rank)])
        W, G = W * signs, G * signs
        left = np.maximum(np.diag(C - W @ W.T), 0.0)
        return FittedCoregional(self.inner.fit(U, G, warm=warm, rng=rng), W, left, scale)


@dataclass(frozen=True, eq=False)
class FittedCoregional:
    """f = W g with a fitted model of g; ``left`` (m,) is the variance that W does not reach."""

    latent: Fitted
    W: Array
    left: Array
    scale: Scale

    def posterior(self, U: Array) -> Posterior:
        """The diagonals of the predictive covariance, split."""
        g, spread = self.latent.posterior(U), self.scale.spread
        return Posterior(
            mean=self.scale.centre + spread * (g.mean @ self.W.T),
            epistemic=spread**2 * (g.epistemic @ (self.W**2).T),
            aleatoric=spread**2 * (g.aleatoric @ (self.W**2).T + self.left),
        )

    def covariance(self, U: Array) -> Array:
        """W Cov(g(x)) W^T + diag(sigma^2) at each point, (n, m, m). Eq. predictive_cov_revised."""
        g, spread = self.latent.posterior(U), self.scale.spread
        latent = np.einsum("ir,nr,jr->nij", self.W, g.epistemic, self.W)
        noise = g.aleatoric @ (self.W**2).T + self.left
        latent[:, np.arange(len(spread)), np.arange(len(spread))] += noise
        return np.asarray(latent * spread[:, None] * spread[None, :])

    def correlation(self, U: Array) -> Array:
        """The predictive correlation matrix of the objectives, averaged over points, (m, m)."""
        C = self.covariance(U)
        std = np.sqrt(np.einsum("nii->ni", C))
        return np.asarray((C / (std[:, :, None] * std[:, None, :])).mean(axis=0))

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        """n joint draws of the latent objectives, correlated through W, (n, len(U), m)."""
        draws = self.latent.samples(U, n, rng=rng)
        return np.asarray(self.scale.centre + self.scale.spread * (draws @ self.W.T))

    def mean_gradient(self, U: Array) -> Array:
        """W d mean g / d u, (len(U), m, d)."""
        slope = np.einsum("mr,nrd->nmd", self.W, self.latent.mean_gradient(U))
        return np.asarray(self.scale.spread[None, :, None] * slope)

    @property
    def warm(self) -> Memory:
        """The latent model's."""
        return self.latent.warm

    @property
    def notes(self) -> dict[str, object]:
        """The latent model's, and W."""
        return {**self.latent.notes, "coregionalisation": self.W.tolist()}
