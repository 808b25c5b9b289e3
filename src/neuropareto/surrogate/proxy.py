"""Cheap proxies for screening: Bayesian linear regression on fixed features, in closed form.

y = phi(x)^T w + e, w ~ N(0, s^2 I), e ~ N(0, t^2). With K = Phi Phi^T = Q diag(l) Q^T the evidence
of the ratio rho = t^2 / s^2 is a sum over n, and s^2 follows from it, so a grid of ratios is
exact type-II maximum likelihood without iterations. Notation: Phi (n, r), A = Phi_* Phi^T Q.
Paper: section "Two stage surrogate evaluation" (RFF proxies, linearised surrogates).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from neuropareto.memory import Memory
from neuropareto.randomness import torch_seed
from neuropareto.space import Array
from neuropareto.surrogate.cholesky import NumericalFailure
from neuropareto.surrogate.contract import Posterior
from neuropareto.surrogate.exact_gp import even_subsample
from neuropareto.surrogate.kernels import Matern52, Stationary, typical_log_lengthscale
from neuropareto.surrogate.scaling import Scale, check_data

_RATIOS = np.logspace(-8, 3, 45)
_TINY = np.finfo(np.float64).tiny


class Basis(Protocol):
    """Fixed features of points X (n, d) in [-1, 1]."""

    def __call__(self, X: Array) -> Array:
        """Phi (n, r)."""
        ...

    def slope(self, X: Array, W: Array) -> Array:
        """d (phi^T w) / d x for weights W (r, m), (n, m, d)."""
        ...


@dataclass(frozen=True, eq=False)
class Waves:
    """Random Fourier features [cos(x^T omega), sin(x^T omega)] / sqrt(r / 2) and the constant."""

    omega: Array  # (d, r / 2)

    def __call__(self, X: Array) -> Array:
        """Phi (n, r + 1)."""
        angle = X @ self.omega
        waves = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
        return np.concatenate([waves / math.sqrt(self.omega.shape[1]), _ones(X)], axis=1)

    def slope(self, X: Array, W: Array) -> Array:
        """-sin and cos, times the frequencies."""
        r = self.omega.shape[1]
        angle, W = X @ self.omega, W / math.sqrt(r)
        inner = np.cos(angle)[:, None] * W[r : 2 * r].T - np.sin(angle)[:, None] * W[:r].T
        return np.asarray(inner @ self.omega.T)


@dataclass(frozen=True)
class Parabolas:
    """Each variable, its square, and the constant, scaled to unit prior variance in sum."""

    def __call__(self, X: Array) -> Array:
        """Phi (n, 2 d + 1)."""
        return np.concatenate([X, X**2 - 1.0 / 3.0, _ones(X)], axis=1) / math.sqrt(X.shape[1])

    def slope(self, X: Array, W: Array) -> Array:
        """w_linear + 2 x w_square."""
        d = X.shape[1]
        W = W.T / math.sqrt(d)
        return np.asarray(W[:, :d] + 2.0 * X[:, None, :] * W[:, d : 2 * d])


@dataclass(frozen=True)
class FourierProxy:
    """Random Fourier features of a stationary kernel; its lengthscale by evidence from a few.

    ``points`` bounds the cost: of more evaluations that many are used, the latest half and the
    rest evenly.
    """

    features: int = 1024
    scales: tuple[float, ...] = (0.5, 1.0, 2.0)
    kernel: Stationary = Matern52()
    points: int = 600

    def fit(
        self, U: Array, F: Array, *, warm: Memory | None, rng: np.random.Generator
    ) -> FittedLinear:
        """Fit to ``U`` (n, d), ``F`` (n, m); ValueError for bad data."""
        U, F = check_data(U, F)
        generator = torch.Generator().manual_seed(torch_seed(rng))
        d = U.shape[1]
        unit = self.kernel.frequencies(self.features // 2, d, generator).numpy().T
        level = math.exp(typical_log_lengthscale(d) - 1.0)
        bases = [Waves(unit / (level * scale)) for scale in self.scales]
        kept = even_subsample(len(U), self.points)
        fits = [_fitted(basis, U[kept], F[kept], "fourier_proxy") for basis in bases]
        return max(fits, key=lambda fit: fit.evidence)


@dataclass(frozen=True)
class LinearProxy:
    """A linearised surrogate: Bayesian ridge regression on the variables and their squares."""

    points: int = 2000

    def fit(
        self, U: Array, F: Array, *, warm: Memory | None, rng: np.random.Generator
    ) -> FittedLinear:
        """Fit to ``U`` (n, d), ``F`` (n, m); ValueError for bad data."""
        U, F = check_data(U, F)
        kept = even_subsample(len(U), self.points)
        return _fitted(Parabolas(), U[kept], F[kept], "linear_proxy")


@dataclass(frozen=True, eq=False)
class FittedLinear:
    """Bayesian linear regression conditioned on data, one (s^2, t^2) for each objective."""

    name: str
    basis: Basis
    scale: Scale
    weights: Array  # (r, m), posterior means
    data: Array  # Phi^T Q (r, n)
    spectrum: Array  # l (n,)
    signal: Array  # s^2 (m,)
    noise: Array  # t^2 (m,)
    evidence: float

    def posterior(self, U: Array) -> Posterior:
        """Mean and split variances at ``U`` (n, d); the noise is the same everywhere."""
        Phi = self.basis(_centred(U))
        A = Phi @ self.data
        inverse = 1.0 / (self.spectrum[:, None] + (self.noise / self.signal)[None])
        share = (Phi**2).sum(axis=1)[:, None] - A**2 @ inverse
        spread = self.scale.spread
        return Posterior(
            mean=self.scale.centre + spread * (Phi @ self.weights),
            epistemic=np.maximum(spread**2 * self.signal * np.maximum(share, 1e-12), _TINY),
            aleatoric=np.maximum(np.tile(spread**2 * self.noise, (len(U), 1)), _TINY),
        )

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        """n joint draws of the latent objectives, (n, len(U), m)."""
        Phi = self.basis(_centred(U))
        A = Phi @ self.data
        mean = self.posterior(U).mean
        draws = np.empty((n, *mean.shape))
        for j, (signal, noise) in enumerate(zip(self.signal, self.noise, strict=True)):
            C = signal * (Phi @ Phi.T - (A / (self.spectrum + noise / signal)) @ A.T)
            values, vectors = np.linalg.eigh(C)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            base = rng.standard_normal((n, len(U)))
            draws[:, :, j] = mean[:, j] + self.scale.spread[j] * base @ root.T
        return draws

    def mean_gradient(self, U: Array) -> Array:
        """d mean / d u, (len(U), m, d)."""
        slope = self.basis.slope(_centred(U), self.weights)
        return np.asarray(2.0 * self.scale.spread[None, :, None] * slope)

    @property
    def warm(self) -> Memory:
        """Nothing: the fit is in closed form."""
        return {}

    @property
    def notes(self) -> dict[str, object]:
        """The log evidence and the noise on the unit scale."""
        return {"model": self.name, "log_evidence": self.evidence, "noise": self.noise.tolist()}


def _fitted(basis: Basis, U: Array, F: Array, name: str) -> FittedLinear:
    scale = Scale.of(F)
    Y, Phi = scale.standardised(F), basis(_centred(U))
    n = len(Y)
    try:
        spectrum, Q = np.linalg.eigh(Phi @ Phi.T)
    except np.linalg.LinAlgError as error:
        raise NumericalFailure(f"The features of {name} have no eigenvectors: {error}") from error
    spectrum = np.maximum(spectrum, 0.0)
    Z = (Q.T @ Y) ** 2
    open_ = spectrum[None] + _RATIOS[:, None]  # (ratios, n)
    signal = (1.0 / open_) @ Z / n  # (ratios, m)
    value = -0.5 * n * np.log(np.maximum(signal, 1e-12)) - 0.5 * np.log(open_).sum(axis=1)[:, None]
    best = value.argmax(axis=0)
    columns = np.arange(Y.shape[1])
    s2 = np.maximum(signal[best, columns], 1e-12)
    ratio = _RATIOS[best]
    data = Phi.T @ Q
    weights = data @ ((Q.T @ Y) / (spectrum[:, None] + ratio[None]))
    evidence = float(value[best, columns].sum())
    return FittedLinear(name, basis, scale, weights, data, spectrum, s2, s2 * ratio, evidence)


def _centred(U: Array) -> Array:
    return 2.0 * np.asarray(U, dtype=np.float64) - 1.0


def _ones(X: Array) -> Array:
    return np.ones((len(X), 1))
