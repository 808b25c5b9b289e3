"""Exploration: part of a batch moves a little aside, so that its points teach more than one would.

Candidates that the surrogate's mean has led somewhere end in the same place: a batch of them differs
along the front but hardly across it, and teaches little about the way down. Half of it therefore moves
to the best of many neighbours under a posterior draw (Thompson sampling), or, where the surrogate's
structure explains nearly everything, to the farthest that might be as good: where the corner of a curve
lies only points on both sides of it show. As far as the surrogate is unsure, and hardly at all where it
is certain. Ours, decisions D-65 and D-84; the paper's batch stays where it is.
Notation: U (q, d) the batch, V (n, d) one point and its neighbours, m objectives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from neuropareto import pareto
from neuropareto.archive import Archive
from neuropareto.assessment import assessed
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
            V = np.concatenate([U[i : i + 1], neighbours(U[i], self.n, self.widths, rng=rng)])
            draw = _drawn(model, V, rng)
            if draw is None:
                continue
            others = np.concatenate([archive.front, pending, np.delete(mean, i, axis=0)])
            gain = pareto.improvement(draw[:, :m], others, reference)
            moved[i] = V[np.argmax(gain * (draw[:, m:] <= 0.0).all(axis=1))]
        return moved


@dataclass(frozen=True)
class Scatter:
    """A ``share`` of the batch moves to the farthest of ``n`` neighbours that might be as good.

    A neighbour might be as good if, were it better than its mean by ``hope`` standard deviations in
    every objective, it would gain as much hypervolume as the point itself by its mean, over the front,
    the pending points and the rest of the batch. Constraints must hold by their means.
    """

    share: float = 0.5
    n: int = 64
    widths: tuple[float, float] = (0.003, 0.1)
    hope: float = 1.0

    def moved(
        self,
        U: Array,
        archive: Archive,
        model: Fitted,
        *,
        pending: Array,
        rng: np.random.Generator,
    ) -> Array:
        """The batch with the rows of :func:`spread` moved; a row that nothing near equals stays."""
        m = archive.m
        mean = model.posterior(U).mean[:, :m]
        reference = reference_beyond(archive, mean)
        moved = U.copy()
        for i in spread(len(U), self.share, rng.random()):
            V = neighbours(U[i], self.n, self.widths, rng=rng)
            believed = model.posterior(V)
            hoped = (believed.mean - self.hope * np.sqrt(believed.epistemic))[:, :m]
            held = np.isfinite(hoped).all(axis=1) & (believed.mean[:, m:] <= 0.0).all(axis=1)
            V, hoped = V[held], hoped[held]
            others = np.concatenate([archive.front, pending, np.delete(mean, i, axis=0)])
            gains = pareto.improvement(np.concatenate([mean[i : i + 1], hoped]), others, reference)
            good = (gains[1:] >= gains[0]) & (gains[1:] > 0.0)
            far = np.where(good, np.linalg.norm(V - U[i], axis=1), 0.0)
            if far.any():
                moved[i] = V[np.argmax(far)]
        return moved


@dataclass(frozen=True)
class ByStructure:
    """``apart`` where the surrogate's structure explains nearly everything, ``near`` elsewhere.

    Nearly everything: of no output is a share of the variance above ``limit`` left over. There a point
    that differs in all variables teaches about each of them; elsewhere it is far from everything. With
    constraints, learnt from failures or given, batches stay near: the best points are at an edge.
    """

    apart: Exploration = Scatter()
    near: Exploration = Neighbours()
    limit: float = 5e-3

    def moved(
        self,
        U: Array,
        archive: Archive,
        model: Fitted,
        *,
        pending: Array,
        rng: np.random.Generator,
    ) -> Array:
        """The batch moved by one of the two."""
        inside = None if archive.c else assessed(model)
        known = inside is not None and inside.unexplained.max() < self.limit
        rule = self.apart if known else self.near
        return rule.moved(U, archive, model, pending=pending, rng=rng)


def neighbours(
    u: Array, n: int, widths: tuple[float, float], *, rng: np.random.Generator
) -> Array:
    """n neighbours (n, d) of one point (d,), by normal steps of one size, log-uniform in ``widths``.

    Variables at an end of their range stay there: an active bound is usually right, and a model is
    least to be trusted about what lies just off it. Others are reflected at the ends, so that
    no face of the cube is reached by stepping beyond it.
    """
    low, high = np.log(widths)
    width = np.exp(rng.uniform(low, high, size=(n, 1)))
    V = u + width * rng.standard_normal((n, len(u)))
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
