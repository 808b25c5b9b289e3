"""The local Gaussian processes of MORBO: exact fit, and whole sample functions of the posterior.

One GP an output: constant mean, Matern-5/2 with a length scale a variable, Gaussian noise, on the
points of a box stretched to the unit cube; maximum of the exact marginal likelihood by L-BFGS-B.
A joint sample over 4096 candidates by Cholesky costs 4096^3; instead a prior draw by F random
Fourier features is moved on to the data (pathwise conditioning, Wilson et al. 2020), which costs a
product. Written out for speed: ten functions at 4096 points (200 data, d = 30) took BoTorch's
pathwise sampler about 9 s and take about 0.5 s here. GPyTorch is its oracle in tests.
Notation: n points, d variables, o outputs, q sample functions; ``U`` (n, d), ``Y`` (n, o).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, cholesky
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from neuropareto.space import Array

_SQRT5 = float(np.sqrt(5.0))
# Gamma(0.9, 10) prior on the noise variance, as in the official code.
_SHAPE, _RATE = 0.9, 10.0
_SCALES, _VARIANCE, _NOISE = (0.05, 4.0), (1e-2, 1e2), (1e-6, 1.0)


@dataclass(frozen=True)
class Kernel:
    """One output's hyper-parameters: length scales (d,), variance, noise variance, mean."""

    scales: Array
    variance: float
    noise: float
    mean: float

    def __call__(self, A: Array, B: Array) -> Array:
        """Matern-5/2 covariances, variance (1 + r + r^2 / 3) exp(-r) with r = sqrt(5) |a - b|."""
        r = _distances(A / self.scales, B / self.scales)
        return self.variance * (1.0 + r + r**2 / 3.0) * np.exp(-r)


@dataclass(frozen=True)
class Box:
    """A box of the unit cube: ``lower`` (d,) and ``upper`` (d,)."""

    lower: Array
    upper: Array

    def stretched(self, U: Array) -> Array:
        """``U`` with this box as the unit cube; a face of no width keeps its units."""
        width = self.upper - self.lower
        return np.asarray((U - self.lower) / np.where(width > 0, width, 1.0))


@dataclass(frozen=True)
class LocalGP:
    """Independent exact GPs with known hyper-parameters, one for each output."""

    Z: Array
    kernels: tuple[Kernel, ...]
    factors: tuple[Array, ...]
    targets: Array
    centre: Array
    scale: Array
    box: Box

    def mean(self, U: Array) -> Array:
        """Posterior mean, (n, o), in the units of the training data."""
        C = self.box.stretched(U)
        columns = []
        for kernel, factor, y in zip(self.kernels, self.factors, self.targets.T, strict=True):
            weights = cho_solve((factor, True), y - kernel.mean)
            columns.append(kernel.mean + kernel(C, self.Z) @ weights)
        return np.asarray(self.centre + self.scale * np.stack(columns, axis=1))

    def paths(self, q: int, *, features: int, rng: np.random.Generator) -> Paths:
        """q sample functions of the posterior, each defined everywhere."""
        drawn = [
            _path(kernel, factor, self.Z, y, (q, features), rng)
            for kernel, factor, y in zip(self.kernels, self.factors, self.targets.T, strict=True)
        ]
        return Paths(self, tuple(drawn))


@dataclass(frozen=True)
class _Path:
    """Features cos(W z + b) with weights (F, q) and data weights (n, q) of one output."""

    W: npt.NDArray[np.float32]
    b: npt.NDArray[np.float32]
    prior: npt.NDArray[np.float32]
    data: Array


@dataclass(frozen=True)
class Paths:
    """Sample functions of a :class:`LocalGP`: U (n, d) -> (n, q, o)."""

    gp: LocalGP
    drawn: tuple[_Path, ...]

    def some(self, which: slice) -> Paths:
        """A part of the sample functions."""
        return Paths(
            self.gp,
            tuple(_Path(p.W, p.b, p.prior[:, which], p.data[:, which]) for p in self.drawn),
        )

    def __call__(self, U: Array) -> Array:
        """The values of all sample functions at ``U``."""
        C = self.gp.box.stretched(U)
        values = [
            kernel.mean + _prior(path, kernel, C) + kernel(C, self.gp.Z) @ path.data
            for kernel, path in zip(self.gp.kernels, self.drawn, strict=True)
        ]
        return self.gp.centre + self.gp.scale * np.stack(values, axis=2)


