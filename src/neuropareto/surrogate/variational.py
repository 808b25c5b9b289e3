"""Whitened variational posteriors q(v) = N(mean, Lambda^-1) of b functions, prior N(0, I).

Notation: mean (b, r), factor (b, r, r) lower with Lambda = factor factor^T, coordinates
A (b, r, p) so that f = centre + A^T v + N(0, rest) at each of p rows. Because the precision is
kept, a natural-gradient step is an average of precisions: for Gaussian noise one full step lands
on the exact optimum, where a first-order optimiser needs hundreds.
Paper: q(u) and the KL term of Eq. elbo.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from neuropareto.surrogate.cholesky import cholesky, inverse_lower, solve_lower


@dataclass(frozen=True)
class Coordinates:
    """b functions at p rows before q is known: prior mean, coordinates, unexplained variance."""

    centre: Tensor  # (b, p)
    A: Tensor  # (b, r, p)
    rest: Tensor  # (b, p)

    def repeated(self, s: int) -> Coordinates:
        """The same rows s times over, (b, s p)."""
        return Coordinates(
            self.centre.repeat(1, s), self.A.repeat(1, 1, s), self.rest.repeat(1, s)
        )

    def plus(self, other: Coordinates) -> Coordinates:
        """The sum of two functions that are independent a priori: coordinates side by side."""
        return Coordinates(
            self.centre + other.centre,
            torch.cat([self.A, other.A], dim=-2),
            self.rest + other.rest,
        )


@dataclass(frozen=True)
class Marginal:
    """b functions at p rows under q: Gaussian marginals, and the coordinates behind them."""

    A: Tensor  # (b, r, p)
    centre: Tensor  # (b, p)
    variance: Tensor  # (b, p)


def marginal(at: Coordinates, mean: Tensor, factor: Tensor) -> Marginal:
    """The functions' marginals under q."""
    centre = at.centre + (mean[..., None, :] @ at.A)[..., 0, :]
    return Marginal(at.A, centre, at.rest + solve_lower(factor, at.A).square().sum(-2))


def prior(b: int, r: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Mean (b, r) and factor (b, r, r) of q = prior."""
    eye = torch.eye(r, dtype=torch.float64, device=device)
    return torch.zeros(b, r, dtype=torch.float64, device=device), eye.repeat(b, 1, 1)


def divergence(mean: Tensor, factor: Tensor) -> Tensor:
    """KL(q || prior) summed over the b functions."""
    trace = inverse_lower(factor).square().sum()
    half_log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum()
    return 0.5 * (trace + mean.square().sum() - mean.numel()) + half_log_det


def draws(mean: Tensor, factor: Tensor, s: int, generator: torch.Generator) -> Tensor:
    """s draws (b, s, r) from q."""
    shape = (*mean.shape, s)
    base = torch.randn(shape, generator=generator, dtype=mean.dtype, device=mean.device)
    apart: Tensor = torch.linalg.solve_triangular(factor.transpose(-1, -2), base, upper=True)
    return mean[:, None, :] + apart.transpose(-1, -2)


def natural_step(
    mean: Tensor, factor: Tensor, A: Tensor, pull: Tensor, curvature: Tensor, step: float
) -> tuple[Tensor, Tensor]:
    """One natural-gradient step of size ``step`` in (0, 1].

    ``curvature`` (b, p) >= 0 is minus twice the derivative of the expected log likelihood with
    respect to the marginal variances of f; ``pull`` (b, p) is the derivative with respect to the
    marginal means plus curvature * A^T mean. For Gaussian noise: precision and precision * target,
    and a full step gives the exact conditional posterior.
    """
    precision = (A * curvature[..., None, :]) @ A.transpose(-1, -2)
    precision.diagonal(dim1=-2, dim2=-1).add_(1.0)
    natural = (A @ pull[..., None])[..., 0]
    if step < 1.0:
        old = factor @ factor.transpose(-1, -2)
        natural = (1.0 - step) * (old @ mean[..., None])[..., 0] + step * natural
        precision = (1.0 - step) * old + step * precision
    new = cholesky(precision, 1e-13)
    return torch.cholesky_solve(natural[..., None], new)[..., 0], new


def moved(
    mean: Tensor, factor: Tensor, A: Tensor, open_: Tensor, L: Tensor
) -> tuple[Tensor, Tensor]:
    """q carried over to other anchors.

    ``A`` (b, r, r') are the old coordinates of the new anchors, ``open_`` (b, r', r') the prior
    covariance there that the old anchors do not explain, ``L`` (b, r', r') the factor of the new
    anchors' prior covariance.
    """
    half = solve_lower(factor, A)
    left = solve_lower(L, open_ + half.transpose(-1, -2) @ half)
    S = solve_lower(L, left.transpose(-1, -2))
    root = inverse_lower(cholesky(0.5 * (S + S.transpose(-1, -2)), 1e-9))
    at = A.transpose(-1, -2) @ mean[..., None]
    return solve_lower(L, at)[..., 0], cholesky(root.transpose(-1, -2) @ root, 1e-13)


def block_diagonal(A: Tensor, B: Tensor) -> Tensor:
    """(b, r, p) and (b, r', p') -> (b, r + r', p + p')."""
    upper = torch.cat([A, A.new_zeros(*A.shape[:-1], B.shape[-1])], dim=-1)
    lower = torch.cat([B.new_zeros(*B.shape[:-1], A.shape[-1]), B], dim=-1)
    return torch.cat([upper, lower], dim=-2)
