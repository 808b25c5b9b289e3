"""Reference-vector guided selection (RVEA: Cheng, Jin, Olhofer, Sendhoff 2016), as array functions.

Objectives are divided among unit vectors by angle; in each part the member with the smallest
angle-penalised distance (APD) survives; the vectors are stretched with the population's ranges.
Notation: F (n, m) objectives, V (v, m) vectors, t in [0, 1] the weight of the angle.
"""

from __future__ import annotations

import numpy as np

from neuropareto.archive import Indices
from neuropareto.problems.fronts import simplex_lattice
from neuropareto.space import Array

_FLAT = 1e-6


def unit_vectors(n: int, m: int) -> Array:
    """At most max(n, m) lattice directions of unit length, (v, m), none exactly on a face."""
    return _unit(np.maximum(simplex_lattice(max(n, m), m), 1e-6))


def adapted(V0: Array, F: Array) -> Array:
    """The fixed vectors stretched by the ranges of F, v_i = v0_i * (max F - min F) / norm.

    RVEA Eq. 10. An objective without range keeps a sliver of its direction.
    """
    extent = np.ptp(F, axis=0)
    largest = extent.max()
    return _unit(V0 * np.maximum(extent / largest, _FLAT)) if largest > 0 else V0


def associated(F: Array, V: Array) -> tuple[Indices, Array]:
    """The vector with the smallest angle to each row of F, and that angle in radians; (n,), (n,).

    F is meant to be translated already: its origin is the ideal point.
    """
    cosine = np.clip(_unit(F) @ V.T, -1.0, 1.0)
    nearest = cosine.argmax(axis=1)
    return nearest, np.arccos(cosine[np.arange(len(F)), nearest])


def angle_penalised(F: Array, V: Array, t: float) -> tuple[Array, Indices]:
    """APD of each row and the vector it belongs to, (n,), (n,).

    APD = (1 + m t angle / gamma_i) ||f - min F||, gamma_i the smallest angle from vector i to
    another one. RVEA Eqs. 5 to 9.
    """
    translated = F - F.min(axis=0)
    part, angle = associated(translated, V)
    penalty = F.shape[1] * t * angle / _gaps(V)[part]
    return (1.0 + penalty) * np.linalg.norm(translated, axis=1), part


def active(F: Array, V: Array) -> Indices:
    """The vectors that have a member among the rows of F translated by their minimum, sorted."""
    return np.unique(associated(F - F.min(axis=0), V)[0])


def _gaps(V: Array) -> Array:
    """The angle from each vector to its nearest neighbour, (v,); never 0."""
    if len(V) < 2:
        return np.ones(len(V))
    cosine = np.clip(V @ V.T, -1.0, 1.0)
    np.fill_diagonal(cosine, -1.0)
    return np.asarray(np.maximum(np.arccos(cosine.max(axis=1)), 1e-12))


def _unit(V: Array) -> Array:
    return np.asarray(V / np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-300))
