"""Points of the unit cube with the polynomial values that every term of the kernel reads.

Notation: U (n, d) in [0, 1], Phi (n, d, K) with Phi[:, i, k-1] = phi_k(u_i), the shifted Legendre
polynomial of degree k = 1..K, orthonormal on [0, 1]. The constant polynomial is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

DEGREE = 4


@dataclass(frozen=True, eq=False)
class Points:
    """n points and their Legendre values; build with :meth:`of`."""

    U: Tensor
    Phi: Tensor
    _latest: dict[str, tuple[bytes, Tensor]] = field(init=False, default_factory=dict, repr=False)

    @classmethod
    def of(cls, U: Tensor, degree: int = DEGREE) -> Points:
        """The points ``U`` (n, d) with polynomials up to ``degree``."""
        return cls(U, legendre(U, degree))

    @cached_property
    def slopes(self) -> Tensor:
        """phi_k'(u_i), (n, d, K)."""
        return legendre_slopes(self.U, self.Phi.shape[2])

    def latest(self, name: str, given: tuple[Tensor, ...], make: Callable[[], Tensor]) -> Tensor:
        """What ``make`` returns; not made again while it is ``given`` the same numbers.

        One value is kept for each name: the matrix of the data and its gradient need the same parts.
        """
        if torch.is_grad_enabled() and any(x.requires_grad for x in given):
            return make()
        key = b"".join(x.detach().numpy().tobytes() for x in given)
        kept = self._latest.get(name)
        if kept is None or kept[0] != key:
            kept = self._latest[name] = (key, make())
        return kept[1]

    def __len__(self) -> int:
        """The number of points."""
        return len(self.U)

    @property
    def d(self) -> int:
        """The number of variables."""
        return self.U.shape[1]


def legendre(U: Tensor, degree: int = DEGREE) -> Tensor:
    """phi_k(u) for k = 1..degree, (..., degree): mean 0 and variance 1 for uniform u."""
    values = _polynomials(2.0 * U - 1.0, degree)
    return torch.stack([math.sqrt(2 * k + 1) * values[k] for k in range(1, degree + 1)], dim=-1)


def legendre_slopes(U: Tensor, degree: int = DEGREE) -> Tensor:
    """phi_k'(u) for k = 1..degree, (..., degree), by P'_k = P'_{k-2} + (2k - 1) P_{k-1}."""
    values = _polynomials(2.0 * U - 1.0, degree)
    slopes = [torch.zeros_like(values[0]), values[0]]
    for k in range(2, degree + 1):
        slopes.append(slopes[-2] + (2 * k - 1) * values[k - 1])
    scaled = [2.0 * math.sqrt(2 * k + 1) * slopes[k] for k in range(1, degree + 1)]
    return torch.stack(scaled, dim=-1)


def _polynomials(x: Tensor, degree: int) -> list[Tensor]:
    """Legendre's P_0 .. P_degree at x in [-1, 1]."""
    values = [torch.ones_like(x), x]
    for k in range(2, degree + 1):
        values.append(((2 * k - 1) * x * values[-1] - (k - 1) * values[-2]) / k)
    return values
