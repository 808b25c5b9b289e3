"""Points of the unit cube with the polynomial values that every term of the kernel reads.

Notation: U (n, d) in [0, 1], Phi (n, d, K) with Phi[:, i, k-1] = phi_k(u_i), the shifted Legendre
polynomial of degree k = 1..K, orthonormal on [0, 1]. The constant polynomial is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

DEGREE = 4


@dataclass(frozen=True, eq=False)
class Points:
    """n points and their Legendre values; build with :meth:`of`."""

    U: Tensor
    Phi: Tensor

    @classmethod
    def of(cls, U: Tensor, degree: int = DEGREE) -> Points:
        """The points ``U`` (n, d) with polynomials up to ``degree``."""
        return cls(U, legendre(U, degree))

    def __len__(self) -> int:
        """The number of points."""
        return len(self.U)

    @property
    def d(self) -> int:
        """The number of variables."""
        return self.U.shape[1]


def legendre(U: Tensor, degree: int = DEGREE) -> Tensor:
    """phi_k(u) for k = 1..degree, (..., degree): mean 0 and variance 1 for uniform u."""
    x = 2.0 * U - 1.0
    values = [torch.ones_like(x), x]
    for k in range(2, degree + 1):
        values.append(((2 * k - 1) * x * values[-1] - (k - 1) * values[-2]) / k)
    return torch.stack([math.sqrt(2 * k + 1) * values[k] for k in range(1, degree + 1)], dim=-1)
