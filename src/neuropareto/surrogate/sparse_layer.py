"""Sparse GPs of x: b functions g(x) ~ GP(m(x), k(x, x')) seen through shared inducing points Z.

Used twice: as the first layer, whose w latent functions share one kernel (Eq. gp_layer: k_l), and
as the path by which the last layer sees x itself, with one kernel for each objective. Either way
all functions, and so all objectives, share their inducing points Z (r, d).
Paper: Eqs. gp_layer, mean_fn, elbo.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from neuropareto.surrogate.cholesky import cholesky, solve_lower
from neuropareto.surrogate.kernels import Structured, structure
from neuropareto.surrogate.mean import Params
from neuropareto.surrogate.variational import Coordinates


@dataclass(frozen=True)
class SparseLayer:
    """The layer's shape. Parameters: ``Z`` (r, d), those of the kernel, ``path`` (b, 2 d + 2) and
    ``bias`` (b,), the known part of the mean. One kernel may serve all b functions.
    """

    kernel: Structured = Structured()

    def factor(self, p: Params) -> Tensor:
        """The factor (kernels, r, r) of the prior covariance at the inducing points."""
        return cholesky(self.kernel.covariance(p, p["Z"], p["Z"]))

    def coordinates(self, p: Params, L: Tensor, X: Tensor) -> Coordinates:
        """Prior mean, whitened coordinates and unexplained variance at X (n, d)."""
        A = self.whitened(p, L, X)
        rest = (self.kernel.diagonal(p, X) - A.square().sum(-2)).clamp_min(0.0)
        centre = p["path"] @ structure(X).T + p["bias"][:, None]
        b = len(centre)
        return Coordinates(centre, A.expand(b, -1, -1), rest.expand(b, -1))

    def whitened(self, p: Params, L: Tensor, X: Tensor) -> Tensor:
        """L^-1 k(Z, x) (kernels, r, n)."""
        return solve_lower(L, self.kernel.covariance(p, p["Z"], X))

    def transfer(self, p: Params, Z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Old coordinates of inducing points ``Z`` (r', d), what they leave open, the new factor.

        The arguments of ``variational.moved``, each (kernels, ...).
        """
        A = self.whitened(p, self.factor(p), Z)
        prior = self.kernel.covariance(p, Z, Z)
        return A, prior - A.transpose(-1, -2) @ A, cholesky(prior)

    def paths(
        self, p: Params, L: Tensor, X: Tensor, whitened: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Joint function values (b, s, n) at X (n, d) given coordinates (b, s, r)."""
        at = self.coordinates(p, L, X)
        A = self.whitened(p, L, X)
        root = cholesky(self.kernel.covariance(p, X, X) - A.transpose(-1, -2) @ A, 1e-6)
        shape = (*whitened.shape[:2], len(X))
        base = torch.randn(shape, generator=generator, dtype=X.dtype, device=X.device)
        return at.centre[:, None] + whitened @ at.A + base @ root.transpose(-1, -2)
