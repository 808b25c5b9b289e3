"""DTLZ1-7 with any number of variables and objectives (Deb, Thiele, Laumanns, Zitzler 2005).

Notation: n points, d variables in [0, 1], m objectives. The first m - 1 variables ``P`` are
positions along the front, the other k = d - m + 1 are distance variables ``Z``; every problem is
shape(P, g(Z)) with g >= 0 and g = 0 on the front. k is not fixed to a default: all variables are
used, as in PlatEMO. At m = 2, DTLZ5 is DTLZ2 and the fronts of DTLZ2-6 are the same circle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from neuropareto.problem import Problem
from neuropareto.problems.fronts import (
    POINTS,
    Front,
    grid,
    improving_intervals,
    simplex_lattice,
    spread,
)
from neuropareto.problems.sizes import chosen
from neuropareto.problems.structure import Structure, declare
from neuropareto.space import Array, Space


def bowl(Z: Array) -> Array:
    """Sum of (z - 1/2)^2; (n,)."""
    g: Array = np.sum((Z - 0.5) ** 2, axis=1)
    return g


def rugged(Z: Array) -> Array:
    """100 times the sum of (z - 1/2)^2 + 1 - cos(20 pi (z - 1/2)); (n,)."""
    C = Z - 0.5
    g: Array = 100.0 * (Z.shape[1] + np.sum(C**2 - np.cos(20.0 * np.pi * C), axis=1))
    return g


def steep(Z: Array) -> Array:
    """Sum of z^0.1; (n,)."""
    g: Array = np.sum(Z**0.1, axis=1)
    return g


def slanted(Z: Array) -> Array:
    """9 times the mean of z; (n,)."""
    g: Array = 9.0 * np.mean(Z, axis=1)
    return g


def _nested(A: Array, B: Array) -> Array:
    """Columns prod(A[:, :m-1-j]) B[:, m-1-j], with B left out at j = 0; (n, m-1) -> (n, m)."""
    ones = np.ones((len(A), 1))
    return np.hstack([ones, np.cumprod(A, axis=1)])[:, ::-1] * np.hstack([ones, B[:, ::-1]])


def plane(P: Array, g: Array) -> Array:
    """The simplex 0.5 (1 + g) (p1 p2 ..., p1 (1 - p2), 1 - p1) of DTLZ1; (n, m)."""
    return 0.5 * (1.0 + g[:, None]) * _nested(P, 1.0 - P)


def sphere(P: Array, g: Array) -> Array:
    """The sphere of radius 1 + g with angles p pi/2 of DTLZ2 and DTLZ3; (n, m)."""
    return (1.0 + g[:, None]) * _nested(np.cos(P * (np.pi / 2)), np.sin(P * (np.pi / 2)))


def biased_sphere(P: Array, g: Array) -> Array:
    """The sphere of DTLZ4 with p^100 for p; (n, m)."""
    return sphere(P**100, g)


def curve(P: Array, g: Array) -> Array:
    """The sphere of DTLZ5 and DTLZ6: all angles but the first shrink to pi/4 as g -> 0; (n, m)."""
    G = g[:, None]
    T = (1.0 + 2.0 * G * P) / (2.0 * (1.0 + G))
    T[:, 0] = P[:, 0]
    return sphere(T, g)


def patches(P: Array, g: Array) -> Array:
    """DTLZ7: (p, (2 + g) h) with h = m - sum p (1 + sin 3 pi p) / (2 + g); (n, m)."""
    scale = 2.0 + g
    ripple = np.sum(P / scale[:, None] * (1.0 + np.sin(3.0 * np.pi * P)), axis=1)
    return np.hstack([P, (scale * (P.shape[1] + 1 - ripple))[:, None]])


def _plane_front(m: int) -> Array:
    return 0.5 * simplex_lattice(POINTS, m)


def _sphere_front(m: int) -> Array:
    W = simplex_lattice(POINTS, m)
    F: Array = W / np.linalg.norm(W, axis=1, keepdims=True)
    return F


def _curve_front(m: int) -> Array:
    arc = _sphere_front(2)
    return np.hstack([np.repeat(arc[:, :1], m - 1, axis=1), arc[:, 1:]]) / _curve_scales(m)


def _curve_scales(m: int) -> Array:
    """sqrt(2) for each angle of pi/4 that an objective passes through; (m,)."""
    angles = np.r_[m - 2, np.arange(m - 2, -1, -1)]
    scales: Array = np.sqrt(2.0) ** angles
    return scales


@lru_cache(maxsize=1)
def _patches() -> list[tuple[float, float]]:
    def slope(x: float) -> float:
        return float(-1.0 - np.sin(3 * np.pi * x) - x * 3 * np.pi * np.cos(3 * np.pi * x))

    return improving_intervals(lambda x: -x * (1.0 + np.sin(3 * np.pi * x)), slope)


def _patches_front(m: int) -> Array:
    return patches(spread(_patches(), grid(POINTS, m - 1)), np.zeros(1))


def _plane_positions(F: Array) -> Array:
    return _shares(F, lambda own, rest: rest / np.where(own + rest > 0, own + rest, 1.0))


def _sphere_positions(F: Array) -> Array:
    squares = _shares(F**2, lambda own, rest: np.arctan2(np.sqrt(own), np.sqrt(rest)))
    return squares / (np.pi / 2)


def _biased_positions(F: Array) -> Array:
    return _sphere_positions(F) ** 0.01


def _curve_positions(F: Array) -> Array:
    P = np.full((len(F), F.shape[1] - 1), 0.5)
    P[:, 0] = _sphere_positions(F)[:, 0]
    return P


def _patches_positions(F: Array) -> Array:
    return F[:, :-1]


def _shares(F: Array, share: Callable[[Array, Array], Array]) -> Array:
    """Undo the nesting: position i sees objective m-1-i and the sum of those before it."""
    before = np.cumsum(F, axis=1)
    return share(F[:, :0:-1], before[:, -2::-1])


@dataclass(frozen=True)
class _Kind:
    distance: Callable[[Array], Array]
    shape: Callable[[Array, Array], Array]
    optimum: float
    front: Callable[[int], Array]
    positions: Callable[[Array], Array]


_KINDS = {
    "dtlz1": _Kind(rugged, plane, 0.5, _plane_front, _plane_positions),
    "dtlz2": _Kind(bowl, sphere, 0.5, _sphere_front, _sphere_positions),
    "dtlz3": _Kind(rugged, sphere, 0.5, _sphere_front, _sphere_positions),
    "dtlz4": _Kind(bowl, biased_sphere, 0.5, _sphere_front, _biased_positions),
    "dtlz5": _Kind(bowl, curve, 0.5, _curve_front, _curve_positions),
    "dtlz6": _Kind(steep, curve, 0.0, _curve_front, _curve_positions),
    "dtlz7": _Kind(slanted, patches, 0.0, _patches_front, _patches_positions),
}
NAMES = tuple(_KINDS)


@dataclass(frozen=True, eq=False)
class Dtlz:
    """The objective of one DTLZ problem: X (n, d) -> F (n, m)."""

    name: str
    m: int

    def __call__(self, X: Array) -> Array:
        """Evaluate n points; any d >= m."""
        kind = _KINDS[self.name]
        X = np.asarray(X, dtype=np.float64)
        return kind.shape(X[:, : self.m - 1], kind.distance(X[:, self.m - 1 :]))


def nadir(name: str, m: int) -> Array:
    """The largest value of each objective on the front; (m,)."""
    largest = np.full(m, 0.5 if name == "dtlz1" else 1.0)
    if name in ("dtlz5", "dtlz6"):
        largest /= _curve_scales(m)
    if name == "dtlz7":
        largest[:-1], largest[-1] = _patches()[-1][1], 2.0 * m
    return largest


def dtlz(name: str, d: int | None = None, m: int | None = None) -> Problem:
    """DTLZ1-7 by name; any m >= 2 and d >= m. Reference point: 1.1 times the nadir of the front.

    Source: Deb, Thiele, Laumanns, Zitzler, "Scalable test problems for evolutionary
    multi-objective optimization", 2005. Raises ValueError for impossible d or m.
    """
    m = chosen(name, "m", m, 2, least=2)
    d = chosen(name, "d", d, max(30, m), least=m)
    kind = _KINDS[name]
    problem = Problem(
        name=name,
        space=Space.of([(0.0, 1.0)] * d),
        n_objectives=m,
        objective=Dtlz(name, m),
        reference_point=1.1 * nadir(name, m),
        front=Front(kind.front, (m,)),
    )
    structure = Structure(
        position=np.arange(m - 1),
        distance=np.arange(m - 1, d),
        optimum=np.full(d - m + 1, kind.optimum),
        positions=kind.positions,
        beyond=True,
    )
    return declare(problem, structure)
