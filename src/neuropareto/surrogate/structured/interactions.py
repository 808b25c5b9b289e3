"""What sums of curves cannot say: products of two variables, and anything smooth.

Notation: A n points, B n' points, K (n, n'); weights omega_ik = w_i e^{pair_degree_k} and
z_ik = sqrt(omega_ik) phi_k(u_i) for the first degrees k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from neuropareto.surrogate.structured.parameters import Normal, Parameter, Parameters, Values
from neuropareto.surrogate.structured.points import Points
from neuropareto.surrogate.structured.term import Against, Pull, scale
from neuropareto.surrogate.structured.weights import Tight, Weights


@dataclass(frozen=True)
class Pair:
    """Products of two different variables: sum_{i<j} (z_i . z'_i)(z_j . z'_j).

    By Newton's identity = [Q^2 - R] / 2 with Q = sum_i z_i . z'_i, R = sum_i (z_i . z'_i)^2. How much
    of it there is, with and without the modulators, the kernel says.
    """

    weights: Weights = Tight()
    degrees: int = 1

    def parameters(self, d: int) -> Parameters:
        """weight (d; as of the own curves), pair_degree."""
        falling = tuple(-1.0 * k for k in range(self.degrees))
        return {
            "weight": self.weights.parameter(d),
            "pair_degree": Parameter(falling, -7.0, 2.0, Normal(1.0)),
        }

    def against(self, P: Values, B: Points) -> Against:
        """A -> K (n, n'), pull."""
        root = self._omega(P).sqrt()
        Y = self._z(P, B)
        flat, T = Y.flatten(1), products(Y)
        rows, columns, twice = _pairs(self.degrees)

        def covariance(A: Points) -> tuple[Tensor, Pull]:
            Z = Y if A is B else self._z(P, A)
            S = T if A is B else products(Z)
            Q = Z.flatten(1) @ flat.T

            def pull(C: Tensor) -> Tensor:
                steep = A.slopes[:, :, : self.degrees] * root
                by_q = (((2.0 * C * Q) @ flat).view_as(Z) * steep).sum(-1)
                weight = (C @ T).view(len(Z), Z.shape[1], -1) * twice
                both = steep[..., rows] * Z[..., columns] + Z[..., rows] * steep[..., columns]
                return 0.5 * (by_q - (weight * both).sum(-1))

            return 0.5 * (Q.square() - S @ T.T), pull

        return covariance

    def diagonal(self, P: Values, A: Points) -> Tensor:
        """k(u, u) (n,)."""
        norms = self._z(P, A).square().sum(-1)
        return 0.5 * (norms.sum(1).square() - norms.square().sum(1))

    def contraction(self, P: Values, G: Tensor, X: Points, K: Tensor) -> Tensor:
        """sum_ik q_ik domega_ik - sum_i omega_i^T r_i domega_i.

        q_ik = phi_ik^T (G * Q) phi_ik and r_ikl = (phi_ik phi_il)^T G (phi_ik phi_il).
        """
        omega = self._omega(P)
        Phi = X.Phi[:, :, : self.degrees]
        Z = (Phi * omega.detach().sqrt()).flatten(1)
        q = (Phi * ((G * (Z @ Z.T)) @ Phi.flatten(1)).view_as(Phi)).sum(0)
        rows, columns, _ = _pairs(self.degrees)
        S = X.latest(f"products {self.degrees}", (), lambda: products(Phi))
        r = (S * (G @ S)).sum(0).view(X.d, -1)
        cross = (r * omega[:, rows] * omega[:, columns]).sum()
        return (q * omega).sum() - 0.5 * cross

    def _omega(self, P: Values) -> Tensor:
        return self.weights.of(P["weight"])[:, None] * torch.exp(P["pair_degree"])

    def _z(self, P: Values, A: Points) -> Tensor:
        return A.Phi[:, :, : self.degrees] * self._omega(P).sqrt()


def products(Z: Tensor) -> Tensor:
    """Features with inner product sum_i (z_i . z'_i)^2: all z_ik z_il, (n, d K (K + 1) / 2)."""
    if Z.shape[2] == 1:
        return Z[:, :, 0].square()
    rows, columns, twice = _pairs(Z.shape[2])
    return (Z[:, :, rows] * Z[:, :, columns] * twice).flatten(1)


@cache
def _pairs(degrees: int) -> tuple[Tensor, Tensor, Tensor]:
    """The pairs k <= l of degrees, and sqrt(2) for those of two different ones."""
    rows, columns = torch.triu_indices(degrees, degrees)
    return rows, columns, 1.0 + (math.sqrt(2.0) - 1.0) * (rows != columns).to(torch.float64)


@dataclass(frozen=True)
class Residual:
    """Anything smooth: e^residual exp(-sum_i (u_i - u'_i)^2 / (2 l_i^2)).

    The place of an unstructured GP: where the structure is wrong, its variance grows. The
    lengthscales start at half the cube's diagonal.
    """

    def parameters(self, d: int) -> Parameters:
        """residual, lengthscale (d; log l)."""
        start = math.log(0.5 * math.sqrt(d))
        return {
            "residual": scale(-2.0),
            "lengthscale": Parameter.alike(d, start, start - 3.0, start + 4.0, Normal(0.5)),
        }

    def against(self, P: Values, B: Points) -> Against:
        """A -> K (n, n'), pull."""
        inverse = torch.exp(-P["lengthscale"])
        # The cube's middle as origin keeps the cancellation in |a|^2 + |b|^2 - 2 a.b small.
        Y = (B.U - 0.5) * inverse
        lengths = Y.square().sum(1)

        def covariance(A: Points) -> tuple[Tensor, Pull]:
            Z = Y if A is B else (A.U - 0.5) * inverse
            norms = Z.square().sum(1)[:, None] + lengths[None]
            far = (norms - 2.0 * Z @ Y.T).clamp(0.0, 200.0)
            K = torch.exp(P["residual"] - 0.5 * far)

            def pull(C: Tensor) -> Tensor:
                H = C * K
                return (H @ Y - H.sum(1)[:, None] * Z) * inverse

            return K, pull

        return covariance

    def diagonal(self, P: Values, A: Points) -> Tensor:
        """k(u, u) (n,)."""
        return torch.exp(P["residual"]).expand(len(A))

    def contraction(self, P: Values, G: Tensor, X: Points, K: Tensor) -> Tensor:
        """H = G * K: sum H dresidual - sum_i (sum_nm H_nm (u_ni - u_mi)^2) d(l_i^-2) / 2."""
        H = G * K
        U = X.U - 0.5
        squared = 2.0 * ((H.sum(1)[:, None] * U - H @ U) * U).sum(0)
        return H.sum() * P["residual"].sum() - 0.5 * squared @ torch.exp(-2.0 * P["lengthscale"])
