"""Kriging in the manner of the DACE toolbox (Lophaven, Nielsen, Sondergaard 2002).

y(x) = f(x)^T beta + z(x), z a Gaussian process with correlation exp(-sum_k theta_k dx_k^2); beta
and the process variance are profiled out, theta maximises the likelihood times a prior.
Notation: X (n, d) and y (n,) standardised, B (n, p) trend basis, C (n, n) correlation plus nugget.
DACE searches theta by patterns; here L-BFGS follows the analytic gradient, which at a hundred
variables is the difference between seconds and hours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, qr, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from neuropareto.space import Array


@dataclass(frozen=True)
class Kriging:
    """Spec of one Kriging model: trend degree, nugget, box of theta, L-BFGS iterations.

    ``degree`` 0 is a constant trend; 1, a linear one, drops to 0 where fewer than 1.5 points stand
    behind each coefficient.
    """

    degree: int = 0
    nugget: float = 1e-6
    theta_bounds: tuple[float, float] = (1e-5, 100.0)
    iterations: int = 50

    def fit(self, U: Array, y: Array, *, theta: Array | None) -> FittedKriging:
        """A model of y (n,) at U (n, d), theta (d,) searched from ``theta`` or from the prior."""
        n, d = U.shape
        X, inputs = _standardised(U)
        z, output = _standardised(y[:, None])
        degree = self.degree if n >= 1.5 * (d + 1) else 0
        data = _Data(X, z[:, 0], _basis(X, degree), self.nugget, *log_theta_prior(d))
        start = np.log(np.full(d, 0.5 / d) if theta is None else theta)
        low, high = np.log(self.theta_bounds)
        found = minimize(
            data.loss, np.clip(start, low, high), jac=True, method="L-BFGS-B",
            bounds=[(low, high)] * d, options={"maxiter": self.iterations},
        )  # fmt: skip
        return FittedKriging(data, np.exp(found.x), degree, inputs, output)


def log_theta_prior(d: int) -> tuple[float, float]:
    """Mean and deviation of log theta: lengthscales log-normal around exp(sqrt(2)) sqrt(d).

    Hvarfner, Hellsten and Nardi (2024), for the unit cube; a standardised uniform variable is
    sqrt(12) times as wide, and theta = 1 / (2 lengthscale^2).
    """
    log_lengthscale = math.sqrt(2.0) + 0.5 * math.log(d) + 0.5 * math.log(12.0)
    return -math.log(2.0) - 2.0 * log_lengthscale, 2.0 * math.sqrt(3.0)


@dataclass(frozen=True)
class _Data:
    """Standardised data and the likelihood of theta on it."""

    X: Array
    y: Array
    B: Array
    nugget: float
    prior_mean: float
    prior_std: float

    def loss(self, log_theta: Array) -> tuple[float, Array]:
        """Minus the log posterior of log theta, profiled over beta and the variance; gradient."""
        theta = np.exp(log_theta)
        R = correlation(self.X, self.X, theta)
        L = cholesky(R + self.nugget * np.eye(len(R)), lower=True)
        residual, _, _ = self.generalised(L)
        n = len(self.y)
        variance = max(float(residual @ residual) / n, 1e-300)
        inverse = dpotri(L, lower=1)[0]
        inverse = inverse + np.tril(inverse, -1).T
        a = solve_triangular(L, residual, lower=True, trans=1)
        # d loss / d C; by the envelope theorem beta and the variance may be held fixed.
        S = 0.5 * (inverse - np.outer(a, a) / variance) * R
        moment = 2.0 * (self.X.T**2 @ S.sum(axis=1) - ((S @ self.X) * self.X).sum(axis=0))
        apart = (log_theta - self.prior_mean) / self.prior_std
        value = 0.5 * n * math.log(variance) + float(np.log(np.diagonal(L)).sum())
        return value + 0.5 * float(apart @ apart), -theta * moment + apart / self.prior_std

    def generalised(self, L: Array) -> tuple[Array, Array, Array]:
        """Generalised least squares: whitened residual (n,), and Q (n, p), G (p, p) of L^-1 B."""
        y = solve_triangular(L, self.y, lower=True)
        Q, G = qr(solve_triangular(L, self.B, lower=True), mode="economic")
        return y - Q @ (Q.T @ y), Q, G


class FittedKriging:
    """A Kriging model conditioned on its data."""

    def __init__(
        self, data: _Data, theta: Array, degree: int, inputs: _Affine, output: _Affine
    ) -> None:
        self.theta = theta
        self._data, self._degree, self._inputs, self._output = data, degree, inputs, output
        n = len(data.y)
        C = correlation(data.X, data.X, theta) + data.nugget * np.eye(n)
        self._L = cholesky(C, lower=True)
        residual, self._Q, self._G = data.generalised(self._L)
        self._alpha = solve_triangular(self._L, residual, lower=True, trans=1)
        y = solve_triangular(self._L, data.y, lower=True)
        self._beta = np.linalg.lstsq(self._G, self._Q.T @ y, rcond=1e-12)[0]
        self._variance = float(residual @ residual) / n

    def mean(self, U: Array) -> Array:
        """The best linear unbiased prediction at U (k, d), (k,)."""
        X = self._inputs.forward(U)
        r = correlation(X, self._data.X, self.theta)
        return self._output.back(_basis(X, self._degree) @ self._beta + r @ self._alpha)

    def variance(self, U: Array) -> Array:
        """The mean squared error of that prediction, (k,), the trend's uncertainty included."""
        X = self._inputs.forward(U)
        white = solve_triangular(
            self._L, correlation(X, self._data.X, self.theta).T, lower=True
        )  # (n, k)
        unexplained = self._G.T @ (self._Q.T @ white) - _basis(X, self._degree).T
        trend = np.linalg.lstsq(self._G.T, unexplained, rcond=1e-12)[0]
        mse = 1.0 - (white**2).sum(axis=0) + (trend**2).sum(axis=0)
        spread = float(self._output.spread[0])
        return np.asarray(np.maximum(mse, 0.0) * self._variance * spread**2)


def means(models: Sequence[FittedKriging], U: Array) -> Array:
    """Predicted objectives at U (k, d), one column a model, (k, m)."""
    return np.stack([model.mean(U) for model in models], axis=1)


def correlation(A: Array, B: Array, theta: Array) -> Array:
    """exp(-sum_k theta_k (a_k - b_k)^2), (len(A), len(B))."""
    root = np.sqrt(theta)
    return np.asarray(np.exp(-cdist(A * root, B * root, "sqeuclidean")))


@dataclass(frozen=True)
class _Affine:
    """A column-wise scale: x -> (x - centre) / spread."""

    centre: Array
    spread: Array

    def forward(self, X: Array) -> Array:
        return np.asarray((X - self.centre) / self.spread)

    def back(self, y: Array) -> Array:
        return np.asarray(self.centre[0] + self.spread[0] * y)


def _standardised(X: Array) -> tuple[Array, _Affine]:
    """X with mean 0 and deviation 1 in each column; a column without spread is only centred."""
    centre, spread = X.mean(axis=0), X.std(axis=0)
    # Differences below the rounding of the values themselves are not information.
    rounding = 1e-12 * np.maximum(np.abs(centre), 1e-150)
    scale = _Affine(centre, np.where(spread > rounding, spread, 1.0))
    return scale.forward(X), scale


def _basis(X: Array, degree: int) -> Array:
    """The trend's regressors: a constant, and for degree 1 each variable; (k, p)."""
    one = np.ones((len(X), 1))
    return np.hstack([one, X]) if degree else one
