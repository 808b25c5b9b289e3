"""Gaussian processes without noise, one an objective, and their lower confidence bounds.

k(x, z) = s Matern52(x, z; length scale a variable) + c, hyper-parameters by maximum likelihood in
the box of CDM-PSL's source: length scales and s in [sqrt(1e-3), sqrt(1e3)], c in [exp(-6), 1].
The bound LCB_j = mu_j - kappa sigma_j is differentiable in x. Notation: ``U`` (n, d), ``Z`` (n, m)
standardised objectives, batched over the m objectives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import entr
from torch import Tensor

from neuropareto.memory import Memory
from neuropareto.peers.dense import Floats
from neuropareto.space import Array
from neuropareto.surrogate.cholesky import cholesky, inverse_lower
from neuropareto.surrogate.evidence import Hyper, log_evidence, maximise
from neuropareto.surrogate.kernels import Matern52, scaled_distance

_WIDE = 0.5 * math.log(1e3)
_BOUNDS = {
    "log_lengthscale": (-_WIDE, _WIDE),
    "log_variance": (-_WIDE, _WIDE),
    "log_constant": (-6.0, 0.0),
}


@dataclass(frozen=True, eq=False)
class Bounds:
    """m conditioned processes: X (n, d), ``root`` (m, n, n) = L^-1, ``alpha`` (m, n) = C^-1 z."""

    X: Tensor
    hyper: Hyper
    root: Tensor
    alpha: Tensor
    kappa: float

    def __call__(self, x: Tensor) -> Tensor:
        """LCB at x (k, d), (k, m), differentiable in x."""
        k = _covariance(self.hyper, x, self.X)
        mean = (k @ self.alpha[..., None])[..., 0]
        prior = self.hyper["log_variance"].exp() + self.hyper["log_constant"].exp()
        explained = (self.root @ k.transpose(-1, -2)).square().sum(-2)
        # Cut off above zero: the square root has no derivative there.
        std = (prior[:, None] - explained).clamp_min(1e-10).sqrt()
        return (mean - self.kappa * std).T

    def values(self, U: Array) -> Array:
        """LCB at U (k, d) as an array (k, m)."""
        with torch.no_grad():
            return np.asarray(self(torch.tensor(U)).numpy(), dtype=np.float64)

    def weighted_gradient(self, x: Floats) -> Floats:
        """sum_j w_j grad LCB_j at each row with the entropy weights of the sample, unit length."""
        points = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        values = self(points)
        weights = torch.tensor(entropy_weights(values.detach().numpy()))
        (gradient,) = torch.autograd.grad((values * weights).sum(), points)
        return np.asarray(torch.nn.functional.normalize(gradient, dim=-1).float().numpy())

    @property
    def warm(self) -> Memory:
        """The hyper-parameters, for the next fit."""
        return {name: value.numpy() for name, value in self.hyper.items()}


def fitted(U: Array, Z: Array, *, kappa: float, iterations: int, warm: Memory | None) -> Bounds:
    """The processes of Z (n, m) at U (n, d); L-BFGS starts from ``warm`` if its shapes fit.

    Raises NumericalFailure if the covariance cannot be factorised with 1 % jitter.
    """
    X, Y = torch.tensor(np.array(U)), torch.tensor(Z.T.copy())
    m, d = len(Y), X.shape[1]
    start = {
        # The source starts at 1 with 20 variables; distances in the cube grow with sqrt(d).
        "log_lengthscale": torch.full((m, d), 0.5 * math.log(max(1.0, d / 20.0))).double(),
        "log_variance": torch.zeros(m).double(),
        "log_constant": torch.full((m,), math.log(0.01)).double(),
    }
    if warm is not None and all(
        warm[k].shape == tuple(v.shape) and np.isfinite(warm[k]).all() for k, v in start.items()
    ):
        start = {k: torch.tensor(np.array(warm[k], dtype=np.float64)) for k in start}

    def evidence(hyper: Hyper) -> Tensor:
        return log_evidence(_covariance(hyper, X, X), Y).sum()

    hyper = maximise(evidence, start, _BOUNDS, iterations)
    root = inverse_lower(cholesky(_covariance(hyper, X, X)))
    alpha = (root.transpose(-1, -2) @ (root @ Y[..., None]))[..., 0]
    return Bounds(X, hyper, root, alpha, kappa)


def entropy_weights(values: Array) -> Array:
    """Information-entropy weights w_j of the columns of ``values`` (k, m), summing to 1.

    Columns are scaled to [0, 1] and to shares p_ij; E_j = -(1 / ln k) sum_i p_ij ln p_ij and
    w_j = (1 - E_j) / sum (1 - E). If no column shows a difference, all weigh the same.
    """
    k, m = values.shape
    scaled = values - values.min(axis=0)
    total = scaled.sum(axis=0)
    p = np.where(total > 0, scaled / np.where(total > 0, total, 1.0), 1.0 / k)
    gap = 1.0 - entr(p).sum(axis=0) / math.log(max(k, 2))
    return np.asarray(gap / gap.sum()) if gap.sum() > 1e-9 else np.full(m, 1.0 / m)


def _covariance(hyper: Hyper, A: Tensor, B: Tensor) -> Tensor:
    far = scaled_distance(A, B, hyper["log_lengthscale"])
    correlation = Matern52().correlation(far)
    return (
        hyper["log_variance"].exp()[:, None, None] * correlation
        + hyper["log_constant"].exp()[:, None, None]
    )
