"""Variation operators as array functions on the unit cube: SBX, polynomial mutation, DE.

Notation: A, B, C (n, d) parents in [0, 1]^d; every function returns new arrays of that shape
inside the cube. They know nothing of problems or populations. The paper leaves its operators open
(decision D-9); these are the field's usual ones.
"""

from __future__ import annotations

import numpy as np

from neuropareto.space import Array


def sbx(
    A: Array, B: Array, *, eta: float, p_pair: float, p_variable: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Bounded simulated binary crossover (Deb and Agrawal 1995) of n pairs of parents.

    Each pair is crossed with probability ``p_pair``, each of its variables with ``p_variable``;
    the spread follows beta^-(eta + 1) cut off so that both children stay in the cube, and the two
    children exchange a variable with probability one half.
    """
    n, d = A.shape
    crossed = (rng.random((n, d)) < p_variable) & (rng.random((n, 1)) < p_pair)
    crossed &= np.abs(A - B) > 1e-14
    low, high = np.minimum(A, B), np.maximum(A, B)
    gap = np.where(crossed, high - low, 1.0)
    r = rng.random((n, d))

    def spread(room: Array) -> Array:
        beta = 1.0 + 2.0 * room / gap
        alpha = 2.0 - beta ** -(eta + 1.0)
        inside = r <= 1.0 / alpha
        return np.where(inside, r * alpha, 1.0 / (2.0 - r * alpha)) ** (1.0 / (eta + 1.0))

    middle = 0.5 * (low + high)
    below = middle - 0.5 * spread(low) * gap
    above = middle + 0.5 * spread(1.0 - high) * gap
    swap = rng.random((n, d)) < 0.5
    first = np.where(crossed, np.where(swap, above, below), A)
    second = np.where(crossed, np.where(swap, below, above), B)
    return np.clip(first, 0.0, 1.0), np.clip(second, 0.0, 1.0)


def polynomial_mutation(
    U: Array, *, eta: float, p_variable: float | Array, rng: np.random.Generator
) -> Array:
    """Polynomial mutation (Deb and Goyal 1996): each variable moves with probability p_variable.

    ``p_variable`` is one probability or an array that broadcasts to U, such as (n, 1).
    """
    chosen = rng.random(U.shape) < p_variable
    r = rng.random(U.shape)
    down = (2.0 * r + (1.0 - 2.0 * r) * (1.0 - U) ** (eta + 1.0)).clip(0.0) ** (1.0 / (eta + 1.0))
    up = (2.0 * (1.0 - r) + (2.0 * r - 1.0) * U ** (eta + 1.0)).clip(0.0) ** (1.0 / (eta + 1.0))
    step = np.where(r <= 0.5, down - 1.0, 1.0 - up)
    return np.clip(np.where(chosen, U + step, U), 0.0, 1.0)


def differential(
    A: Array, B: Array, C: Array, *, weight: float, p_variable: float, rng: np.random.Generator
) -> Array:
    """Differential move A + weight (B - C), each variable with probability ``p_variable``.

    A coordinate that leaves the cube is put halfway between its parent and the face it crossed, so
    that nothing piles up on the faces.
    """
    moved = A + weight * (B - C)
    moved = np.where(moved < 0.0, 0.5 * A, np.where(moved > 1.0, 0.5 * (A + 1.0), moved))
    return np.where(rng.random(A.shape) < p_variable, moved, A)
