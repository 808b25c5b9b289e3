"""Measurement noise on any problem, repeatable and independent of the order of evaluation.

Notation: n points, m objectives; Y = F + std(U) * E with E standard normal, (n, m). The k-th
evaluation of a point x by one noisy problem takes E from a hash of (seed, x, k): evaluating x again
gives another value, the values of other points are untouched by it, and a new noisy problem of
the same seed repeats the whole series. Constraints are left exact.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtri

from neuropareto.problem import Outcome, Problem
from neuropareto.problems.structure import declare, find
from neuropareto.space import Array

Deviation: TypeAlias = "float | Sequence[float] | Array | Callable[[Array], Array]"


class Noisy:
    """The objective of :func:`noisy`: X (n, d) -> Y (n, m), or (Y, G) with constraints."""

    def __init__(self, problem: Problem, std: Deviation, seed: int) -> None:
        self._problem = problem
        self._std = std
        self._seed = seed
        self._seen: Counter[bytes] = Counter()
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process starts its own count."""
        return Noisy, (self._problem, self._std, self._seed)

    def __call__(self, X: Array) -> Outcome:
        """Evaluate n points (n, d) with noise on the objectives."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        outcome = self._problem(X)
        F, *constraints = outcome if isinstance(outcome, tuple) else (outcome,)
        Y = F + self._deviation(X) * self._draws(X)
        return (Y, constraints[0]) if constraints else Y

    def _deviation(self, X: Array) -> Array:
        if not callable(self._std):
            return np.asarray(self._std, dtype=np.float64)
        shape = (len(X), self._problem.n_objectives)
        std = np.asarray(self._std(self._problem.space.to_unit(X)), dtype=np.float64)
        if std.shape != shape or not np.all(std >= 0.0):
            raise ValueError(
                f"The noise function must return standard deviations >= 0 of shape {shape}, one "
                f"per point and objective, got shape {std.shape}; correct the function."
            )
        return std

    def _draws(self, X: Array) -> Array:
        """Standard normal numbers (n, m), a function of (seed, x, how often x came before)."""
        m = self._problem.n_objectives
        bits = b"".join(self._hash(row.tobytes(), 8 * m) for row in X)
        whole = np.frombuffer(bits, dtype="<u8").reshape(len(X), m)
        # 53 bits, centred in their cells: never exactly 0 or 1, so the normal is finite.
        return np.asarray(ndtri(((whole >> 11) + 0.5) * 2.0**-53), dtype=np.float64)

    def _hash(self, point: bytes, length: int) -> bytes:
        with self._lock:
            earlier = self._seen[point]
            self._seen[point] += 1
        key = f"{self._seed} {earlier} ".encode()
        return hashlib.shake_256(key + point).digest(length)


def noisy(problem: Problem, std: Deviation, seed: int) -> Problem:
    """``problem`` with normal noise on its objectives.

    ``std`` is one number, one per objective, or a function from points U (n, d) of the unit cube
    to standard deviations (n, m) for noise that depends on the input. Front and reference point
    are those without noise. Raises ValueError for a negative or misshapen std or seed.
    """
    if seed < 0:
        raise ValueError(f"A seed must be an integer >= 0, got {seed}.")
    if not callable(std):
        given = np.asarray(std, dtype=np.float64)
        fits = given.shape in ((), (problem.n_objectives,))
        if not fits or not np.all(np.isfinite(given)) or not np.all(given >= 0.0):
            raise ValueError(
                f"The noise std must be one number >= 0, {problem.n_objectives} of them, or a "
                f"function of the points, got {std!r}."
            )
    objective = Noisy(problem, std, seed)
    wrapped = replace(problem, name=f"{problem.name}-noisy-{seed}", objective=objective)
    structure = find(problem)
    return wrapped if structure is None else declare(wrapped, structure)
