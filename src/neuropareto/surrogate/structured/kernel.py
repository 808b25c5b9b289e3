"""The structured kernel: few modulators times an additive base, plus interactions.

k(u, u') = Mod(u_J, u'_J) [e^constant + sum of additive terms]
           + [e^modulated_pair Mod(u_J, u'_J) + e^pair] Pair(u, u') + sum of outer terms.
Each term is a small object with its formula; this file only composes them. Notation: A n points,
B n' points, P the hyper-parameters by name.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from neuropareto.surrogate.structured.additive import Own, Shared
from neuropareto.surrogate.structured.interactions import Pair, Residual
from neuropareto.surrogate.structured.modulation import Modulation, Unmodulated
from neuropareto.surrogate.structured.parameters import Normal, Parameter, Parameters, Values
from neuropareto.surrogate.structured.points import Points
from neuropareto.surrogate.structured.term import Additive, Against, Pull, Term, scale
from neuropareto.surrogate.structured.waves import WAVES

Memo = dict[tuple[int, bytes], Tensor]


@dataclass(frozen=True)
class Kernel:
    """A composition of terms; ``pairs`` (one or none) are there modulated and not, ``outer`` not."""

    modulation: Modulation = Unmodulated()
    additive: tuple[Additive, ...] = (Own(), Shared())
    waves: tuple[Additive, ...] = ()
    corners: tuple[Additive, ...] = ()
    places: tuple[Additive, ...] = ()
    pairs: tuple[Pair, ...] = (Pair(),)
    outer: tuple[Term, ...] = (Residual(),)

    def modulated(self, modulation: Modulation) -> Kernel:
        """This kernel with another factor in front."""
        return replace(self, modulation=modulation)

    def with_waves(self) -> Kernel:
        """This kernel with periodic curves."""
        return replace(self, waves=WAVES)

    def with_corners(self, corners: Additive) -> Kernel:
        """This kernel with curves that may have corners."""
        return replace(self, corners=(corners,))

    def with_places(self, places: Additive) -> Kernel:
        """This kernel with one law in every variable, each at its own place."""
        return replace(self, places=(places,))

    @property
    def curved(self) -> tuple[Additive, ...]:
        """All terms that are sums of curves."""
        return self.additive + self.waves + self.corners + self.places

    def parameters(self, d: int) -> Parameters:
        """The hyper-parameters of all terms for d variables."""
        joined = {"constant": Parameter.alike(1, 0.0, -12.0, 6.0, Normal(3.0))}
        if self.pairs:
            joined |= {"pair": scale(-3.0), "modulated_pair": scale(-4.0)}
        for term in self._terms:
            joined |= term.parameters(d)
        return joined

    @property
    def _terms(self) -> tuple[Term, ...]:
        return (self.modulation, *self.curved, *self.pairs, *self.outer)

    def against(self, P: Values, B: Points) -> Against:
        """A -> K (n, n'), pull."""
        curved, pairs, outer = (
            [term.against(P, B) for term in terms]
            for terms in (self.curved, self.pairs, self.outer)
        )
        factor, constant = self.modulation.against(P, B), torch.exp(P["constant"])

        def covariance(A: Points) -> tuple[Tensor, Pull]:
            curves, products, others = (
                [term(A) for term in terms] for terms in (curved, pairs, outer)
            )
            mod, by_mod = factor(A)
            base = constant + sum(K for K, _ in curves)
            total = base * mod + sum(K for K, _ in others)
            for K, _ in products:
                base = base + torch.exp(P["modulated_pair"]) * K
                total = total + _level(P, mod) * K

            def pull(C: Tensor) -> Tensor:
                parts = [by_mod(C * base), *(by(C) for _, by in others)]
                parts += [by(C * _level(P, mod)) for _, by in products]
                shared = C * mod
                return torch.stack(parts + [by(shared) for _, by in curves]).sum(0)

            return total, pull

        return covariance

    def matrix(self, P: Values, X: Points, memo: Memo) -> Tensor:
        """K (n, n) of the data; terms whose parameters are in ``memo`` are not computed again."""
        mod = _matrix(self.modulation, P, X, memo)
        base = torch.exp(P["constant"]) + sum(_matrix(term, P, X, memo) for term in self.curved)
        K = base * mod + sum(_matrix(term, P, X, memo) for term in self.outer)
        for term in self.pairs:
            K = K + _level(P, mod) * _matrix(term, P, X, memo)
        return K

    def resting(self, P: Values, X: Points, moving: AbstractSet[str]) -> Memo:
        """The matrices of all terms that have none of the ``moving`` hyper-parameters."""
        memo: Memo = {}
        for term in self._terms:
            if moving.isdisjoint(_names(term, X.d)):
                _matrix(term, P, X, memo)
        return memo

    def diagonal(self, P: Values, A: Points) -> Tensor:
        """k(u, u) (n,)."""
        mod = self.modulation.diagonal(P, A)
        base = torch.exp(P["constant"]) + sum(term.diagonal(P, A) for term in self.curved)
        pairs = sum(_level(P, mod) * term.diagonal(P, A) for term in self.pairs)
        return base * mod + pairs + sum(term.diagonal(P, A) for term in self.outer)

    def contraction(self, P: Values, G: Tensor, X: Points, memo: Memo) -> Tensor:
        """A scalar with the gradient of sum G * K at the data, from the ``memo`` of K.

        Base meets G * Mod, Mod meets G times all that it multiplies, Pair meets G times its level.
        """
        fixed = {k: v.detach() for k, v in P.items()}

        def own(term: Term) -> Tensor:
            return _matrix(term, fixed, X, memo)

        mod = own(self.modulation)
        base = torch.exp(fixed["constant"]) + sum(own(term) for term in self.curved)
        inside = G * mod

        def free(term: Term) -> bool:
            return any(P[name].requires_grad for name in _names(term, X.d))

        parts = [term.contraction(P, inside, X, own(term)) for term in self.curved if free(term)]
        parts += [term.contraction(P, G, X, own(term)) for term in self.outer if free(term)]
        parts.append((inside.sum() * torch.exp(P["constant"])).sum())
        for term in self.pairs:
            K = own(term)
            base = base + torch.exp(fixed["modulated_pair"]) * K
            if free(term):
                parts.append(term.contraction(P, G * _level(fixed, mod), X, K))
            parts.append(((inside * K).sum() * torch.exp(P["modulated_pair"])).sum())
            parts.append(((G * K).sum() * torch.exp(P["pair"])).sum())
        if free(self.modulation):
            parts.append(self.modulation.contraction(P, G * base, X, mod))
        return torch.stack(parts).sum()

    def curves(self, P: Values, a: Tensor, X: Points, grid: Tensor) -> Tensor:
        """The additive part of b posterior means with dual weights a (b, n): (b, d, g)."""
        return torch.stack([term.curves(P, a, X, grid) for term in self.curved]).sum(0)


def _level(P: Values, mod: Tensor) -> Tensor:
    """How much of the products of two variables there is, where the modulators are ``mod``."""
    return torch.exp(P["modulated_pair"]) * mod + torch.exp(P["pair"])


def _matrix(term: Term, P: Values, X: Points, memo: Memo) -> Tensor:
    key = (id(term), b"".join(P[k].numpy().tobytes() for k in _names(term, X.d)))
    if key not in memo:
        memo[key] = term.against(P, X)(X)[0]
    return memo[key]


@lru_cache(256)
def _names(term: Term, d: int) -> tuple[str, ...]:
    return tuple(term.parameters(d))
