"""The contract of a kernel's terms, and what terms with finite features have in common.

A term can be evaluated against fixed points, whose share of the work is then done once for many
questions (a search asks hundreds of times about the same data), and with its value comes a function
that pulls weights C (n, n') back to the points: sum_n' C K' with K' the slope in A. And it can be
contracted: for a symmetric G (n, n) it returns a scalar whose gradient with respect to the
hyper-parameters is that of sum_ij G_ij K_ij. Slopes and contractions are written by hand because
automatic differentiation of these matrices costs several times more.
Notation: A n points, B n' points, X the data, K (n, n'), psi (n, p) features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from torch import Tensor

from neuropareto.surrogate.structured.parameters import Normal, Parameter, Parameters, Values
from neuropareto.surrogate.structured.points import Points

# C (n, n') -> sum_n' C dK/du at each of n points, (n, d).
Pull: TypeAlias = Callable[[Tensor], Tensor]
# Points A (n) -> K (n, n') against points that were fixed before, and its pull.
Against: TypeAlias = "Callable[[Points], tuple[Tensor, Pull]]"


class Term(Protocol):
    """One summand or factor of the kernel; a frozen value."""

    def __hash__(self) -> int:
        """Equal terms have equal hashes."""
        ...

    def parameters(self, d: int) -> Parameters:
        """The hyper-parameters of this term for d variables."""
        ...

    def against(self, P: Values, B: Points) -> Against:
        """The function A -> (K (n, n'), its pull) for fixed ``P`` and ``B``."""
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


def of_each(values: Tensor, slopes: Callable[[], Tensor], W: Tensor) -> tuple[Tensor, Pull]:
    """K = sum_ik psi_k(u_i) W_ik and its pull; ``values`` (n, d, K) are psi, W (n', d, K)."""
    flat = W.flatten(1)

    def pull(C: Tensor) -> Tensor:
        return ((C @ flat).view_as(values) * slopes()).sum(-1)

    return values.flatten(1) @ flat.T, pull


def of_all(values: Tensor, slopes: Callable[[], Tensor], W: Tensor) -> tuple[Tensor, Pull]:
    """K = sum_ik psi_k(u_i) W_k and its pull; ``values`` (n, d, K) are psi, W (n', K)."""

    def pull(C: Tensor) -> Tensor:
        return ((C @ W)[:, None, :] * slopes()).sum(-1)

    return values.sum(1) @ W.T, pull


def linear_contraction(Z: Tensor, G: Tensor) -> Tensor:
    """The contraction of K = Z Z^T: d sum(G * Z Z^T) = 2 sum((G Z) * dZ) for symmetric G."""
    return 2.0 * ((G @ Z.detach()) * Z).sum()
