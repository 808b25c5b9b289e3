"""One law in every variable, each with its own place: f_i(u) = F(u, c_i).

Curves of many variables are often one curve moved about: the same component with another set point.
Own curves spend several coefficients on each variable to say so, this term one, the place c_i, and
F is common to all. It joins a kernel only by held-out likelihood (``placing.py``), decision D-93.
Nothing is said about where places lie. Notation: n points, chi_k(u, c) and psi_l(c) fixed functions
(chi_k has mean 0 for uniform u), B (K, L) the law F = sum_kl B_kl chi_k(u, c) psi_l(c), and
Z_kl(u) = d^{-1/2} sum_i chi_k(u_i, c_i) psi_l(c_i).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from neuropareto.surrogate.structured.parameters import (
    Free,
    Normal,
    Parameter,
    Parameters,
    Values,
)
from neuropareto.surrogate.structured.points import DEGREE, Points, legendre, legendre_slopes
from neuropareto.surrogate.structured.term import Against, Pull, linear_contraction, scale

_SHAPES = 2 + DEGREE  # |u - c|, (u - c) |u - c| and polynomials in u
_POWERS = 4  # polynomials in c, the constant one included
LOW, HIGH = -0.1, 1.1  # of places
# The standard deviation of a place of which nothing is known: uniform on the unit interval.
_SPREAD = math.sqrt(1.0 / 12.0)


@dataclass(frozen=True)
class Placed:
    """sum_kl s_kl Z_kl(u) Z_kl(u') + e sum_i g_i(u_i) g_i(u'_i), g_i(u) = dF/dc (u, c_i) / sqrt(12).

    The law's coefficients are marginalised, s_kl = e^{placed + placed_shape_k + placed_power_l}. Places
    are estimated; the second sum is what not knowing them exactly adds, to first order around the
    estimate and for the law as it was last found (``law``). It is left out (e = 0) if not ``unsure``,
    where places are being estimated.
    """

    unsure: bool = True

    def parameters(self, d: int) -> Parameters:
        """placed, placed_shape (K), placed_power (L), place (d), law (K L)."""
        falling = (-1.0, -1.0, *(-0.7 * k for k in range(DEGREE)))
        powers = tuple(-1.0 * k for k in range(_POWERS))
        return {
            "placed": scale(-2.0),
            "placed_shape": Parameter(falling, -12.0, 3.0, Normal(1.5)),
            "placed_power": Parameter(powers, -8.0, 2.0, Normal(1.0)),
            "place": Parameter((0.5,) * d, LOW, HIGH, Free(), apart=True),
            "law": Parameter((0.0,) * (_SHAPES * _POWERS), -1e9, 1e9, Free(), apart=True),
        }

    def features(self, P: Values, A: Points) -> Tensor:
        """sqrt(s_kl) Z_kl(u), (n, K L)."""
        sums = torch.einsum("ndk,dl->nkl", shapes(A, P["place"]), powers(P["place"]))
        return (sums * self._root(P, A.d)).flatten(1)

    def against(self, P: Values, B: Points) -> Against:
        """A -> K (n, n'), pull."""
        c = P["place"]
        seen, moved = self.features(P, B), self.moves(P, B)

        def covariance(A: Points) -> tuple[Tensor, Pull]:
            K = (seen if A is B else self.features(P, A)) @ seen.T
            if self.unsure:
                K = K + (moved if A is B else self.moves(P, A)) @ moved.T

            def pull(C: Tensor) -> Tensor:
                met = (C @ seen).view(-1, _SHAPES, _POWERS) * self._root(P, A.d)
                steep = shape_slopes(A, c)
                slope = (steep * torch.einsum("nkl,dl->ndk", met, powers(c))).sum(-1)
                return slope + (C @ moved) * self._move_slopes(P, A) if self.unsure else slope

            return K, pull

        return covariance

    def diagonal(self, P: Values, A: Points) -> Tensor:
        """k(u, u) (n,)."""
        known = self.features(P, A).square().sum(1)
        return known + self.moves(P, A).square().sum(1) if self.unsure else known

    def contraction(self, P: Values, G: Tensor, X: Points, K: Tensor) -> Tensor:
        """See :func:`linear_contraction`; the second sum has no hyper-parameters of its own."""
        return linear_contraction(self.features(P, X), G)

    def curves(self, P: Values, a: Tensor, X: Points, grid: Tensor) -> Tensor:
        """The law at each variable's place, and what its place is off by, (b, d, g)."""
        A = Points.of(grid[:, None].expand(-1, X.d))
        at_places = torch.einsum("bkl,dl->bdk", self.law(P, a, X), powers(P["place"]))
        curve = torch.einsum("gdk,bdk->bdg", shapes(A, P["place"]), at_places)
        if not self.unsure:
            return curve
        return curve + (a @ self.moves(P, X))[:, :, None] * self.moves(P, A).T

    def law(self, P: Values, a: Tensor, X: Points) -> Tensor:
        """B of b posterior means with dual weights a (b, n): (b, K, L)."""
        found = (a @ self.features(P, X)).view(len(a), _SHAPES, _POWERS)
        return found * self._root(P, X.d)

    def moves(self, P: Values, A: Points) -> Tensor:
        """g_i(u_i), (n, d)."""
        c, B = P["place"].detach(), P["law"].detach().view(_SHAPES, _POWERS)
        by_shape = (shape_moves(A, c) * (powers(c) @ B.T)).sum(-1)
        return _SPREAD * (by_shape + (shapes(A, c) * (power_slopes(c) @ B.T)).sum(-1))

    def _move_slopes(self, P: Values, A: Points) -> Tensor:
        """dg_i / du, (n, d); the step of the corner's own slope has none."""
        c, B = P["place"], P["law"].view(_SHAPES, _POWERS)
        bend = -2.0 * torch.sign(A.U - c) * (powers(c) @ B.T)[:, 1]
        return _SPREAD * (bend + (shape_slopes(A, c) * (power_slopes(c) @ B.T)).sum(-1))

    def _root(self, P: Values, d: int) -> Tensor:
        """d^{-1/2} sqrt(s_kl), (K, L)."""
        level = P["placed"] + P["placed_shape"][:, None] + P["placed_power"]
        return torch.exp(0.5 * level) / math.sqrt(d)


def shapes(A: Points, c: Tensor) -> Tensor:
    """chi_k(u_i, c_i), (n, d, K): a corner and a bend at the place, and polynomials in u."""

    def made() -> Tensor:
        v, (below, above) = A.U - c, (c.abs(), (1.0 - c).abs())
        corner = v.abs() - 0.5 * (c * below + (1.0 - c) * above)
        bend = v * v.abs() - (above**3 - below**3) / 3.0
        return torch.cat([corner[..., None], bend[..., None], A.Phi], dim=-1)

    return A.latest("shapes", (c,), made)


def shape_slopes(A: Points, c: Tensor) -> Tensor:
    """dchi_k / du, (n, d, K)."""
    v = A.U - c
    return torch.cat([torch.sign(v)[..., None], 2.0 * v.abs()[..., None], A.slopes], dim=-1)


def shape_moves(A: Points, c: Tensor) -> Tensor:
    """dchi_k / dc, (n, d, K); the polynomials stay."""
    v, (below, above) = A.U - c, (c.abs(), (1.0 - c).abs())
    corner = above - below - torch.sign(v)
    bend = c * below + (1.0 - c) * above - 2.0 * v.abs()
    return torch.cat([corner[..., None], bend[..., None], torch.zeros_like(A.Phi)], dim=-1)


def powers(c: Tensor) -> Tensor:
    """psi_l(c), (d, L): 1 and Legendre polynomials over the range of places."""
    inside = (c - LOW) / (HIGH - LOW)
    return torch.cat([torch.ones_like(c)[:, None], legendre(inside, _POWERS - 1)], dim=-1)


def power_slopes(c: Tensor) -> Tensor:
    """dpsi_l / dc, (d, L)."""
    inside = (c - LOW) / (HIGH - LOW)
    slopes = legendre_slopes(inside, _POWERS - 1) / (HIGH - LOW)
    return torch.cat([torch.zeros_like(c)[:, None], slopes], dim=-1)
