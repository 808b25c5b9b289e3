"""Exact Gaussian processes as a BoTorch model: independent outputs, hyper-parameters given.

BoTorch's criteria only ask a model for ``posterior(X)``. GPyTorch answers through lazily evaluated
operators and copies the training data for every candidate; that took two fifths of the
time of GP-EI and nearly all of CL-EGO's. Here the same numbers are four matrix products:
mean = c + k a, covariance = k(X, X) - w w^T, with k = k(X, X_n), a = C^-1 (z - c), w = k L^-T,
C = K + noise I = L L^T, k(x, x') = exp(-|(x - x') / l|^2 / 2).
"""

from __future__ import annotations

from typing import Any

import torch
from botorch.models.model import Model
from botorch.posteriors.posterior import Posterior
from botorch.sampling.get_sampler import GetSampler
from botorch.sampling.normal import SobolQMCNormalSampler
from torch import Tensor

from neuropareto.space import Array
from neuropareto.surrogate.cholesky import cholesky, inverse_lower

_LEAST_VARIANCE = 1e-10  # of standardised outputs: what rounding leaves of 1 - |w|^2


class ExactGPs(Model):
    """o processes on ``X`` (n, d), values ``Z`` (n, o), ``hyper`` (o, d + 2): log l, log noise, c."""

    def __init__(self, X: Tensor, Z: Tensor, hyper: Array) -> None:
        super().__init__()
        h, d = torch.tensor(hyper), X.shape[1]
        self._scale = torch.exp(-h[:, None, :d])  # (o, 1, d)
        self._constant = h[:, d + 1 :]
        self._known = (X - 0.5) * self._scale
        noise = torch.exp(h[:, d : d + 1]).expand(-1, len(X))
        L = cholesky(_kernel(self._known, self._known) + torch.diag_embed(noise))
        self._whiten = inverse_lower(L).transpose(-1, -2)  # (o, n, n)
        white = self._whiten.transpose(-1, -2) @ (Z.T - self._constant)[..., None]
        self._alpha = self._whiten @ white  # (o, n, 1)

    @property
    def num_outputs(self) -> int:
        """Number of outputs o."""
        return len(self._constant)

    @property
    def batch_shape(self) -> torch.Size:
        """One model, not a batch of them."""
        return torch.Size()

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: Any = None,
    ) -> Independent:
        """The joint distribution of the latent values at each set of points X (..., q, d)."""
        if output_indices is not None or posterior_transform is not None or observation_noise:
            raise NotImplementedError("Only the latent values of all outputs can be asked for.")
        (q, d), shape, o = X.shape[-2:], X.shape[:-1], self.num_outputs
        points = (X.reshape(shape.numel(), d) - 0.5) * self._scale  # (o, b q, d)
        cross = _kernel(points, self._known)
        mean = (self._constant + (cross @ self._alpha)[..., 0]).reshape(o, *shape)
        white = (cross @ self._whiten).reshape(o, *shape, cross.shape[-1])
        if q == 1:
            covariance = 1.0 - white.square().sum(dim=-1, keepdim=True)
        else:
            sets = points.reshape(o, *shape, d)
            covariance = _kernel(sets, sets) - white @ white.transpose(-1, -2)
        return Independent(mean.movedim(0, -1), covariance.movedim(0, -3))


class Independent(Posterior):
    """Normal values of independent outputs: ``mean`` (..., q, o), ``covariance`` (..., o, q, q)."""

    def __init__(self, mean: Tensor, covariance: Tensor) -> None:
        self.mean = mean
        self.covariance = covariance

    @property
    def variance(self) -> Tensor:
        """Marginal variances, (..., q, o)."""
        diagonal = self.covariance.diagonal(dim1=-2, dim2=-1).transpose(-1, -2)
        return diagonal.clamp_min(_LEAST_VARIANCE)

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        """mean + L e for standard normal ``base_samples`` e, (s, ..., q, o)."""
        if self.mean.shape[-2] == 1:
            return self.mean + self.variance.sqrt() * base_samples
        # The draws are the columns of one product: a product a draw would copy L for each.
        e = base_samples.movedim(-1, -2).movedim(0, -1)  # (..., o, q, s)
        moved = cholesky(self.covariance) @ e
        return self.mean + moved.movedim(-1, 0).movedim(-2, -1)

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        """Draws, (s, ..., q, o)."""
        shape = torch.Size([1]) if sample_shape is None else sample_shape
        return self.rsample_from_base_samples(shape, torch.randn(shape + self.mean.shape).double())

    @property
    def device(self) -> torch.device:
        """Where the numbers lie."""
        return self.mean.device

    @property
    def dtype(self) -> torch.dtype:
        """Their type."""
        return self.mean.dtype

    @property
    def batch_shape(self) -> torch.Size:
        """Shape of the sets of points, (...)."""
        return self.mean.shape[:-2]

    @property
    def base_sample_shape(self) -> torch.Size:
        """Shape of the standard normal numbers of one draw, (..., q, o)."""
        return self.mean.shape

    @property
    def batch_range(self) -> tuple[int, int]:
        """All sets share their standard normal numbers."""
        return (0, -2)

    def _extended_shape(self, sample_shape: torch.Size = torch.Size()) -> torch.Size:  # noqa: B008
        return sample_shape + self.mean.shape


@GetSampler.register(Independent)  # type: ignore[untyped-decorator]
def _sobol(
    posterior: Independent, sample_shape: torch.Size, *, seed: int | None = None
) -> SobolQMCNormalSampler:
    """The sampler that BoTorch takes where none is named."""
    return SobolQMCNormalSampler(sample_shape, seed=seed)


def _kernel(A: Tensor, B: Tensor) -> Tensor:
    """exp(-|a - b|^2 / 2) of rows already divided by their length scales, (..., len(A), len(B))."""
    apart = 0.5 * (A.square().sum(-1)[..., :, None] + B.square().sum(-1)[..., None, :])
    return torch.exp((A @ B.transpose(-1, -2) - apart).clamp_max(0.0))
