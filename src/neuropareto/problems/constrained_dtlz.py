"""C1-DTLZ1, C1-DTLZ3, C2-DTLZ2 and C3-DTLZ4: DTLZ with constraints on the objectives (Jain, Deb 2014).

Notation: F (n, m) of the DTLZ problem, G (n, c) a function of F alone, feasible where G <= 0. C1
bars the way to the front and leaves the front as it was, C2 leaves pieces of it, C3 makes all of it
infeasible, so that the constraints themselves are the new front.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from neuropareto.problem import Outcome, Problem
from neuropareto.problems.dtlz import Dtlz, dtlz, nadir
from neuropareto.problems.fronts import Front
from neuropareto.problems.sizes import chosen
from neuropareto.problems.structure import declare, known
from neuropareto.space import Array


def _squared(F: Array) -> Array:
    """|f|^2; (n, 1)."""
    squared: Array = np.sum(F**2, axis=1, keepdims=True)
    return squared


def under_plane(F: Array) -> Array:
    """C1-DTLZ1: f_m / 0.6 + sum_{j<m} f_j / 0.5 - 1, a thin wedge over the front; (n, 1)."""
    G: Array = F[:, -1:] / 0.6 + np.sum(F[:, :-1], axis=1, keepdims=True) / 0.5 - 1.0
    return G


def outside_shell(F: Array) -> Array:
    """C1-DTLZ3: (|f|^2 - 16) (r^2 - |f|^2), nothing between the radii 4 and r; (n, 1).

    r = 9, from m = 5 on 12.5, from m = 10 on 15.
    """
    m = F.shape[1]
    r = 9.0 if m < 5 else 12.5 if m < 10 else 15.0
    return (_squared(F) - 16.0) * (r**2 - _squared(F))


def inside_balls(F: Array) -> Array:
    """C2-DTLZ2: min |f - a|^2 - r^2 over the unit vectors and the diagonal as a; (n, 1).

    r = 0.2, 0.4 and 0.5 for m = 2, m = 3 and more. As |a| = 1, |f - a|^2 = |f|^2 - 2 a f + 1.
    """
    m = F.shape[1]
    r = {2: 0.2, 3: 0.4}.get(m, 0.5)
    along = np.maximum(np.max(F, axis=1), np.sum(F, axis=1) / np.sqrt(m))
    G: Array = _squared(F) - 2.0 * along[:, None] + 1.0 - r**2
    return G


def outside_ellipsoids(F: Array) -> Array:
    """C3-DTLZ4: 1 - f_j^2 / 4 - sum_{i != j} f_i^2 for each j; (n, m)."""
    return 1.0 - _squared(F) + 0.75 * F**2


def _whole(F: Array) -> Array:
    return F


def _pieces(F: Array) -> Array:
    return F[inside_balls(F)[:, 0] <= 0.0]


def _pushed(F: Array) -> Array:
    """Each point moved along its direction until the last of the m ellipsoids is left; (p, m)."""
    pushed: Array = F / np.sqrt(_squared(F) - 0.75 * np.max(F**2, axis=1, keepdims=True))
    return pushed


@dataclass(frozen=True)
class _Kind:
    base: str
    constraints: Callable[[Array], Array]
    front: Callable[[Array], Array]
    stretch: float = 1.0  # the nadir of the front over that of the base
    distances: int = 1  # as many distance variables as it takes to reach all of the front


_KINDS = {
    "c1-dtlz1": _Kind("dtlz1", under_plane, _whole),
    "c1-dtlz3": _Kind("dtlz3", outside_shell, _whole),
    "c2-dtlz2": _Kind("dtlz2", inside_balls, _pieces),
    "c3-dtlz4": _Kind("dtlz4", outside_ellipsoids, _pushed, stretch=2.0, distances=4),
}
NAMES = tuple(_KINDS)


@dataclass(frozen=True, eq=False)
class ConstrainedDtlz:
    """A DTLZ problem with constraints on its objectives: X (n, d) -> F (n, m), G (n, c)."""

    name: str
    m: int

    def __call__(self, X: Array) -> Outcome:
        """Evaluate n points; any d >= m."""
        kind = _KINDS[self.name]
        F = Dtlz(kind.base, self.m)(X)
        return F, kind.constraints(F)


def _front(name: str, m: int) -> Array:
    kind = _KINDS[name]
    whole = dtlz(kind.base, m, m).front
    assert whole is not None
    return kind.front(whole())


def constrained_dtlz(name: str, d: int | None = None, m: int | None = None) -> Problem:
    """C1-DTLZ1, C1-DTLZ3, C2-DTLZ2 or C3-DTLZ4 by name; any m >= 2 and d >= m.

    C3-DTLZ4 needs d >= m + 3: its front ends at radius 2, and k distance variables reach 1 + k/4.
    Reference point: 1.1 times the nadir of the front. Source: Jain, Deb, "An evolutionary
    many-objective optimization algorithm using reference-point based nondominated sorting
    approach, part II", 2014; r for m = 2 as in pymoo. Raises ValueError for impossible d or m.
    """
    kind = _KINDS[name]
    m = chosen(name, "m", m, 2, least=2)
    least = m - 1 + kind.distances
    base = dtlz(kind.base, chosen(name, "d", d, max(30, least), least=least), m)
    problem = replace(
        base,
        name=name,
        objective=ConstrainedDtlz(name, m),
        n_constraints=kind.constraints(np.ones((1, m))).shape[1],
        reference_point=1.1 * kind.stretch * nadir(kind.base, m),
        front=Front(_front, (name, m)),
    )
    if name == "c3-dtlz4":
        # Its optimal distance variables depend on the position: there is no fixed optimum.
        return problem
    return declare(problem, known(base, name))
