"""WFG4 and WFG9 with k = 4 position variables (Huband, Hingston, Barone, While 2006).

Notation: n points, d variables x_i in [0, 2i], m objectives, y = x_i / (2i). The transformations
have the names of the paper (s_multi, s_decept, b_param, r_sum, r_nonsep); the front is the
ellipsoid with half-axes 2, 4, ..., 2m. WFG4 is multimodal; in WFG9 each variable is also bent by
the mean of all later ones, so no variable can be optimised on its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuropareto.problem import Problem
from neuropareto.problems.fronts import POINTS, Front, simplex_lattice
from neuropareto.problems.sizes import chosen
from neuropareto.problems.structure import Structure, declare
from neuropareto.space import Array, Space

NAMES = ("wfg4", "wfg9")
_K = 4
_CENTRE = 0.35


def s_multi(Y: Array, hills: float, height: float, centre: float) -> Array:
    """Shift with many local optima and the global one, 0, at ``centre``."""
    slope = np.abs(Y - centre) / (2.0 * (np.floor(centre - Y) + centre))
    wave = np.cos((4.0 * hills + 2.0) * np.pi * (0.5 - slope))
    return (1.0 + wave + 4.0 * height * slope**2) / (height + 2.0)


def s_decept(Y: Array, centre: float, width: float, trap: float) -> Array:
    """Shift with the optimum in a gap of half-width ``width``; the ends are traps."""
    left = np.floor(Y - centre + width) * (1.0 - trap + (centre - width) / width)
    right = np.floor(centre + width - Y) * (1.0 - trap + (1.0 - centre - width) / width)
    slope = left / (centre - width) + right / (1.0 - centre - width) + 1.0 / width
    return 1.0 + (np.abs(Y - centre) - width) * slope


def b_param_exponent(mean: Array) -> Array:
    """The exponent of b_param(y, mean; 0.98/49.98, 0.02, 50)."""
    a = 0.98 / 49.98
    bend = a - (1.0 - 2.0 * mean) * np.abs(np.floor(0.5 - mean) + a)
    return 0.02 + 49.98 * bend


def r_sum(Y: Array) -> Array:
    """The mean of each row; (n, w) -> (n,)."""
    mean: Array = np.mean(Y, axis=1)
    return mean


def r_nonsep(Y: Array) -> Array:
    """The non-separable reduction of full degree A = w; (n, w) -> (n,).

    (sum_j y_j + sum_{j,k} |y_j - y_k|) / (ceil(w/2) (1 + 2w - 2 ceil(w/2))). The double sum over
    ordered pairs is 2 sum_i (2i - w + 1) y_(i) over the sorted row.
    """
    w = Y.shape[1]
    half = np.ceil(w / 2)
    pairs = 2.0 * np.sort(Y, axis=1) @ (2.0 * np.arange(w) - w + 1.0)
    reduced: Array = (np.sum(Y, axis=1) + pairs) / (half * (1.0 + 2.0 * w - 2.0 * half))
    return reduced


def _groups(Y: Array, m: int) -> list[Array]:
    """The position variables in m - 1 equal groups, then the distance variables."""
    return [*np.split(Y[:, :_K], m - 1, axis=1), Y[:, _K:]]


def _wfg4_reduced(Y: Array, m: int) -> Array:
    return np.column_stack([r_sum(part) for part in _groups(s_multi(Y, 30, 10, _CENTRE), m)])


def _later_means(Y: Array) -> Array:
    """Mean of all later variables, for each variable but the last; (n, d) -> (n, d-1)."""
    sums = np.cumsum(Y[:, :0:-1], axis=1)[:, ::-1]
    return sums / np.arange(Y.shape[1] - 1, 0, -1)


def _wfg9_reduced(Y: Array, m: int) -> Array:
    bent = np.hstack([Y[:, :-1] ** b_param_exponent(_later_means(Y)), Y[:, -1:]])
    moved = np.hstack(
        [s_decept(bent[:, :_K], _CENTRE, 0.001, 0.05), s_multi(bent[:, _K:], 30, 95, _CENTRE)]
    )
    return np.column_stack([r_nonsep(part) for part in _groups(moved, m)])


def _concave(T: Array) -> Array:
    """f_j = t_m + 2j h_j with h on the unit sphere; (n, m) -> (n, m)."""
    n, m = T.shape
    angle = np.clip(T[:, :-1], 0.0, 1.0) * (np.pi / 2)
    ones = np.ones((n, 1))
    products = np.hstack([ones, np.cumprod(np.sin(angle), axis=1)])[:, ::-1]
    H = products * np.hstack([ones, np.cos(angle)[:, ::-1]])
    F: Array = T[:, -1:] + 2.0 * np.arange(1, m + 1) * H
    return F


@dataclass(frozen=True, eq=False)
class Wfg:
    """The objective of WFG4 or WFG9: X (n, d) -> F (n, m)."""

    name: str
    m: int

    def __call__(self, X: Array) -> Array:
        """Evaluate n points; any d > 4."""
        X = np.asarray(X, dtype=np.float64)
        Y = X / (2.0 * np.arange(1, X.shape[1] + 1))
        return _concave((_wfg4_reduced if self.name == "wfg4" else _wfg9_reduced)(Y, self.m))


def _front(m: int) -> Array:
    W = simplex_lattice(POINTS, m)
    F: Array = W / np.linalg.norm(W, axis=1, keepdims=True) * (2.0 * np.arange(1, m + 1))
    return F


def _front_positions(F: Array) -> Array:
    """The reduced position t (p, m-1) of each front point: tan(t pi/2) = |h_1..h_j| / h_j+1."""
    squares = (F / (2.0 * np.arange(1, F.shape[1] + 1))) ** 2
    before = np.sqrt(np.cumsum(squares, axis=1)[:, -2::-1])
    return np.arctan2(before, np.sqrt(squares[:, :0:-1])) / (np.pi / 2)


def _wfg4_positions(F: Array) -> Array:
    """Position variables (p, 4): s_multi runs continuously from 1 at y = 0 to 0 at the centre."""
    t = np.repeat(_front_positions(F), _K // (F.shape[1] - 1), axis=1)
    low, high = np.zeros_like(t), np.full_like(t, _CENTRE)
    for _ in range(80):
        middle = (low + high) / 2
        above = s_multi(middle, 30, 10, _CENTRE) > t
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(t >= 1.0, 0.0, high)


def wfg9_pareto_set(d: int, m: int) -> Array:
    """Points X (p, d) whose WFG9 values are the points of its front, in the same order.

    From the last variable backwards each y_i undoes its own bend by the later ones. Half of each
    position group is put at t and half at 0, because r_nonsep(t..t, 0..0) = t.
    """
    t = _front_positions(_front(m))
    width = _K // (m - 1)
    lifted = np.arange(_K) % width < (width + 1) // 2
    target = np.full((len(t), d), _CENTRE)
    # Inside the gap s_decept(y) = |y - centre| / 0.001.
    target[:, :_K] += 0.001 * np.repeat(t, width, axis=1) * lifted
    Y = np.zeros_like(target)
    Y[:, -1] = target[:, -1]
    total = Y[:, -1].copy()
    for i in range(d - 2, -1, -1):
        Y[:, i] = target[:, i] ** (1.0 / b_param_exponent(total / (d - 1 - i)))
        total += Y[:, i]
    X: Array = Y * (2.0 * np.arange(1, d + 1))
    return X


def wfg(name: str, d: int | None = None, m: int | None = None) -> Problem:
    """WFG4 or WFG9 by name; d > 4, and m = 2, 3 or 5 (m - 1 divides k = 4).

    Reference point: 1.1 times the nadir of the front. Source: Huband, Hingston, Barone, While,
    "A review of multiobjective test problems and a scalable test problem toolkit", 2006.
    Raises ValueError for impossible d or m.
    """
    m = chosen(name, "m", m, 2, least=2)
    if _K % (m - 1):
        raise ValueError(
            f"{name} has k = {_K} position variables, so m - 1 must divide {_K}: choose m = 2, 3 "
            f"or 5, got m={m}."
        )
    d = chosen(name, "d", d, 30, least=_K + 1)
    problem = Problem(
        name=name,
        space=Space.of([(0.0, 2.0 * i) for i in range(1, d + 1)]),
        n_objectives=m,
        objective=Wfg(name, m),
        reference_point=2.2 * np.arange(1.0, m + 1.0),
        front=Front(_front, (m,)),
    )
    if name == "wfg9":
        # Its optimal distance variables depend on one another: there is no fixed optimum.
        return problem
    structure = Structure(
        position=np.arange(_K),
        distance=np.arange(_K, d),
        optimum=np.full(d - _K, _CENTRE),
        positions=_wfg4_positions,
        beyond=False,
    )
    return declare(problem, structure)
