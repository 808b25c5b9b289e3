"""Corners, kinks and steps of the own curves, which four polynomials round off.

An additive term like those of ``additive.py``. The optimum of |u - c| is its corner, and a smooth
curve through the data puts it elsewhere. The term joins a kernel only by evidence (``restarts.py``),
decision D-83. Notation: n points, psi_k(u) = sqrt(2) cos(pi k u) for k = 4 to 24, which four
polynomials cannot follow, lambda_k their share of the variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from neuropareto.surrogate.structured.parameters import Parameters, Values
from neuropareto.surrogate.structured.points import DEGREE, Points
from neuropareto.surrogate.structured.term import Against, of_each, scale
from neuropareto.surrogate.structured.weights import Tight, Weights

_WAVES = torch.arange(DEGREE, 25, dtype=torch.float64)
# A corner's coefficients fall as k^-2, so variances as k^-4.
_SHARES = _WAVES**-4.0 / (_WAVES**-4.0).sum()


@dataclass(frozen=True)
class Corners:
    """Corners of each own curve: e^corner sum_i w_i sum_k lambda_k psi_k(u_i) psi_k(u'_i)."""

    weights: Weights = Tight()

    def parameters(self, d: int) -> Parameters:
        """corner, weight (d; as of the own curves)."""
        return {
            "corner": scale(-4.0),
            "weight": self.weights.parameter(d),
        }

    def against(self, P: Values, B: Points) -> Against:
        """A -> K (n, n'), pull."""
        W = _cosines(B) * (self._strength(P)[:, None] * _SHARES)
        return lambda A: of_each(_cosines(A), lambda: _slopes(A.U), W)

    def diagonal(self, P: Values, A: Points) -> Tensor:
        """k(u, u) (n,)."""
        return (_cosines(A).square() @ _SHARES) @ self._strength(P)

    def contraction(self, P: Values, G: Tensor, X: Points, K: Tensor) -> Tensor:
        """sum_i e^corner w_i sum_k lambda_k psi_ik^T G psi_ik: linear in the strengths."""
        V = _cosines(X)
        met = (G @ V.flatten(1)).view_as(V)
        return self._strength(P) @ ((V * met).sum(0) @ _SHARES)

    def curves(self, P: Values, a: Tensor, X: Points, grid: Tensor) -> Tensor:
        """The corners of each variable's curve, (b, d, g)."""
        V = _cosines(X)
        coefficients = (a @ V.flatten(1)).view(len(a), X.d, len(_WAVES)) * _SHARES
        return (coefficients * self._strength(P)[:, None]) @ _waves(grid).T

    def _strength(self, P: Values) -> Tensor:
        return torch.exp(P["corner"]) * self.weights.of(P["weight"])


def _cosines(A: Points) -> Tensor:
    return A.latest("cosines", (), lambda: _waves(A.U))


def _waves(U: Tensor) -> Tensor:
    """psi_k(u), (..., K)."""
    return math.sqrt(2.0) * torch.cos(math.pi * _WAVES * U[..., None])


def _slopes(U: Tensor) -> Tensor:
    """psi_k'(u), (..., K)."""
    return -math.sqrt(2.0) * math.pi * _WAVES * torch.sin(math.pi * _WAVES * U[..., None])
