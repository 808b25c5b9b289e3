"""The structured kernel: few modulators times an additive base, plus interactions.

k(u, u') = Mod(u_J, u'_J) [e^constant + sum of additive terms + sum of inner interactions]
           + sum of outer interactions.
Each term is a small object with its formula; this file only composes them. Notation: A n points,
B n' points, P the hyper-parameters by name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from neuropareto.surrogate.structured.additive import Own, Shared
from neuropareto.surrogate.structured.interactions import Pair, Residual
from neuropareto.surrogate.structured.modulation import Modulation, Unmodulated
from neuropareto.surrogate.structured.parameters import Normal, Parameter, Parameters, Values
from neuropareto.surrogate.structured.points import Points
from neuropareto.surrogate.structured.term import Additive, Against, Pull, Term
from neuropareto.surrogate.structured.waves import WAVES

Memo = dict[tuple[int, bytes], Tensor]


@dataclass(frozen=True)
class Kernel:
    """A composition of terms; ``inner`` interactions are modulated, ``outer`` ones are not."""

    modulation: Modulation = Unmodulated()
    additive: tuple[Additive, ...] = (Own(), Shared())
    waves: tuple[Additive, ...] = ()
    inner: tuple[Term, ...] = ()
    outer: tuple[Term, ...] = (Pair(), Residual())

    def modulated(self, modulation: Modulation) -> Kernel:
        """This kernel with another factor in front."""
        return replace(self, modulation=modulation)

    def with_waves(self) -> Kernel:
        """This kernel with periodic curves."""
        return replace(self, waves=WAVES)

    @property
    def curved(self) -> tuple[Additive, ...]:
        """All terms that are sums of curves."""
        return self.additive + self.waves

    @property
    def base(self) -> tuple[Term, ...]:
        """All terms that are modulated."""
        return (*self.curved, *self.inner)

    def parameters(self, d: int) -> Parameters:
        """The hyper-parameters of all terms for d variables."""
        joined = {"constant": Parameter.alike(1, 0.0, -12.0, 6.0, Normal(3.0))}
        terms: tuple[Term, ...] = (self.modulation, *self.base, *self.outer)
        for term in terms:
            joined |= term.parameters(d)
        return joined

    def against(self, P: Values, B: Points) -> Against:
        """A -> K (n, n'), pull."""
        base, outer = ([term.against(P, B) for term in terms] for terms in (self.base, self.outer))
        factor, constant = self.modulation.against(P, B), torch.exp(P["constant"])

        def covariance(A: Points) -> tuple[Tensor, Pull]:
            inside, outside = ([term(A) for term in terms] for terms in (base, outer))
            inner = constant + sum(K for K, _ in inside)
            mod, by_mod = factor(A)

            def pull(C: Tensor) -> Tensor:
                parts = [by_mod(C * inner), *(by(C) for _, by in outside)]
                shared = C * mod
                return torch.stack(parts + [by(shared) for _, by in inside]).sum(0)

            return inner * mod + sum(K for K, _ in outside), pull

        return covariance

    def matrix(self, P: Values, X: Points, memo: Memo) -> Tensor:
        """K (n, n) of the data; terms whose parameters are in ``memo`` are not computed again."""
        base = torch.exp(P["constant"]) + sum(_matrix(term, P, X, memo) for term in self.base)
        K = base * _matrix(self.modulation, P, X, memo)
        return K + sum(_matrix(term, P, X, memo) for term in self.outer)

    def diagonal(self, P: Values, A: Points) -> Tensor:
        """k(u, u) (n,)."""
        base = torch.exp(P["constant"]) + sum(term.diagonal(P, A) for term in self.base)
        outer = sum(term.diagonal(P, A) for term in self.outer)
        return base * self.modulation.diagonal(P, A) + outer

    def contraction(self, P: Values, G: Tensor, X: Points, memo: Memo) -> Tensor:
        """A scalar with the gradient of sum G * K at the data, from the ``memo`` of K.

        With K = Mod * Base + Outer: Base meets G * Mod, Mod meets G * Base.
        """
        fixed = {k: v.detach() for k, v in P.items()}

        def own(term: Term) -> Tensor:
            return _matrix(term, fixed, X, memo)

        factor = own(self.modulation)
        base = torch.exp(fixed["constant"]) + sum(own(term) for term in self.base)
        inside = G * factor
        parts = [term.contraction(P, inside, X, own(term)) for term in self.base]
        parts += [term.contraction(P, G, X, own(term)) for term in self.outer]
        parts.append(self.modulation.contraction(P, G * base, X, factor))
        parts.append((inside.sum() * torch.exp(P["constant"])).sum())
        return torch.stack(parts).sum()

    def curves(self, P: Values, a: Tensor, X: Points, grid: Tensor) -> Tensor:
        """The additive part of b posterior means with dual weights a (b, n): (b, d, g)."""
        return torch.stack([term.curves(P, a, X, grid) for term in self.curved]).sum(0)


def _matrix(term: Term, P: Values, X: Points, memo: Memo) -> Tensor:
    key = (id(term), b"".join(P[k].numpy().tobytes() for k in term.parameters(X.d)))
    if key not in memo:
        memo[key] = term.against(P, X)(X)[0]
    return memo[key]
