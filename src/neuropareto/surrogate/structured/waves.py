"""Periodic curves: the same frequency in every variable, with own or with common phase.

Additive terms like those of ``additive.py``. The frequency nu cannot be reached by gradient steps;
it is found by a scan (see ``restarts.py``), and only then do these terms join a kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from neuropareto.surrogate.structured.parameters import Normal, Parameter, Parameters, Values
from neuropareto.surrogate.structured.points import Points
from neuropareto.surrogate.structured.term import (
    Additive,
    Against,
    linear_contraction,
    of_all,
    of_each,
    scale,
)

FREQUENCIES = (2.5, 28.0)


def _frequency() -> Parameter:
    low, high = FREQUENCIES
    return Parameter.alike(1, math.log(8.0), math.log(low), math.log(high), Normal(3.0))


@dataclass(frozen=True)
class OwnPhase:
    """A wave in every variable with its own phase: e^wave / d sum_i cos(2 pi nu (u_i - u'_i))."""

    def parameters(self, d: int) -> Parameters:
        """wave, frequency (log nu)."""
        return {"wave": scale(-3.0), "frequency": _frequency()}

    def features(self, P: Values, A: Points) -> Tensor:
        """sqrt(e^wave / d) (cos, sin)(2 pi nu u_i), (n, 2 d)."""
        return wave(P, A.U).flatten(1) * torch.exp(0.5 * P["wave"]) / math.sqrt(A.d)

    def against(self, P: Values, B: Points) -> Against:
        """A -> K (n, n'), pull."""
        W = wave(P, B.U) * (torch.exp(P["wave"]) / B.d)
        return lambda A: of_each((V := wave(P, A.U)), lambda: wave_slopes(P, V), W)

    def diagonal(self, P: Values, A: Points) -> Tensor:
        """k(u, u) = e^wave, (n,)."""
        return torch.exp(P["wave"]).expand(len(A))

    def contraction(self, P: Values, G: Tensor, X: Points, K: Tensor) -> Tensor:
        """See :func:`linear_contraction`."""
        return linear_contraction(self.features(P, X), G)

    def curves(self, P: Values, a: Tensor, X: Points, grid: Tensor) -> Tensor:
        """The wave of each variable, (b, d, g)."""
        coefficients = (a @ wave(P, X.U).flatten(1)).view(len(a), X.d, 2)
        return (torch.exp(P["wave"]) / X.d * coefficients) @ wave(P, grid).T


@dataclass(frozen=True)
class CommonPhase:
    """The same wave in every variable: e^common_wave (C C' + S S'), C = d^{-1/2} sum_i cos(...)."""

    def parameters(self, d: int) -> Parameters:
        """common_wave, frequency (log nu, the same as of :class:`OwnPhase`)."""
        return {"common_wave": scale(-3.0), "frequency": _frequency()}

    def features(self, P: Values, A: Points) -> Tensor:
        """sqrt(e^common_wave / d) sum_i (cos, sin)(2 pi nu u_i), (n, 2)."""
        return wave(P, A.U).sum(1) * torch.exp(0.5 * P["common_wave"]) / math.sqrt(A.d)

    def against(self, P: Values, B: Points) -> Against:
        """A -> K (n, n'), pull."""
        W = wave(P, B.U).sum(1) * (torch.exp(P["common_wave"]) / B.d)
        return lambda A: of_all((V := wave(P, A.U)), lambda: wave_slopes(P, V), W)

    def diagonal(self, P: Values, A: Points) -> Tensor:
        """k(u, u) (n,)."""
        return self.features(P, A).square().sum(1)

    def contraction(self, P: Values, G: Tensor, X: Points, K: Tensor) -> Tensor:
        """See :func:`linear_contraction`."""
        return linear_contraction(self.features(P, X), G)

    def curves(self, P: Values, a: Tensor, X: Points, grid: Tensor) -> Tensor:
        """The same wave for all variables, (b, d, g)."""
        coefficients = torch.exp(P["common_wave"]) / X.d * (a @ wave(P, X.U).sum(1))
        return (coefficients @ wave(P, grid).T)[:, None, :].expand(-1, X.d, -1)


def wave(P: Values, U: Tensor) -> Tensor:
    """(cos, sin)(2 pi nu u), (..., 2)."""
    angle = 2.0 * math.pi * torch.exp(P["frequency"]) * U
    return torch.stack([torch.cos(angle), torch.sin(angle)], dim=-1)


def wave_slopes(P: Values, V: Tensor) -> Tensor:
    """d/du of the waves ``V`` (..., 2): 2 pi nu (-sin, cos)."""
    turned = torch.stack([-V[..., 1], V[..., 0]], dim=-1)
    return 2.0 * math.pi * torch.exp(P["frequency"]) * turned


WAVES: tuple[Additive, ...] = (OwnPhase(), CommonPhase())
