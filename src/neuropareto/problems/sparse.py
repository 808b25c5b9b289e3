"""Four problems with random optima, in which few variables matter, or all, but unequally or together.

``sparse-quadratic``: 10 of d variables, two rotated ill-conditioned quadratics. ``sparse-position``:
a hidden position variable and 10 of d, with pair products, a ridge and a kink. ``chain``: all d,
with importance exp(-i / 12) in shuffled order and neighbours coupled. ``coupled-quadratic``: all d,
two rotated ill-conditioned quadratics, so no variable acts on its own. Notation: two objectives,
quadratic j is (x - o_j)' A_j (x - o_j). The seed picks the instance; the draws are fixed in order
so that figures of one seed stay comparable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import lsq_linear

from neuropareto.problem import Problem
from neuropareto.problems.fronts import POINTS, Front
from neuropareto.problems.sizes import chosen, fixed
from neuropareto.problems.structure import Indices, Structure, declare
from neuropareto.space import Array, Space

NAMES = ("sparse-quadratic", "sparse-position", "chain", "coupled-quadratic")
_ACTIVE = 10


@dataclass(frozen=True, eq=False)
class Quadratics:
    """f_j = (x_S - o_j)' A_j (x_S - o_j) on chosen variables S, for j = 1, 2.

    ``variables`` (k,), ``optima`` (2, k), ``matrices`` (2, k, k), positive definite.
    """

    variables: Indices
    optima: Array
    matrices: Array

    def __call__(self, X: Array) -> Array:
        """X (n, d) -> F (n, 2)."""
        return self.at(np.asarray(X, dtype=np.float64)[:, self.variables])

    def at(self, S: Array) -> Array:
        """The objectives as a function of the chosen variables alone; (n, k) -> (n, 2)."""
        D = S[None] - self.optima[:, None]
        F: Array = np.sum((D @ self.matrices) * D, axis=2).T
        return F

    def compromises(self, weights: Array) -> Array:
        """The minimisers (p, k) over the box of w f_1 + (1 - w) f_2, for weights (p,).

        With A_2 v = lambda A_1 v all weighted sums are diagonal in the same basis. Where the free
        minimiser leaves the box, the bounded least-squares problem is solved instead.
        """
        first, second = self.matrices
        values, vectors = eigh(second, first)
        w = weights[:, None]
        pull = w * (first @ self.optima[0]) + (1 - w) * (second @ self.optima[1])
        S = (pull @ vectors) / (w + (1 - w) * values) @ vectors.T
        for i in np.flatnonzero(((S < 0) | (S > 1)).any(axis=1)):
            L = np.linalg.cholesky(weights[i] * first + (1 - weights[i]) * second)
            S[i] = lsq_linear(L.T, np.linalg.solve(L, pull[i]), (0.0, 1.0), tol=1e-14).x
        inside: Array = np.clip(S, 0.0, 1.0)
        return inside


@dataclass(frozen=True, eq=False)
class HiddenPosition:
    """f = 1 + g - (cos t, sin t) with t = x_p pi/2 and a coupled g >= 0 of ten variables."""

    position: int
    variables: Indices
    optimum: Array
    signs: Array

    def __call__(self, X: Array) -> Array:
        """X (n, d) -> F (n, 2)."""
        X = np.asarray(X, dtype=np.float64)
        Y = X[:, self.variables] - self.optimum
        A, B = Y[:, 0::2], Y[:, 1::2] * self.signs
        pairs = 4.0 * (A + B) ** 2 + 1.5 * (A - B) ** 2 + 0.5 * np.abs(A * B)
        g = pairs.sum(axis=1) + 1.0 - np.cos(4.0 * (Y[:, 0] - Y[:, -1]))
        t = X[:, self.position] * (np.pi / 2)
        F: Array = 1.0 + g[:, None] - np.column_stack([np.cos(t), np.sin(t)])
        return F


@lru_cache(maxsize=32)
def _sparse_quadratic(d: int, seed: int) -> Quadratics:
    rng = np.random.default_rng(5000 + seed)
    variables = rng.choice(d, _ACTIVE, replace=False)
    optima = rng.uniform(0.15, 0.85, (2, _ACTIVE))
    axes = 4.0 * np.exp(np.linspace(-1.2, 1.2, _ACTIVE))
    matrices = []
    for _ in range(2):
        Q = np.linalg.qr(rng.normal(size=(_ACTIVE, _ACTIVE)))[0]
        matrices.append((Q * axes) @ Q.T)
    return Quadratics(variables, optima, np.array(matrices))


@lru_cache(maxsize=32)
def _chain(d: int, seed: int) -> Quadratics:
    rng = np.random.default_rng(7000 + seed)
    variables = rng.permutation(d)
    importance = 6.0 * np.exp(-np.arange(d) / 12.0)
    optima = rng.uniform(0.15, 0.85, (2, d))
    # Only the four most important variables pull the two objectives apart.
    optima[1, 4:] = optima[0, 4:]
    matrices = []
    for _ in range(2):
        link = rng.uniform(-0.6, 0.6, d - 1) * np.sqrt(importance[1:] * importance[:-1]) / 1.2
        matrices.append(np.diag(importance) + np.diag(link, 1) + np.diag(link, -1))
    return Quadratics(variables, optima, np.array(matrices))


@lru_cache(maxsize=32)
def _coupled(d: int, seed: int) -> Quadratics:
    rng = np.random.default_rng(8000 + seed)
    optima = rng.uniform(0.2, 0.8, (2, d))
    optima[1] = np.clip(optima[0] + 0.15 * rng.normal(size=d), 0.05, 0.95)
    axes = np.geomspace(1.0, 30.0, d)
    rotations = [np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2)]
    return Quadratics(np.arange(d), optima, np.array([(Q * axes) @ Q.T for Q in rotations]))


_QUADRATICS = {
    "sparse-quadratic": _sparse_quadratic,
    "chain": _chain,
    "coupled-quadratic": _coupled,
}
_SIZES = {"sparse-quadratic": (200, _ACTIVE), "chain": (100, 5), "coupled-quadratic": (30, 2)}


def _weights(quadratics: Quadratics) -> Array:
    """POINTS weights whose compromises are evenly spaced along the front."""
    logit = np.linspace(-12.0, 12.0, 2001)
    F = quadratics.at(quadratics.compromises(1.0 / (1.0 + np.exp(-logit))))
    length = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(F, axis=0), axis=1))]
    at = np.interp(np.linspace(0.0, length[-1], POINTS), length, logit)
    weights: Array = 1.0 / (1.0 + np.exp(-at))
    return weights


def quadratic_pareto_set(name: str, d: int, seed: int) -> Array:
    """Points X (p, d) on the Pareto set of a quadratic problem, in the order of its front."""
    quadratics = _QUADRATICS[name](d, seed)
    X = np.full((POINTS, d), 0.5)
    X[:, quadratics.variables] = quadratics.compromises(_weights(quadratics))
    return X


def _quadratic_front(name: str, d: int, seed: int) -> Array:
    quadratics = _QUADRATICS[name](d, seed)
    return quadratics.at(quadratics.compromises(_weights(quadratics)))


def _position_front() -> Array:
    t = np.linspace(0.0, np.pi / 2, POINTS)
    return 1.0 - np.column_stack([np.cos(t), np.sin(t)])


def _hidden_position(F: Array) -> Array:
    return (np.arctan2(1.0 - F[:, 1], 1.0 - F[:, 0]) / (np.pi / 2))[:, None]


def _sparse_position(d: int, seed: int) -> Problem:
    rng = np.random.default_rng(6000 + seed)
    chosen_variables = rng.choice(d, _ACTIVE + 1, replace=False)
    optimum = rng.uniform(0.2, 0.8, _ACTIVE)
    signs = rng.choice([-1, 1], _ACTIVE // 2).astype(np.float64)
    position, variables = int(chosen_variables[0]), chosen_variables[1:]
    problem = Problem(
        name="sparse-position",
        space=Space.of([(0.0, 1.0)] * d),
        n_objectives=2,
        objective=HiddenPosition(position, variables, optimum, signs),
        reference_point=np.array([1.1, 1.1]),
        front=Front(_position_front),
    )
    structure = Structure(
        position=np.array([position]),
        distance=variables,
        optimum=optimum,
        positions=_hidden_position,
        beyond=True,
    )
    return declare(problem, structure)


def sparse(name: str, d: int | None = None, m: int | None = None, *, seed: int = 0) -> Problem:
    """One of ``NAMES``; m = 2, the seed picks the instance.

    Reference point: 1.1 times the nadir of the front. Source: this project. Raises ValueError for
    impossible d or m.
    """
    fixed(name, "m", m, 2)
    if name == "sparse-position":
        return _sparse_position(chosen(name, "d", d, 200, least=_ACTIVE + 1), seed)
    default, least = _SIZES[name]
    d = chosen(name, "d", d, default, least=least)
    quadratics = _QUADRATICS[name](d, seed)
    ends = quadratics.at(quadratics.compromises(np.array([1.0, 0.0])))
    return Problem(
        name=name,
        space=Space.of([(0.0, 1.0)] * d),
        n_objectives=2,
        objective=quadratics,
        reference_point=1.1 * ends.max(axis=0),
        front=Front(_quadratic_front, (name, d, seed)),
    )
