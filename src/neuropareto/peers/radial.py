"""Radial selection: spread points over the directions of the objective space, fronts first.

The environmental and the reference selection of CSEA, after RSEA (C. He, Y. Tian, Y. Jin, X.
Zhang, L. Pan 2017). Objectives are projected onto a plane in which objective k pulls towards the
angle 2 pi k / m; a grid on that plane says which directions are still empty. Notation: F (n, m)
objectives, ranks (n,) from 1, k points to select.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.distance import cdist

from neuropareto.archive import Indices
from neuropareto.space import Array

# Keeps the sum of a row's normalised objectives, by which the projection divides, above zero.
_FLOOR = 1e-6


def projected(F: Array) -> Array:
    """Normalised rows on the radial plane, each coordinate stretched to [0, 1]; (n, 2).

    y = (sum_k f_k cos t_k, sum_k f_k sin t_k) / sum_k f_k with t_k = 2 pi k / m. A coordinate
    without extent, such as the second one of two objectives, is 0.
    """
    angle = 2.0 * np.pi * np.arange(F.shape[1]) / F.shape[1]
    # Rounded: for two objectives sin(pi) is a residue which stretching would turn into noise.
    pull = np.round(np.stack([np.cos(angle), np.sin(angle)], axis=1), 12)
    Y = F @ pull / F.sum(axis=1, keepdims=True)
    extent = np.ptp(Y, axis=0)
    return np.asarray(
        np.where(extent > 0, (Y - Y.min(axis=0)) / np.where(extent > 0, extent, 1), 0)
    )


def radial_selection(F: Array, ranks: Indices, k: int) -> Indices:
    """k rows: all fronts that fit, then the last one spread over the radial plane; (min(k, n),).

    Chosen one by one among the rows in the least occupied cells: the row with the smallest
    0.1 m c - d, c its normalised objective sum, d its distance to the nearest chosen row.
    """
    if len(F) <= k:
        return np.arange(len(F), dtype=np.int64)
    extent = np.ptp(F, axis=0)
    Z = (F - F.min(axis=0)) / np.where(extent > 0, extent, 1.0) + _FLOOR
    last = np.sort(ranks)[k - 1]
    rows = np.flatnonzero(ranks <= last)
    chosen = ranks[rows] < last
    Z = Z[rows]
    if not chosen.all() and chosen.sum() < k:
        along = Z.sum(axis=1) / math.sqrt(Z.shape[1])
        away = np.sqrt(np.maximum((Z**2).sum(axis=1) - along**2, 0.0))
        chosen[np.argmin(np.where(chosen, np.inf, away))] = True
    return np.asarray(rows[_filled(Z, chosen, k)])


def _filled(Z: Array, chosen: Array, k: int) -> Indices:
    """The chosen rows and the next ones of the last front until there are k."""
    Y, side = projected(Z), math.ceil(math.sqrt(k))
    cell = np.minimum((Y * side).astype(np.int64), side - 1) @ np.array([side, 1])
    convergence = Z.sum(axis=1) / Z.sum(axis=1).max()
    crowd = np.bincount(cell[chosen], minlength=side * side)
    nearest = cdist(Y, Y[chosen]).min(axis=1)
    for _ in range(k - int(chosen.sum())):
        occupied = np.where(chosen, np.inf, crowd[cell])
        fitness = 0.1 * Z.shape[1] * convergence - nearest
        new = int(np.argmin(np.where(occupied == occupied.min(), fitness, np.inf)))
        chosen[new] = True
        crowd[cell[new]] += 1
        nearest = np.minimum(nearest, cdist(Y, Y[[new]])[:, 0])
    return np.flatnonzero(chosen)
