"""Hyper-parameters of largest posterior density for an RBF process with BoTorch's priors.

h = (log l (d,), log noise, c): maximised is log N(z | c, K_l + noise I) + log p(l) + log p(noise),
length scales l with the dimension-scaled log-normal prior (Hvarfner, Hellsten, Nardi 2024), noise
ln N(-4, 1), flat in c. This is n times GPyTorch's criterion for ``SingleTaskGP``. The gradient is
written out: with a = C^-1 (z - c) and S = (a a^T - C^-1) / 2, d/dC = S.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize

from neuropareto.space import Array
from neuropareto.surrogate.cholesky import JITTER

# SingleTaskGP's own: length scales >= 0.025, noise variance >= 1e-4.
_LENGTHSCALE = (math.log(0.0251), 12.0)
_NOISE = (math.log(1.01e-4), 2.0)
_CONSTANT = (-20.0, 20.0)
# Worse than any real value, yet finite: the line search interpolates between values.
_BROKEN = 1e15


def location(d: int) -> float:
    """Location of the log-normal prior of length scales, sqrt(2) + ln(d) / 2; its scale is sqrt(3)."""
    return math.sqrt(2.0) + 0.5 * math.log(d)


def starts(d: int) -> list[Array]:
    """Where a search begins, (d + 2,) each: the priors' modes (SingleTaskGP's own) and medians."""
    return [np.append(np.full(d, location(d) - below), [-5.0, 0.0]) for below in (3.0, 0.0)]


def log_posterior(X: Array, z: Array, h: Array) -> tuple[float, Array]:
    """log p(z | X, h) + log p(h) up to a constant, and its gradient (d + 2,).

    Both priors are log-normal densities of the value itself, hence -log l and -log noise. Minus
    1e15 and no slope where the covariance is not positive definite.
    """
    n, d = X.shape
    log_l, log_noise, noise = h[:d], float(h[d]), math.exp(h[d])
    scaled = (X - 0.5) * np.exp(-log_l)
    squares = scaled**2
    half = 0.5 * squares.sum(axis=1)
    K = scaled @ scaled.T
    K -= half[:, None]
    K -= half
    np.exp(np.minimum(K, 0.0, out=K), out=K)
    C = K.copy()
    C.flat[:: n + 1] += noise + JITTER * (1.0 + noise)
    L, failed = dpotrf(C.T, lower=1, overwrite_a=1)
    if failed or not np.isfinite(L[-1, -1]):
        return -_BROKEN, np.zeros(d + 2)
    r = z - h[d + 1]
    a = dpotrs(L, r, lower=1)[0]
    log_det_half = float(np.log(np.diagonal(L)).sum())
    evidence = -0.5 * float(r @ a) - log_det_half - 0.5 * n * math.log(2.0 * math.pi)
    inverse = np.tril(dpotri(L, lower=1)[0])
    S = 0.5 * (np.outer(a, a) - inverse - np.tril(inverse, -1).T)
    by_noise = noise * (1.0 + JITTER) * float(np.trace(S))
    S *= K
    by_l = 2.0 * (squares.T @ S.sum(axis=1) - ((S @ scaled) * scaled).sum(axis=0))
    apart = log_l - location(d)
    prior = float((apart**2 / 6.0 + log_l).sum()) + 0.5 * (log_noise + 4.0) ** 2 + log_noise
    gradient = np.append(by_l - apart / 3.0 - 1.0, [by_noise - log_noise - 5.0, a.sum()])
    return evidence - prior, gradient


def fitted(X: Array, z: Array, *, iterations: int) -> Array:
    """The best end, (d + 2,), of L-BFGS-B from each of `starts`: the posterior has several tops."""
    bounds = [_LENGTHSCALE] * X.shape[1] + [_NOISE, _CONSTANT]
    low, high = np.transpose(bounds)

    def loss(h: Array) -> tuple[float, Array]:
        value, gradient = log_posterior(X, z, h)
        return -value, -gradient

    options = {"maxiter": iterations, "maxfun": 2 * iterations}
    ends = [
        minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        for start in np.clip(starts(X.shape[1]), low, high)
    ]
    return np.asarray(min(ends, key=lambda end: float(end.fun)).x)
