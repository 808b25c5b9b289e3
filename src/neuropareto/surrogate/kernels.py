"""Covariance functions, batched over objectives or latent functions (leading dimension b).

Notation: X (n, d) or (b, n, d) in [-1, 1], lengthscales (b, d), variances (b,), K (b, n, n').
``Matern52`` and ``RBF`` map squared scaled distances to correlations and know the distribution
of their random Fourier frequencies. The structured kernel adds, to a stationary one, the neural
mean and linear and quadratic terms for each variable and for all variables pooled.
Paper: k_l of Eq. gp_layer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from neuropareto.surrogate.mean import NeuralMean, Params


class Stationary(Protocol):
    """A correlation as a function of the scaled distance."""

    def correlation(self, squared: Tensor) -> Tensor:
        """The correlation at squared scaled distances."""
        ...

    def frequencies(self, n: int, d: int, generator: torch.Generator) -> Tensor:
        """n draws (n, d) from the spectral density at unit lengthscale."""
        ...


@dataclass(frozen=True)
class RBF:
    """k(r) = exp(-r^2 / 2); normal spectral density."""

    def correlation(self, squared: Tensor) -> Tensor:
        """exp(-r^2 / 2)."""
        return torch.exp(-0.5 * squared)

    def frequencies(self, n: int, d: int, generator: torch.Generator) -> Tensor:
        """Standard normal frequencies (n, d)."""
        return torch.randn(n, d, generator=generator, dtype=torch.float64)


@dataclass(frozen=True)
class Matern52:
    """k(r) = (1 + s + s^2 / 3) exp(-s), s = sqrt(5) r; Student-t spectral density."""

    def correlation(self, squared: Tensor) -> Tensor:
        """(1 + s + s^2 / 3) exp(-s)."""
        # The square root has no derivative at 0, where coinciding points are.
        s = torch.sqrt(5.0 * squared.clamp_min(1e-20))
        return (1.0 + s + s * s / 3.0) * torch.exp(-s)

    def frequencies(self, n: int, d: int, generator: torch.Generator) -> Tensor:
        """Multivariate Student-t frequencies (n, d) with 5 degrees of freedom."""
        normal = torch.randn(n, d, generator=generator, dtype=torch.float64)
        chi2 = torch.randn(n, 5, generator=generator, dtype=torch.float64).square().sum(-1)
        return normal * torch.sqrt(5.0 / chi2)[:, None]


def squared_distance(A: Tensor, B: Tensor) -> Tensor:
    """Squared distances (..., n, n') between the rows of A (..., n, d) and B (..., n', d)."""
    # Centring first keeps the cancellation in |a|^2 - 2 a.b + |b|^2 small.
    shift = B.detach().mean(-2, keepdim=True)
    A, B = A - shift, B - shift
    cross = A @ B.transpose(-1, -2)
    a, b = A.square().sum(-1)[..., :, None], B.square().sum(-1)[..., None, :]
    return (a + b - 2.0 * cross).clamp_min(0.0)


def scaled_distance(X: Tensor, Z: Tensor, log_lengthscale: Tensor) -> Tensor:
    """Squared distances (b, n, n') after dividing each variable by its lengthscale (b, d)."""
    inverse = torch.exp(-log_lengthscale)[:, None, :]
    return squared_distance(X * inverse, Z * inverse)


def structure(X: Tensor) -> Tensor:
    """Features (..., n, 2 d + 2): each variable, its square, and the two sums over variables.

    All have mean 0 and variance 1 (the first two groups: 1 / d) for uniform X. The sums carry the
    belief that variables may act alike; without them 200 points cannot teach 100 squares.
    """
    root = math.sqrt(X.shape[-1])
    linear = X * (math.sqrt(3.0) / root)
    square = (X.square() - 1.0 / 3.0) * (math.sqrt(45.0 / 4.0) / root)
    sums = torch.stack([linear.sum(-1), square.sum(-1)], dim=-1)
    return torch.cat([linear, square, sums], dim=-1)


@dataclass(frozen=True)
class Structured:
    """k(x, x') = s^2 k_stationary(x, x') + sum_j t_j phi_j(x) phi_j(x').

    phi(x) = (structure(x), hidden units of the neural mean). The sum is the neural mean with its
    weights w ~ N(0, t) integrated out, one t for each of the five groups of features.
    Parameters: ``log_lengthscale`` (b, d), ``log_variance`` (b,), ``log_structure`` (b, 5) and
    those of the neural mean. Paper: Eqs. gp_layer and mean_fn.
    """

    stationary: Stationary = Matern52()
    mean: NeuralMean = NeuralMean()

    def covariance(self, p: Params, X: Tensor, Z: Tensor) -> Tensor:
        """K (b, n, n') between X (n, d) and Z (n', d)."""
        far = scaled_distance(X, Z, p["log_lengthscale"])
        variance = torch.exp(p["log_variance"])[:, None, None]
        dot = (self.phi(p, X) * self._weights(p)[:, None, :]) @ self.phi(p, Z).T
        return variance * self.stationary.correlation(far) + dot

    def diagonal(self, p: Params, X: Tensor) -> Tensor:
        """k(x, x) (b, n) for X (n, d)."""
        dot = self._weights(p) @ self.phi(p, X).square().T
        return torch.exp(p["log_variance"])[:, None] + dot

    def phi(self, p: Params, X: Tensor) -> Tensor:
        """All features (n, 2 d + 2 + hidden)."""
        return torch.cat([structure(X), self.mean.hidden_units(p, X)], dim=-1)

    def _weights(self, p: Params) -> Tensor:
        """Prior variances (b, 2 d + 2 + hidden) of the weights of phi."""
        d, hidden = p["log_lengthscale"].shape[-1], len(p["hidden_bias"])
        repeats = torch.tensor([d, d, 1, 1, hidden], device=p["log_structure"].device)
        return torch.exp(p["log_structure"]).repeat_interleave(repeats, dim=-1)


def log_lengthscale_prior(log_lengthscale: Tensor, shrinkage: float) -> Tensor:
    """Log prior density (scalar, up to a constant) of ARD lengthscales (b, d) on [-1, 1]^d.

    The common level, the mean over variables, is normal around :func:`typical_log_lengthscale`
    with deviation sqrt(3); each variable's deviation from it is Laplace with rate ``shrinkage``,
    so that few variables stand out and a hundred free lengthscales do not fit the noise.
    """
    level = log_lengthscale.mean(-1, keepdim=True)
    common = -0.5 * ((level - typical_log_lengthscale(log_lengthscale.shape[-1])) ** 2 / 3.0).sum()
    apart = torch.sqrt((log_lengthscale - level).square() + 1e-2).sum()
    return common - shrinkage * apart


def typical_log_lengthscale(d: int) -> float:
    """sqrt(2) + log(d) / 2 + log(2): distances in [-1, 1]^d grow with sqrt(d).

    Hvarfner, Hellsten and Nardi (2024), whose location is for the unit cube: hence log(2).
    """
    return math.sqrt(2.0) + 0.5 * math.log(d) + math.log(2.0)