def fit_local_gp(U: Array, Y: Array, box: Box, *, iterations: int) -> LocalGP:
    """Fit one GP to each column of Y (n, o); columns without spread get a flat GP."""
    Z = box.stretched(U)
    centre, spread = Y.mean(axis=0), Y.std(axis=0)
    # Rounding leaves a spread of about 1e-16 of the level in a constant column.
    scale = np.where(spread > 1e-12 * (1.0 + np.abs(centre)), spread, 1.0)
    targets = (Y - centre) / scale
    kernels = tuple(fit_kernel(Z, y, iterations=iterations) for y in targets.T)
    factors = tuple(
        cholesky(kernel(Z, Z) + kernel.noise * np.eye(len(Z)), lower=True) for kernel in kernels
    )
    return LocalGP(Z, kernels, factors, targets, centre, scale, box)


def fit_kernel(Z: Array, y: Array, *, iterations: int) -> Kernel:
    """The hyper-parameters that maximise marginal likelihood plus noise prior for y (n,)."""
    d = Z.shape[1]
    start = np.concatenate([np.full(d, np.log(2.0)), [0.0, np.log(1e-2), 0.0]])
    bounds = [tuple(np.log(_SCALES))] * d + [
        tuple(np.log(_VARIANCE)), tuple(np.log(_NOISE)), (-10.0, 10.0),
    ]  # fmt: skip
    found = minimize(
        negative_evidence, start, args=(Z, y), jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": iterations},
    )  # fmt: skip
    return _kernel(found.x)


def negative_evidence(theta: Array, Z: Array, y: Array) -> tuple[float, Array]:
    """-(log likelihood + log prior) / n and its gradient; theta = logs of scales, variance, noise,
    then the mean, (d + 3,).
    """
    n, kernel = len(y), _kernel(theta)
    X = Z / kernel.scales
    r = _distances(X, X)
    decay = kernel.variance * np.exp(-r)
    K = (1.0 + r + r**2 / 3.0) * decay
    factor = cholesky(K + kernel.noise * np.eye(n), lower=True)
    residual = y - kernel.mean
    alpha = cho_solve((factor, True), residual)
    value = 0.5 * residual @ alpha + np.log(np.diag(factor)).sum() + 0.5 * n * np.log(2 * np.pi)
    value -= (_SHAPE - 1.0) * np.log(kernel.noise) - _RATE * kernel.noise
    lower, _ = dpotri(factor, lower=1)  # the inverse, of which only the lower half is filled
    inverse = np.tril(lower) + np.tril(lower, -1).T
    W = 0.5 * (inverse - np.outer(alpha, alpha))
    # sum_ab G_ab (x_a - x_b)^2 for every variable at once, G symmetric
    G = W * (5.0 / 3.0) * (1.0 + r) * decay
    scales = 2.0 * ((G.sum(axis=1)[:, None] * X**2).sum(axis=0) - (X * (G @ X)).sum(axis=0))
    noise = kernel.noise * np.trace(W) - (_SHAPE - 1.0) + _RATE * kernel.noise
    gradient = np.concatenate([scales, [np.sum(W * K), noise, -alpha.sum()]])
    return float(value) / n, gradient / n


def _kernel(theta: Array) -> Kernel:
    variance, noise = np.exp(theta[-3:-1])
    return Kernel(np.exp(theta[:-3]), float(variance), float(noise), float(theta[-1]))


def _distances(A: Array, B: Array) -> Array:
    """sqrt(5) times Euclidean distances, (a, b)."""
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2.0 * A @ B.T
    return np.asarray(_SQRT5 * np.sqrt(np.maximum(squares, 0.0)))


def _path(
    kernel: Kernel,
    factor: Array,
    Z: Array,
    y: Array,
    size: tuple[int, int],
    rng: np.random.Generator,
) -> _Path:
    """q prior functions, and the data weights that carry them through the observations."""
    (n, d), (q, features) = Z.shape, size
    # The spectrum of Matern-5/2 is a Student t with 5 degrees of freedom.
    tails = np.sqrt(5.0 / rng.chisquare(5.0, features))
    W = rng.standard_normal((d, features)) * tails / kernel.scales[:, None]
    path = _Path(
        W.astype(np.float32),
        rng.uniform(0.0, 2.0 * np.pi, features).astype(np.float32),
        rng.standard_normal((features, q)).astype(np.float32),
        np.empty((0, q)),
    )
    noise = np.sqrt(kernel.noise) * rng.standard_normal((n, q))
    gap = (y - kernel.mean)[:, None] - _prior(path, kernel, Z) - noise
    return _Path(path.W, path.b, path.prior, cho_solve((factor, True), gap))


def _prior(path: _Path, kernel: Kernel, Z: Array) -> Array:
    """Prior functions at Z, (n, q); single precision errs far below the noise floor of 1e-3."""
    waves = np.cos(Z.astype(np.float32) @ path.W + path.b)
    scale = np.sqrt(2.0 * kernel.variance / len(path.b))
    return np.asarray(scale * (waves @ path.prior).astype(np.float64))
