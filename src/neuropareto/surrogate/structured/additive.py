"""Additive terms of the base kernel: one curve per variable, linear in finite features.

Every term is k(u, u') = psi(u)^T psi(u'), so that its share of a posterior mean is, for each
variable, a one-dimensional curve with few coefficients. Notation: A n points, psi (n, p) features,
a (b, n) dual weights of b different posterior means, curves (b, d, g) on a grid (g,). Sums over
variables are divided by d, so that scales mean the same in every dimension.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from neuropareto.surrogate.structured.parameters import Normal, Parameter, Parameters, Values
from neuropareto.surrogate.structured.points import DEGREE, Points, legendre
from neuropareto.surrogate.structured.term import (
    Against,
    linear_contraction,
    of_all,
    of_each,
    scale,
)
from neuropareto.surrogate.structured.weights import Tight, Weights

_UNIT = torch.eye(DEGREE, dtype=torch.float64)
_BELOW = tuple(torch.tril_indices(DEGREE, DEGREE, -1))


@dataclass(frozen=True)
class Own:
    """Each variable's own curve: e^own sum_i w_i phi(u_i)^T S phi(u'_i).

    S = M M^T, M = diag(e^{own_degree / 2}) (I + strictly lower ``degree_mix``), is the covariance
    between degrees, common to all variables: every curve is drawn from the same few modes.
    """

    weights: Weights = Tight()

    def parameters(self, d: int) -> Parameters:
        """own, weight (d), own_degree (K), degree_mix (K (K - 1) / 2)."""
        falling = tuple(-1.3 * k for k in range(DEGREE))
        below = DEGREE * (DEGREE - 1) // 2
        return {
            "own": scale(0.0),
            "weight": self.weights.parameter(d),
            "own_degree": Parameter(falling, -9.0, 3.0, Normal(1.5)),
            "degree_mix": Parameter.alike(below, 0.0, -4.0, 4.0, Normal(1.0)),
        }

    def features(self, P: Values, A: Points) -> Tensor:
        """sqrt(e^own w_i) (M^T phi(u_i))_k, (n, d K)."""
        return ((A.Phi @ mixing(P)) * self.strength(P).sqrt()[:, None]).flatten(1)

    def against(self, P: Values, B: Points) -> Against:
        """A -> K (n, n'), pull."""
        M = mixing(P)
        W = (B.Phi @ (M @ M.T)) * self.strength(P)[:, None]
        return lambda A: of_each(A.Phi, lambda: A.slopes, W)

    def diagonal(self, P: Values, A: Points) -> Tensor:
        """k(u, u) (n,)."""
        return self.features(P, A).square().sum(1)

    def contraction(self, P: Values, G: Tensor, X: Points, K: Tensor) -> Tensor:
        """sum_i e^own w_i tr(S Phi_i^T G Phi_i): linear in small matrices."""
        Y = (G @ X.Phi.flatten(1)).view_as(X.Phi)
        inner = torch.einsum("ndk,ndl->dkl", X.Phi, Y)
        M = mixing(P)
        return (self.strength(P)[:, None, None] * inner * (M @ M.T)).sum()

    def curves(self, P: Values, a: Tensor, X: Points, grid: Tensor) -> Tensor:
        """The own part of each variable's curve, (b, d, g)."""
        M = mixing(P)
        coefficients = (a @ X.Phi.flatten(1)).view(len(a), X.d, DEGREE)
        return (coefficients * self.strength(P)[:, None]) @ (M @ M.T) @ legendre(grid).T

    def strength(self, P: Values) -> Tensor:
        """e^own w (d,)."""
        return torch.exp(P["own"]) * self.weights.of(P["weight"])

    def coefficients(self, P: Values, a: Tensor, X: Points) -> Tensor:
        """Legendre coefficients (d, K) of each variable's own curve, for dual weights a (n,)."""
        M = mixing(P)
        return self.strength(P)[:, None] * (torch.einsum("n,ndk->dk", a, X.Phi) @ (M @ M.T))


def mixing(P: Values) -> Tensor:
    """The factor M (K, K) of the covariance between degrees."""
    unit = _UNIT.index_put(_BELOW, P["degree_mix"])
    return torch.exp(0.5 * P["own_degree"])[:, None] * unit


@dataclass(frozen=True)
class Shared:
    """The same curve in every variable: e^shared sum_k e^{shared_degree_k} S_k(u) S_k(u').

    S_k(u) = d^{-1/2} sum_i phi_k(u_i). Few coefficients instead of d of them.
    """

    def parameters(self, d: int) -> Parameters:
        """shared, shared_degree (K)."""
        falling = tuple(-0.7 * k for k in range(DEGREE))
        return {
            "shared": scale(-1.0),
            "shared_degree": Parameter(falling, -9.0, 3.0, Normal(1.5)),
        }

    def features(self, P: Values, A: Points) -> Tensor:
        """sqrt(e^{shared + shared_degree_k}) S_k(u), (n, K)."""
        return A.Phi.sum(1) * self._root(P, A.d)

    def against(self, P: Values, B: Points) -> Against:
        """A -> K (n, n'), pull."""
        W = B.Phi.sum(1) * self._root(P, B.d).square()
        return lambda A: of_all(A.Phi, lambda: A.slopes, W)

    def diagonal(self, P: Values, A: Points) -> Tensor:
        """k(u, u) (n,)."""
        return self.features(P, A).square().sum(1)

    def contraction(self, P: Values, G: Tensor, X: Points, K: Tensor) -> Tensor:
        """See :func:`linear_contraction`."""
        return linear_contraction(self.features(P, X), G)

    def curves(self, P: Values, a: Tensor, X: Points, grid: Tensor) -> Tensor:
        """The same curve for all variables, (b, d, g)."""
        curve = ((a @ self.features(P, X)) * self._root(P, X.d)) @ legendre(grid).T
        return curve[:, None, :].expand(-1, X.d, -1)

    def _root(self, P: Values, d: int) -> Tensor:
        return torch.exp(0.5 * (P["shared"] + P["shared_degree"])) / math.sqrt(d)
