"""Exact radial basis interpolation of several outputs at once, as CLMEA uses it.

phi_i(x) = exp(-(c |x - x_i| / s)^2) with c = sqrt(ln 2), so that phi is one half at distance s, and
a constant term. The n + 1 weights an output have n conditions; the smallest solution is taken. The
spread is s = d_max / (d n)^(1/d) with d_max the largest distance between two of the n points.
Notation: ``U`` (n, d) points, ``F`` (n, m) values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lstsq
from scipy.spatial.distance import cdist

from neuropareto.space import Array


def bumps(U: Array, centres: Array, spread: float) -> Array:
    """Exponents -(|u - c|^2 / s^2) ln 2 of the Gaussian bumps, (len(U), len(centres))."""
    return np.asarray(cdist(U, centres, "sqeuclidean") * (-np.log(2.0) / spread**2))


def diameter(U: Array) -> float:
    """The largest distance between two rows; 1 if all rows are the same."""
    return float(cdist(U, U).max(initial=0.0)) or 1.0


@dataclass(frozen=True, eq=False)
class Interpolant:
    """A fitted interpolant: ``weights`` (n + 1, m), the last row being the constants."""

    centres: Array
    weights: Array
    spread: float

    def __call__(self, U: Array) -> Array:
        """Predicted values at ``U`` (k, d), shape (k, m)."""
        phi = np.exp(bumps(U, self.centres, self.spread))
        return np.asarray(phi @ self.weights[:-1] + self.weights[-1])


def interpolant(U: Array, F: Array) -> Interpolant:
    """The interpolant of F (n, m) at U (n, d), n >= 1; repeated points are averaged."""
    n, d = U.shape
    spread = diameter(U) / (d * n) ** (1.0 / d)
    phi = np.exp(bumps(U, U, spread))
    design = np.concatenate([phi, np.ones((n, 1))], axis=1)
    weights = lstsq(design, F, lapack_driver="gelsy", check_finite=False)[0]
    return Interpolant(U, np.asarray(weights), spread)
