"""Cholesky factors that survive bad conditioning: the first rung of the ladder is more jitter.

Notation: K (..., n, n) symmetric positive semi-definite, L (..., n, n) with L L^T = K + jitter I.
"""

from __future__ import annotations

import torch
from torch import Tensor

JITTER = 1e-8


class NumericalFailure(RuntimeError):
    """A surrogate could not be fitted on this data; a cheaper one should be tried."""


def cholesky(K: Tensor, jitter: float = JITTER) -> Tensor:
    """The factor of ``K`` plus the least jitter, relative to its diagonal, that makes it work.

    The jitter is multiplied by ten at every failure, up to 1e-2 of the mean diagonal.
    Raises :class:`NumericalFailure` if even that does not help or ``K`` is not finite.
    """
    diagonal = K.diagonal(dim1=-2, dim2=-1)
    level = diagonal.detach().mean(-1, keepdim=True).clamp_min(1e-12)
    while jitter <= 1.01e-2:
        nugget = torch.diag_embed((jitter * level).expand_as(diagonal))
        found = torch.linalg.cholesky_ex(K + nugget)
        L: Tensor = found[0]
        failed: Tensor = found[1]
        if not failed.any() and torch.isfinite(L.detach()).all():
            return L
        jitter *= 10.0
    raise NumericalFailure("A covariance matrix is not positive definite, even with 1 % jitter.")


def solve_lower(L: Tensor, B: Tensor) -> Tensor:
    """L^-1 B for a lower triangular L."""
    solved: Tensor = torch.linalg.solve_triangular(L, B, upper=False)
    return solved


def inverse_lower(L: Tensor) -> Tensor:
    """L^-1 as a matrix, for repeated products."""
    return solve_lower(L, torch.eye(L.shape[-1], dtype=L.dtype, device=L.device).expand_as(L))
