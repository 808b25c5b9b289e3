"""ZDT1-4 and ZDT6 with any number of variables (Zitzler, Deb, Thiele 2000).

Notation: n points, d variables, two objectives. x1 in [0, 1] is the position, the other d - 1 are
distance variables ``Z``; f2 = g(Z) h(f1 / g) with g = 1 on the front. ZDT4 has Z in [-5, 5] and
its optimum in the middle of the box; the others have Z in [0, 1] and their optimum at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from neuropareto.problem import Problem
from neuropareto.problems.fronts import POINTS, Front, improving_intervals, spread
from neuropareto.problems.sizes import chosen, fixed
from neuropareto.problems.structure import Structure, declare
from neuropareto.space import Array, Space


def slanted(Z: Array) -> Array:
    """1 + 9 times the mean of z; (n,)."""
    g: Array = 1.0 + 9.0 * np.mean(Z, axis=1)
    return g


def rugged(Z: Array) -> Array:
    """1 + the sum of z^2 + 10 - 10 cos(4 pi z); (n,)."""
    g: Array = 1.0 + 10.0 * Z.shape[1] + np.sum(Z**2 - 10.0 * np.cos(4.0 * np.pi * Z), axis=1)
    return g


def steep(Z: Array) -> Array:
    """1 + 9 times the fourth root of the mean of z; (n,)."""
    g: Array = 1.0 + 9.0 * np.mean(Z, axis=1) ** 0.25
    return g


def convex(f1: Array, g: Array) -> Array:
    """1 - sqrt(f1 / g); (n,)."""
    return 1.0 - np.sqrt(f1 / g)


def concave(f1: Array, g: Array) -> Array:
    """1 - (f1 / g)^2; (n,)."""
    return 1.0 - (f1 / g) ** 2


def broken(f1: Array, g: Array) -> Array:
    """1 - sqrt(f1 / g) - (f1 / g) sin(10 pi f1); (n,)."""
    return 1.0 - np.sqrt(f1 / g) - f1 / g * np.sin(10.0 * np.pi * f1)


def same(x: Array) -> Array:
    """x itself, the first objective of ZDT1-4; (n,)."""
    return x


def thinned(x: Array) -> Array:
    """1 - exp(-4 x) sin(6 pi x)^6, the first objective of ZDT6; (n,)."""
    f1: Array = 1.0 - np.exp(-4.0 * x) * np.sin(6.0 * np.pi * x) ** 6
    return f1


# The smallest f1 of ZDT6 is at the first maximum of exp(-4x) sin(6 pi x)^6: tan(6 pi x) = 9 pi.
_ZDT6_BEST = np.arctan(9.0 * np.pi) / (6.0 * np.pi)


def _unthinned(f1: Array) -> Array:
    """The x in [0, _ZDT6_BEST], where f1 falls from 1, that has a given f1; by bisection."""
    low, high = np.zeros_like(f1), np.full_like(f1, _ZDT6_BEST)
    for _ in range(80):
        middle = (low + high) / 2
        above = thinned(middle) > f1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(f1 >= 1.0, 0.0, (low + high) / 2)


@lru_cache(maxsize=1)
def _pieces() -> list[tuple[float, float]]:
    def slope(x: float) -> float:
        angle = 10.0 * np.pi * x
        return float(-0.5 / np.sqrt(x) - np.sin(angle) - angle * np.cos(angle))

    return improving_intervals(lambda x: broken(x, np.array(1.0)), slope)


@dataclass(frozen=True)
class _Kind:
    first: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    distance: Callable[[Array], Array]
    shape: Callable[[Array, Array], Array]
    half_width: float = 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        return (-self.half_width, self.half_width) if self.half_width else (0.0, 1.0)

    @property
    def optimum(self) -> float:
        return 0.5 if self.half_width else 0.0


_KINDS = {
    "zdt1": _Kind(same, same, slanted, convex),
    "zdt2": _Kind(same, same, slanted, concave),
    "zdt3": _Kind(same, same, slanted, broken),
    "zdt4": _Kind(same, same, rugged, convex, half_width=5.0),
    "zdt6": _Kind(thinned, _unthinned, steep, concave),
}
NAMES = tuple(_KINDS)


def _first_objective(name: str) -> Array:
    t = np.linspace(0.0, 1.0, POINTS)
    if name == "zdt3":
        return spread(_pieces(), t)
    if name == "zdt6":
        lowest = float(thinned(np.array(_ZDT6_BEST)))
        return lowest + t * (1.0 - lowest)
    return t


def _front(name: str) -> Array:
    f1 = _first_objective(name)
    return np.column_stack([f1, _KINDS[name].shape(f1, np.ones(1))])


@dataclass(frozen=True)
class _Positions:
    name: str

    def __call__(self, F: Array) -> Array:
        return _KINDS[self.name].inverse(F[:, 0])[:, None]


@dataclass(frozen=True, eq=False)
class Zdt:
    """The objective of one ZDT problem: X (n, d) -> F (n, 2)."""

    name: str

    def __call__(self, X: Array) -> Array:
        """Evaluate n points; any d >= 2."""
        kind = _KINDS[self.name]
        X = np.asarray(X, dtype=np.float64)
        f1, g = kind.first(X[:, 0]), kind.distance(X[:, 1:])
        return np.column_stack([f1, g * kind.shape(f1, g)])


def nadir(name: str) -> Array:
    """The largest value of each objective on the front; (2,)."""
    if name == "zdt3":
        return np.array([_pieces()[-1][1], 1.0])
    if name == "zdt6":
        return np.array([1.0, 1.0 - float(thinned(np.array(_ZDT6_BEST))) ** 2])
    return np.ones(2)


def zdt(name: str, d: int | None = None, m: int | None = None) -> Problem:
    """ZDT1-4 and ZDT6 by name; any d >= 2, m = 2. Reference point: 1.1 times the front's nadir.

    Source: Zitzler, Deb, Thiele, "Comparison of multiobjective evolutionary algorithms:
    empirical results", 2000. Raises ValueError for impossible d or m.
    """
    fixed(name, "m", m, 2)
    d = chosen(name, "d", d, 30, least=2)
    kind = _KINDS[name]
    problem = Problem(
        name=name,
        space=Space.of([(0.0, 1.0)] + [kind.bounds] * (d - 1)),
        n_objectives=2,
        objective=Zdt(name),
        reference_point=1.1 * nadir(name),
        front=Front(_front, (name,)),
    )
    structure = Structure(
        position=np.arange(1),
        distance=np.arange(1, d),
        optimum=np.full(d - 1, kind.optimum),
        positions=_Positions(name),
        beyond=True,
    )
    return declare(problem, structure)
