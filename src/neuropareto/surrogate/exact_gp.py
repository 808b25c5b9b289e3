"""The standard Gaussian process, one per objective, all fitted at once (the paper's ablation).

y_m = c_m + f_m(x) + e, f_m ~ GP(0, s_m^2 k(x, x'; lengthscales_m)), e ~ N(0, noise_m).
Hyper-parameters maximise the log marginal likelihood plus a prior whose lengthscales grow with
sqrt(d). Notation: X (n, d), K (m, n, n), alpha (m, n) = C^-1 (y - c).
Paper: Eq. gp_variance; Table "Component Contribution Analysis", "standard GP".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from neuropareto.memory import Memory
from neuropareto.randomness import torch_seed
from neuropareto.space import Array
from neuropareto.surrogate.cholesky import cholesky, solve_lower
from neuropareto.surrogate.contract import Posterior
from neuropareto.surrogate.evidence import Hyper, log_evidence, log_normal, maximise
from neuropareto.surrogate.kernels import (
    Matern52,
    Stationary,
    log_lengthscale_prior,
    scaled_distance,
    typical_log_lengthscale,
)
from neuropareto.surrogate.scaling import Scale, array, centred, check_data

_BOUNDS = {
    "log_lengthscale": (-7.0, 12.0),
    "log_variance": (-6.0, 6.0),
    "log_noise": (-13.8, 2.0),
    "constant": (-20.0, 20.0),
}


@dataclass(frozen=True)
class ExactGP:
    """Spec of the exact GP: Eq. gp_variance for each objective, hyper-parameters by L-BFGS.

    ``points`` bounds the cost: of more evaluations the hyper-parameters see 400
    and the posterior conditions on ``points`` of them: the latest half, the rest spread evenly.
    """

    kernel: Stationary = Matern52()
    iterations: int = 75
    shrinkage: float = 3.0
    points: int = 1000
    device: str = "cpu"

    def fit(
        self, U: Array, F: Array, *, warm: Memory | None, rng: np.random.Generator
    ) -> FittedExactGP:
        """Fit m GPs to ``U`` (n, d), ``F`` (n, m); ValueError for bad shapes, NumericalFailure."""
        U, F = check_data(U, F)
        kept = even_subsample(len(U), self.points)
        U, F = U[kept], F[kept]
        scale = Scale.of(F)
        device = torch.device(self.device)
        X = centred(U, device)
        Y = torch.tensor(scale.standardised(F).T.copy(), device=device)
        seen = torch.tensor(even_subsample(len(U), 400), device=device)
        start = _start(X.shape[1], Y.shape[0], warm, device)

        def objective(hyper: Hyper) -> Tensor:
            return self._log_posterior(hyper, X[seen], Y[:, seen])

        hyper = maximise(objective, start, _BOUNDS, self.iterations)
        value = float(objective(hyper))
        return FittedExactGP(self.kernel, hyper, scale, X, Y, value)

    def _log_posterior(self, hyper: Hyper, X: Tensor, Y: Tensor) -> Tensor:
        C = covariance(self.kernel, hyper, X, X) + torch.diag_embed(
            torch.exp(hyper["log_noise"])[:, None].expand_as(Y)
        )
        prior = log_lengthscale_prior(hyper["log_lengthscale"], self.shrinkage)
        prior = prior + log_normal(hyper["log_variance"], 0.0, 1.0)
        prior = prior + log_normal(hyper["log_noise"], -4.0, 2.0)
        return log_evidence(C, Y - hyper["constant"][:, None]).sum() + prior


class FittedExactGP:
    """A conditioned exact GP."""

    def __init__(
        self, kernel: Stationary, hyper: Hyper, scale: Scale, X: Tensor, Y: Tensor, value: float
    ) -> None:
        self._kernel, self._hyper, self._scale, self._X = kernel, hyper, scale, X
        noise = torch.exp(hyper["log_noise"])
        C = covariance(kernel, hyper, X, X) + torch.diag_embed(noise[:, None].expand_as(Y))
        self._L = cholesky(C)
        residual = (Y - hyper["constant"][:, None])[..., None]
        self._alpha = torch.cholesky_solve(residual, self._L)[..., 0]
        self._value = value

    def _mean(self, X: Tensor) -> tuple[Tensor, Tensor]:
        K = covariance(self._kernel, self._hyper, X, self._X)
        mean = (K @ self._alpha[..., None])[..., 0] + self._hyper["constant"][:, None]
        return mean, K

    def posterior(self, U: Array) -> Posterior:
        """Mean and split variances at ``U`` (n, d); the noise is the same everywhere."""
        mean, K = self._mean(centred(U, self._X.device))
        explained = solve_lower(self._L, K.transpose(-1, -2)).square().sum(-2)
        prior = torch.exp(self._hyper["log_variance"])[:, None]
        epistemic = (prior - explained).clamp_min(1e-12)
        noise = torch.exp(self._hyper["log_noise"])[:, None].expand_as(mean)
        return self._scale.posterior(mean.T, epistemic.T, noise.T)

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        """n joint draws of the latent objectives, (n, len(U), m)."""
        X = centred(U, self._X.device)
        mean, K = self._mean(X)
        A = solve_lower(self._L, K.transpose(-1, -2))
        prior = covariance(self._kernel, self._hyper, X, X)
        root = cholesky(prior - A.transpose(-1, -2) @ A)
        generator = torch.Generator(self._X.device).manual_seed(torch_seed(rng))
        base = torch.randn(
            (*mean.shape, n), generator=generator, dtype=torch.float64, device=self._X.device
        )
        return self._scale.draws((mean[..., None] + root @ base).permute(2, 1, 0))

    def mean_gradient(self, U: Array) -> Array:
        """d mean / d u, (len(U), m, d)."""
        return self.mean_and_gradient(U)[1]

    def mean_and_gradient(self, U: Array) -> tuple[Array, Array]:
        """The mean (len(U), m) and its gradient (len(U), m, d), together."""
        m = len(self._alpha)
        # One copy of the points for each objective: their gradients then come in one pass.
        X = centred(U, self._X.device).repeat(m, 1, 1).requires_grad_()
        mean = self._mean(X)[0]
        (G,) = torch.autograd.grad(mean.sum(), X)
        return self._scale.draws(mean.T), self._scale.gradient(G.transpose(0, 1))

    @property
    def warm(self) -> Memory:
        """The hyper-parameters."""
        return {k: array(v) for k, v in self._hyper.items()}

    @property
    def notes(self) -> dict[str, object]:
        """Log posterior density of the hyper-parameters and the noise on the unit scale."""
        noise = array(torch.exp(self._hyper["log_noise"]))
        return {"model": "exact_gp", "log_evidence": self._value, "noise": noise.tolist()}


def covariance(kernel: Stationary, hyper: Hyper, X: Tensor, Z: Tensor) -> Tensor:
    """s^2 k(x, z) (m, n, n') for X (n, d) or (m, n, d) and Z (n', d)."""
    squared = scaled_distance(X, Z, hyper["log_lengthscale"])
    return torch.exp(hyper["log_variance"])[:, None, None] * kernel.correlation(squared)


def even_subsample(n: int, most: int) -> npt.NDArray[np.int64]:
    """Indices of at most ``most`` of n rows: the latest half of them, and the rest evenly."""
    if n <= most:
        return np.arange(n)
    late = most // 2
    early = np.linspace(0, n - late - 1, most - late).round().astype(np.int64)
    return np.concatenate([early, np.arange(n - late, n)])


def _start(d: int, m: int, warm: Memory | None, device: torch.device) -> Hyper:
    cold: dict[str, npt.NDArray[Any]] = {
        # Shorter than the prior's centre: from there the gradient sees which variables matter.
        "log_lengthscale": np.full((m, d), typical_log_lengthscale(d) - 1.5),
        "log_variance": np.zeros(m),
        "log_noise": np.full(m, -4.0),
        "constant": np.zeros(m),
    }
    known = warm is not None and all(
        k in warm and warm[k].shape == v.shape and np.isfinite(warm[k]).all()
        for k, v in cold.items()
    )
    chosen = warm if known and warm is not None else cold
    return {k: torch.tensor(np.array(chosen[k], dtype=np.float64), device=device) for k in cold}
