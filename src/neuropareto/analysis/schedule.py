"""The inducing-point schedule M_ind ~ T^(1/3) and the rates behind it, as arithmetic.

Appendix "Inducing-point--iteration trade-off" and "Tighter Error Bounds". Notation: T rounds, q
points a round, N = q t data, alpha the decay of the kernel's spectrum, beta the smoothness of f,
d variables. All constants are 1 and logarithms are left out, as in the paper's O~ notation: these
functions show how the terms grow, not how large they are.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from neuropareto.space import Array


def inducing_points(rounds: int, scale: float = 1.0) -> int:
    """M_ind = scale * T^(1/3), rounded up. Raises ValueError unless rounds >= 1 and scale > 0."""
    if rounds < 1 or scale <= 0:
        raise ValueError(f"Expected rounds >= 1 and scale > 0, got {rounds} and {scale}.")
    # The cube root of a cube must not be rounded up to the next whole number.
    return ceil(scale * float(np.cbrt(rounds)) - 1e-9)


def sparse_error(inducing: Array, data: Array, *, alpha: float, beta: float = 0.5) -> Array:
    """M_ind^-alpha + N^-beta, the sparse part of the surrogate's error.

    Paper: Eqs. sparse_var_rates, tighter_sparse (alpha = 1, beta = 1/2).
    """
    M, N = np.asarray(inducing, dtype=np.float64), np.asarray(data, dtype=np.float64)
    return np.asarray(M**-alpha + N**-beta)


def accumulated_error(rounds: int, *, alpha: float, q: int = 1, scale: float = 1.0) -> float:
    """sum_t (M_ind^-alpha + (q t)^-1/2) with the schedule's M_ind.

    It grows as T^(1 - alpha/3) + T^(1/2). The paper prints T^((1 - alpha)/3) for the first term:
    its sum over t = 1..T carries the factor T^(1/3) where T terms are added.
    """
    M = max(scale * float(np.cbrt(rounds)), 1.0)
    t = np.arange(1.0, rounds + 1)
    return float(sparse_error(np.full(rounds, M), q * t, alpha=alpha).sum())


def refined_exponent(beta: float, d: int) -> float:
    """min(1/2, 2 beta / (2 beta + d)): the squared error falls as N to minus this.

    Paper: Eqs. covering_bound (the second argument), overall_refined.
    """
    if beta <= 0 or d < 1:
        raise ValueError(f"Expected beta > 0 and d >= 1, got {beta} and {d}.")
    return min(0.5, 2 * beta / (2 * beta + d))
