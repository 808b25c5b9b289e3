"""Modulators: a few variables that multiply the effect of all others.

f(u) = shape(u_J) (1 + g(u)) is linear in g for fixed u_J, so a kernel Mod(u_J, u'_J) Base(u, u')
extrapolates g correctly, far beyond the values seen. Notation: J (k,) the modulating variables,
t_j their values after a monotone warp, T (k, n, n') one matrix for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from neuropareto.surrogate.structured.parameters import (
    Normal,
    Parameter,
    Parameters,
    SparseScale,
    Values,
)
from neuropareto.surrogate.structured.points import (
    DEGREE,
    Points,
    legendre,
    legendre_slopes,
)
from neuropareto.surrogate.structured.term import Against, Pull, Term, of_each

_DECAY = torch.exp(-0.5 * torch.arange(DEGREE, dtype=torch.float64))  # of the polynomials
_EDGE = 1e-9  # how near to 0 and 1 a warped variable may come


class Modulation(Term, Protocol):
    """The factor Mod(u_J, u'_J) in front of the base kernel."""

    @property
    def J(self) -> tuple[int, ...]:
        """The modulating variables."""
        ...


@dataclass(frozen=True)
class Unmodulated:
    """Mod = 1."""

    J: tuple[int, ...] = ()

    def parameters(self, d: int) -> Parameters:
        """None."""
        return {}

    def against(self, P: Values, B: Points) -> Against:
        """A -> ones (n, n'), nothing to pull."""
        return lambda A: (A.U.new_ones(len(A), len(B)), lambda C: torch.zeros_like(A.U))

    def diagonal(self, P: Values, A: Points) -> Tensor:
        """Ones (n,)."""
        return A.U.new_ones(len(A))

    def contraction(self, P: Values, G: Tensor, X: Points, K: Tensor) -> Tensor:
        """Zero."""
        return G.new_zeros(())


@dataclass(frozen=True)
class SumOfModulators:
    """Mod = 1 + sum_{j in J} T_j, see :func:`modulators`."""

    J: tuple[int, ...]

    def parameters(self, d: int) -> Parameters:
        """See :func:`modulator_parameters`."""
        return modulator_parameters(len(self.J))

    def against(self, P: Values, B: Points) -> Against:
        """A -> Mod (n, n'), pull."""
        columns = list(self.J)
        t = warped(P, B.U[:, columns])
        W = legendre(t) * (torch.exp(P["modulator"])[:, None] * _DECAY)

        def covariance(A: Points) -> tuple[Tensor, Pull]:
            s = t if A is B else warped(P, A.U[:, columns])
            smooth, by_smooth = of_each(legendre(s), lambda: legendre_slopes(s), W)
            R = _own_rough(P, self.J, B, t.T) if A is B else _rough(P, s.T, t.T)

            def pull(C: Tensor) -> Tensor:
                by_t = by_smooth(C) + _nearer(P, C * R, s.T, t.T).T
                found = torch.zeros_like(A.U)
                found[:, columns] = by_t * warp_slopes(P, A.U[:, columns])
                return found

            return smooth + (1.0 + R.sum(0)), pull

        return covariance

    def diagonal(self, P: Values, A: Points) -> Tensor:
        """Mod(u, u) (n,)."""
        return 1.0 + modulator_diagonals(P, self.J, A).sum(0)

    def contraction(self, P: Values, G: Tensor, X: Points, K: Tensor) -> Tensor:
        """Every T_j meets the same G."""
        return modulator_contraction(P, self.J, G.expand(len(self.J), -1, -1), X)


@dataclass(frozen=True)
class ProductOfModulators:
    """Mod = prod_{j in J} (1 + T_j): several position variables that multiply each other."""

    J: tuple[int, ...]

    def parameters(self, d: int) -> Parameters:
        """See :func:`modulator_parameters`."""
        return modulator_parameters(len(self.J))

    def against(self, P: Values, B: Points) -> Against:
        """A -> Mod (n, n'), pull."""
        factors = modulators(P, self.J, B)

        def covariance(A: Points) -> tuple[Tensor, Pull]:
            T, pull = factors(A)
            return (1.0 + T).prod(0), lambda C: pull(C * _products_of_others(1.0 + T))

        return covariance

    def diagonal(self, P: Values, A: Points) -> Tensor:
        """Mod(u, u) (n,)."""
        return (1.0 + modulator_diagonals(P, self.J, A)).prod(0)

    def contraction(self, P: Values, G: Tensor, X: Points, K: Tensor) -> Tensor:
        """T_j meets G times the product of all other factors."""
        with torch.no_grad():
            others = _products_of_others(1.0 + modulators(P, self.J, X)(X)[0])
        return modulator_contraction(P, self.J, G * others, X)


def modulator_parameters(k: int) -> Parameters:
    """modulator (k), rough (k), rough_length, and the warps' two log shapes (k each)."""
    length = Parameter.alike(1, math.log(0.15), math.log(0.04), 0.5, Normal(0.7))
    return {
        "modulator": Parameter.alike(k, -2.0, -10.0, 4.0, SparseScale(3.0)),
        "rough": Parameter.alike(k, -4.0, -10.0, 4.0, Normal(2.0)),
        "rough_length": length,
        "warp_a": Parameter.alike(k, 0.0, -1.0, 5.0, Normal(1.2)),
        "warp_b": Parameter.alike(k, 0.0, -1.0, 5.0, Normal(1.2)),
    }


def modulators(P: Values, J: tuple[int, ...], B: Points) -> Against:
    """T_j = v_j sum_k e^{-k/2} phi_k(t_j) phi_k(t'_j) + r_j exp(-(t_j - t'_j)^2 / (2 l^2)).

    v = e^modulator, r = e^rough, l = e^rough_length; a function A -> T (k, n, n') and its pull of
    C (k, n, n').
    """
    columns = list(J)
    t = warped(P, B.U[:, columns]).T
    W = legendre(t) * (torch.exp(P["modulator"])[:, None, None] * _DECAY)

    def factors(A: Points) -> tuple[Tensor, Pull]:
        s = t if A is B else warped(P, A.U[:, columns]).T
        R = _own_rough(P, J, B, t) if A is B else _rough(P, s, t)

        def pull(C: Tensor) -> Tensor:
            smooth = ((C @ W) * legendre_slopes(s)).sum(-1)
            by_t = smooth + _nearer(P, C * R, s, t)
            found = torch.zeros_like(A.U)
            found[:, columns] = by_t.T * warp_slopes(P, A.U[:, columns])
            return found

        return legendre(s) @ W.transpose(1, 2) + R, pull

    return factors


def modulator_contraction(P: Values, J: tuple[int, ...], G: Tensor, X: Points) -> Tensor:
    """A scalar with the gradient of sum_j sum(G_j * T_j) at the data, G (k, n, n) symmetric.

    Smooth part Z Z^T with Z = sqrt(v_j e^{-k/2}) phi_k(t_j): 2 sum((G Z) * dZ). Rough part: with
    H = G * R, sum H dr - sum_nm H_nm d[(t_n - t_m)^2 / l^2] / 2. Both are linear in dt.
    """
    t = warped(P, X.U[:, list(J)]).T
    with torch.no_grad():
        root = torch.exp(0.5 * P["modulator"])[:, None, None] * _DECAY.sqrt()
        Z = legendre(t) * root
        met = G @ Z
        H = G * _own_rough(P, J, X, t)
        rows, product = H.sum(2), (H @ t[:, :, None])[:, :, 0]
        apart = rows * t - product
        squared = 2.0 * (t * apart).sum()
        shorter = torch.exp(-2.0 * P["rough_length"])
        by_t = 2.0 * ((met * root * legendre_slopes(t)).sum(-1) - shorter * apart)
        smooth = (met * Z).sum((1, 2))
    levels = (smooth * P["modulator"] + rows.sum(1) * P["rough"]).sum()
    lengths = (squared * torch.exp(-2.0 * P["rough_length"])).sum()
    return levels + (by_t * t).sum() - 0.5 * lengths


def modulator_diagonals(P: Values, J: tuple[int, ...], A: Points) -> Tensor:
    """T_j(u, u), (k, n)."""
    values = legendre(warped(P, A.U[:, list(J)])).square() @ _DECAY
    return (values * torch.exp(P["modulator"]) + torch.exp(P["rough"])).T


def warped(P: Values, U: Tensor) -> Tensor:
    """The Kumaraswamy distribution function t = 1 - (1 - u^a)^b of each column; (n, k)."""
    inside = U.clamp(_EDGE, 1.0 - _EDGE)
    power = torch.exp(torch.exp(P["warp_a"]) * torch.log(inside)).clamp(max=1.0 - 1e-12)
    return 1.0 - torch.exp(torch.exp(P["warp_b"]) * torch.log1p(-power))


def warp_slopes(P: Values, U: Tensor) -> Tensor:
    """dt / du of :func:`warped`, a b u^{a-1} (1 - u^a)^{b-1}; 0 where u was clamped; (n, k)."""
    a, b = torch.exp(P["warp_a"]), torch.exp(P["warp_b"])
    power = torch.exp(a * torch.log(U.clamp(_EDGE, 1.0 - _EDGE)))
    steep = a * b * power / U.clamp_min(_EDGE) * torch.exp((b - 1.0) * torch.log1p(-power))
    return torch.where((U - 0.5).abs() < 0.5 - _EDGE, steep, 0.0)


def unwarped(a: Tensor, b: Tensor, T: Tensor) -> Tensor:
    """The inverse of :func:`warped`: u = (1 - (1 - t)^{1/b})^{1/a} for shapes a, b (not logs)."""
    return (1.0 - (1.0 - T.clamp(0.0, 1.0)) ** (1.0 / b)) ** (1.0 / a)


def _rough(P: Values, s: Tensor, t: Tensor) -> Tensor:
    """The rough part between values s (k, n) and t (k, n'), (k, n, n')."""
    shorter = torch.exp(-P["rough_length"])
    apart = (s * shorter)[:, :, None] - (t * shorter)[:, None, :]
    # In place: new memory of this size costs more than the arithmetic.
    return (apart * apart).mul_(-0.5).add_(P["rough"][:, None, None]).exp_()


def _own_rough(P: Values, J: tuple[int, ...], X: Points, t: Tensor) -> Tensor:
    """The rough part of the data against itself, t (k, n) its warped values; (k, n, n)."""
    given = tuple(P[name] for name in ("rough", "rough_length", "warp_a", "warp_b"))
    return X.latest(f"rough {J}", given, lambda: _rough(P, t, t))


def _nearer(P: Values, H: Tensor, s: Tensor, t: Tensor) -> Tensor:
    """sum_n' H (t - s) / l^2: the pull of the rough part, H (k, n, n') its weighted values; (k, n)."""
    return ((H @ t[:, :, None])[..., 0] - H.sum(2) * s) * torch.exp(-2.0 * P["rough_length"])


def _products_of_others(T: Tensor) -> Tensor:
    """For each j the product of all T_l with l != j, (k, n, n); without dividing."""
    before, after = [torch.ones_like(T[0])], [torch.ones_like(T[0])]
    for j in range(len(T) - 1):
        before.append(before[-1] * T[j])
        after.append(after[-1] * T[len(T) - 1 - j])
    return torch.stack([b * a for b, a in zip(before, reversed(after), strict=True)])
