"""The contract of a kernel's terms, and what terms with finite features have in common.

A term can be evaluated against fixed points, whose share of the work is then done once for many
questions (a search asks hundreds of times about the same data). And it can be contracted: for a
symmetric G (n, n) it returns a scalar whose gradient with respect to the hyper-parameters is that
of sum_ij G_ij K_ij. Contractions are written by hand because automatic differentiation of n x n
matrices costs several times more.
Notation: A n points, B n' points, X the data, K (n, n'), psi (n, p) features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from torch import Tensor

from neuropareto.surrogate.structured.parameters import Normal, Parameter, Parameters, Values
from neuropareto.surrogate.structured.points import Points

# Points A (n) -> K (n, n') against points that were fixed before.
Against: TypeAlias = "Callable[[Points], Tensor]"


class Term(Protocol):
    """One summand or factor of the kernel."""

    def parameters(self, d: int) -> Parameters:
        """The hyper-parameters of this term for d variables."""
        ...

    def against(self, P: Values, B: Points) -> Against:
        """The function A -> K (n, n') for fixed ``P`` and ``B``."""
        ...

    def diagonal(self, P: Values, A: Points) -> Tensor:
        """k(u, u) (n,)."""
        ...

    def contraction(self, P: Values, G: Tensor, X: Points, K: Tensor) -> Tensor:
        """A scalar with the gradient of sum G * K; ``K`` is this term's own matrix at ``X``."""
        ...


class Additive(Term, Protocol):
    """A sum of curves, one for each variable."""

    def curves(self, P: Values, a: Tensor, X: Points, grid: Tensor) -> Tensor:
        """sum_n a_bn k_i(g, x_ni): the curve of each variable i on the grid (g,), (b, d, g)."""
        ...


def scale(start: float) -> Parameter:
    """A log variance."""
    return Parameter.alike(1, start, -12.0, 6.0, Normal(3.0))


def linear(features: Callable[[Values, Points], Tensor], P: Values, B: Points) -> Against:
    """K = psi(A) psi(B)^T as a function of A."""
    Y = features(P, B)
    return lambda A: (Y if A is B else features(P, A)) @ Y.T


def linear_contraction(Z: Tensor, G: Tensor) -> Tensor:
    """The contraction of K = Z Z^T: d sum(G * Z Z^T) = 2 sum((G Z) * dZ) for symmetric G."""
    return 2.0 * ((G @ Z.detach()) * Z).sum()
