"""Crossover and differential step in the form of PlatEMO, each with mutation after it.

Most peers were published with these forms, which differ a little from the bounded ones of
``neuropareto.variation``: a child that leaves the cube is clipped to its face. Notation: n parents
of d variables, rows of the unit cube. SBX: Deb and Agrawal 1995; the differential step: Storn and
Price 1997; polynomial mutation: Deb and Goyal 1996.
"""

from __future__ import annotations

import numpy as np

from neuropareto.space import Array
from neuropareto.variation import polynomial_mutation


def platemo_sbx(
    parents: Array,
    *,
    rng: np.random.Generator,
    p_pair: float = 1.0,
    eta_crossover: float = 20.0,
    mutations: float = 1.0,
    eta_mutation: float = 20.0,
) -> Array:
    """Children of the i-th parent of the first half and the i-th of the second; (2 (n // 2), d).

    (a + b) / 2 +- beta (a - b) / 2 with beta = (2 r)^(1 / (eta + 1)) for r <= 1/2, otherwise
    (2 - 2 r)^(-1 / (eta + 1)), of random sign; a variable is copied with probability one half, a
    whole pair with 1 - ``p_pair``. Then clipped to the cube, then mutated, ``mutations`` variables
    a child on average. The last of an odd number of parents has no mate and no child.
    """
    half, d = len(parents) // 2, parents.shape[1]
    A, B = parents[:half], parents[half : 2 * half]
    beta = _spread(half, d, eta_crossover, rng)
    beta[rng.random((half, d)) < 0.5] = 1.0
    beta[rng.random(half) >= p_pair] = 1.0
    middle, reach = 0.5 * (A + B), 0.5 * beta * (A - B)
    children = np.clip(np.concatenate([middle + reach, middle - reach]), 0.0, 1.0)
    return polynomial_mutation(children, eta=eta_mutation, p_variable=mutations / d, rng=rng)


def de_current(
    A: Array,
    B: Array,
    C: Array,
    *,
    rng: np.random.Generator,
    CR: float = 1.0,
    F: float = 0.5,
    mutations: float = 1.0,
    eta_mutation: float = 20.0,
) -> Array:
    """The step A + F (B - C), each variable with probability ``CR``, otherwise A's; (n, d).

    No variable is sure to move. Then clipped to the cube, then mutated, ``mutations`` variables a
    child on average. A, B and C are (n, d).
    """
    moved = np.where(rng.random(A.shape) < CR, A + F * (B - C), A)
    p = mutations / A.shape[1]
    return polynomial_mutation(moved.clip(0.0, 1.0), eta=eta_mutation, p_variable=p, rng=rng)


def _spread(n: int, d: int, eta: float, rng: np.random.Generator) -> Array:
    """Spread factors of SBX with a random sign, (n, d)."""
    r = rng.random((n, d))
    power = 1.0 / (eta + 1.0)
    beta = np.where(r <= 0.5, (2.0 * r) ** power, (2.0 - 2.0 * r) ** -power)
    return np.asarray(np.where(rng.random((n, d)) < 0.5, beta, -beta))
