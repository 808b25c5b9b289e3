"""Goals of a search: many scalarisations of the objectives, each a direction of the simplex.

Descents and jumps follow them to different parts of the front. With constraints, being feasible comes
before being good.
Notation: b goals, W (b, m) directions, F (b, m + c) or (n, m + c) objectives and then constraints,
which hold where they are <= 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import qmc

from neuropareto import pareto
from neuropareto.archive import Archive
from neuropareto.candidates import directions
from neuropareto.space import Array
from neuropareto.surrogate.contract import Posterior

# Worse than any feasible value.
_INFEASIBLE = 1e9


@dataclass(frozen=True, eq=False)
class Goals:
    """b scalarised goals: s_w(f) = max_j n_j / w_j + rho sum_j n_j, n = (f - ideal) / extent.

    A constraint k holds with ``margin`` (b, c) to spare, in its own unit ``scale`` (c,), where
    g_k / scale_k + margin_k <= 0; what does not hold costs more than any s_w.
    """

    W: Array
    ideal: Array
    extent: Array
    scale: Array
    margin: Array
    rho: float = 0.005

    @classmethod
    def of(cls, archive: Archive, b: int, *, rng: np.random.Generator) -> Goals:
        """One objective alone for the first m, then gaps of the front, then any direction.

        The ideal lies a tenth of the extent below the best values: without that no goal leads
        below the best value of an objective. The extent ends at the front's :func:`proper_nadir`.
        """
        front = archive.front if len(archive.front_indices) else archive.F
        low = front.min(axis=0)
        least = 1e-3 * (archive.F.max(axis=0) - low)
        extent = np.maximum(proper_nadir(front) - low, np.where(least > 0, least, 1.0))
        W = directions(archive, b, rng=rng)
        size = np.abs(archive.G).mean(axis=0)
        scale = np.where(size > 0, size, 1.0)
        return cls(W, low - 0.1 * extent, extent, scale, np.zeros((len(W), archive.c)))

    @classmethod
    def joined(cls, parts: Sequence[Goals]) -> Goals:
        """The goals of all parts, which share all but directions and margins, one after the other."""
        W = np.concatenate([goals.W for goals in parts])
        return replace(parts[0], W=W, margin=np.concatenate([goals.margin for goals in parts]))

    def part(self, rows: npt.NDArray[np.bool_]) -> Goals:
        """The goals of some rows."""
        return replace(self, W=self.W[rows], margin=self.margin[rows])

    def excess(self, F: Array) -> Array:
        """By how much each constraint of row i of F fails to hold with its margin, (b, c)."""
        G = F[:, self.W.shape[1] :]
        return np.asarray(np.maximum(G / self.scale + self.margin, 0.0))

    def scaled(self, F: Array) -> Array:
        """n for objectives F (..., m)."""
        return (F[..., : self.W.shape[1]] - self.ideal) / self.extent

    def values(self, F: Array) -> Array:
        """s_w of row i of F under goal i, (b,); beyond all such values where it is not feasible."""
        N, outside = self.scaled(F), self.excess(F).sum(axis=1)
        value = (N / self.W).max(axis=1) + self.rho * N.sum(axis=1)
        return _feasible_first(value, outside)

    def slopes(self, F: Array) -> Array:
        """d s_w / d f at row i of F under goal i, whether feasible or not, (b, m)."""
        N = self.scaled(F)
        S = np.full_like(N, self.rho)
        rows = np.arange(len(N))
        worst = (N / self.W).argmax(axis=1)
        S[rows, worst] += 1.0 / self.W[rows, worst]
        return S / self.extent

    def nearest(self, F: Array) -> npt.NDArray[np.int64]:
        """For each goal the row of F (n, m + c) that is best under it without a margin, (b,)."""
        N = self.scaled(F)
        outside = np.maximum(F[:, self.W.shape[1] :] / self.scale, 0.0).sum(axis=1)
        values = (N[None] / self.W[:, None]).max(axis=2) + self.rho * N.sum(axis=1)
        return np.asarray(_feasible_first(values, outside).argmin(axis=1))


def _feasible_first(value: Array, outside: Array) -> Array:
    """``value`` where nothing is ``outside``, else more than any value and in order of outside."""
    return np.asarray(np.where(outside > 0, _INFEASIBLE * (1.0 + outside), value))


def proper_nadir(F: Array, loss: float = 0.01, gain: float = 0.5) -> Array:
    """The worst values (m,) of a front (n, m) without its improper tails.

    A point is left out if another one is better by ``gain`` of the extent in some objective and
    worse by no more than ``loss`` of it in all; extents shrink with the points, until none is left
    out. Otherwise a tail that runs along an axis, (10, 0) behind (1, 0), sets the scale of all.
    """
    while True:
        low, high = F.min(axis=0), F.max(axis=0)
        extent = np.where(high > low, high - low, 1.0)
        N = (F - low) / extent
        behind = (N[:, None] - N[None]).astype(np.float64)
        improper = ((behind >= -loss).all(axis=2) & (behind >= gain).any(axis=2)).any(axis=1)
        if not improper.any():
            return np.asarray(high)
        F = F[~improper]


def reference_beyond(archive: Archive, mean: Array) -> Array:
    """A reference point behind the front as it may become, (m,).

    The worst values of the present front or of the predicted one, improper tails left out, but at
    most half a predicted extent beyond the present front, plus a tenth: a reference at the ends of
    the present front would never let it grow beyond them. Decision D-31.
    """
    front = archive.front if len(archive.front_indices) else archive.F
    within = np.vstack([front, np.minimum(mean, archive.F.max(axis=0))])
    ahead = within[pareto.nondominated(within)]
    worst = np.maximum(proper_nadir(front), proper_nadir(ahead))
    best = ahead.min(axis=0)
    worst = np.minimum(worst, front.max(axis=0) + 0.5 * (worst - best))
    extent = np.where(worst > best, worst - best, 1.0)
    return np.asarray(worst + 0.1 * extent)


def expected_gain(posterior: Posterior, archive: Archive, taken: Array, draws: int) -> Array:
    """Hypervolume that candidates may add to the front and to ``taken`` (k, m), on average, (n,).

    Over ``draws`` (a power of two) quasi-random normal quantiles of their m objectives, the same for
    all candidates, within the box of all that was ever evaluated: a front that has shrunk to a
    sliver must not hide what lies beside it.
    """
    n, m = posterior.mean.shape
    quantiles = ndtri(qmc.Sobol(m, rng=0).random(draws))
    F = posterior.mean + np.sqrt(posterior.epistemic) * quantiles[:, None]
    front = np.concatenate([archive.front, taken])
    gains = pareto.improvement(F.reshape(-1, m), front, archive.F.max(axis=0))
    return np.asarray(gains.reshape(draws, n).mean(axis=0))
