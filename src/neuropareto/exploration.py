"""Exploration: part of a batch moves a little aside, to where a draw of the surrogate is best.

Candidates that the surrogate's mean has led somewhere end in the same place: a batch of them differs
along the front but hardly across it, and teaches little about the way down. Half of it therefore moves
to the best of many neighbours under a posterior draw (Thompson sampling): as far as the surrogate is
unsure, and not at all where it is certain. Ours, decision D-65; the paper's batch stays where it is.
Notation: U (q, d) the batch, V (n, d) one point and its neighbours, m objectives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from neuropareto import pareto
from neuropareto.archive import Archive
from neuropareto.goals import reference_beyond
from neuropareto.space import Array
from neuropareto.surrogate import NumericalFailure
from neuropareto.surrogate.contract import Fitted


class Exploration(Protocol):
    """A last change of the chosen batch."""

    def moved(
        self,
        U: Array,
        archive: Archive,
        model: Fitted,
        *,
        pending: Array,
        rng: np.random.Generator,
    ) -> Array:
        """The batch ``U`` (q, d), some rows moved; ``pending`` (p, m) as in the selection."""
        ...


@dataclass(frozen=True)
class Unmoved:
    """No exploration."""

    def moved(
        self,
        U: Array,
        archive: Archive,
        model: Fitted,
        *,
        pending: Array,
        rng: np.random.Generator,
    ) -> Array:
        """The batch as it is."""
        return U


@dataclass(frozen=True)
class Neighbours:
    """A ``share`` of the batch moves to the best of ``n`` neighbours, each by a draw of its own.

    Best is the largest hypervolume gain over the front, the pending points and the rest of the batch,
    if the drawn constraints hold; the point itself competes. A neighbour differs in all variables
    by normal steps of one size, log-uniform in ``widths`` (of the unit cube).
    """

    share: float = 0.5
    n: int = 64
    widths: tuple[float, float] = (0.003, 0.1)

    def moved(
        self,
        U: Array,
        archive: Archive,
        model: Fitted,
        *,
        pending: Array,
        rng: np.random.Generator,
    ) -> Array:
        """The batch with the rows of :func:`spread` moved; a row without a usable draw stays."""
        m = archive.m
        mean = model.posterior(U).mean[:, :m]
        reference = reference_beyond(archive, mean)
        moved = U.copy()
        for i in spread(len(U), self.share, rng.random()):
            V = np.concatenate([U[i : i + 1], self.around(U[i], rng=rng)])
            draw = _drawn(model, V, rng)
            if draw is None:
                continue
            others = np.concatenate([archive.front, pending, np.delete(mean, i, axis=0)])
            gain = pareto.improvement(draw[:, :m], others, reference)
            moved[i] = V[np.argmax(gain * (draw[:, m:] <= 0.0).all(axis=1))]
        return moved

    def around(self, u: Array, *, rng: np.random.Generator) -> Array:
        """n neighbours (n, d) of one point (d,).

        Variables at an end of their range stay there: an active bound is usually right, and a model is
        least to be trusted about what lies just off it. Others are reflected at the ends, so that
        no face of the cube is reached by stepping beyond it.
        """
        low, high = np.log(self.widths)
        width = np.exp(rng.uniform(low, high, size=(self.n, 1)))
        V = u + width * rng.standard_normal((self.n, len(u)))
        inside = (u > 0.0) & (u < 1.0)
        return np.asarray(np.where(inside, 1.0 - np.abs(1.0 - np.mod(V, 2.0)), u))


def _drawn(model: Fitted, V: Array, rng: np.random.Generator) -> Array | None:
    """One joint draw at V (n, d), all outputs; None if there is none that is finite."""
    try:
        draw = model.samples(V, 1, rng=rng)[0]
    except NumericalFailure:
        return None
    return draw if np.isfinite(draw).all() else None


def spread(q: int, share: float, phase: float) -> npt.NDArray[np.int64]:
    """Rows of a batch of q, a ``share`` of them, evenly; ``phase`` in [0, 1) says which.

    On average exactly the share, also where q is 1.
    """
    steps = np.floor(np.arange(q + 1) * share + phase)
    return np.flatnonzero(np.diff(steps) > 0)
