"""Screening: from thousands of cheap candidates to the few that the full surrogate looks at.

Paper: section "Two stage surrogate evaluation", Algorithm 1 lines 6-8, and the appendix on why
screening helps. First the classifier keeps ``n_screen`` candidates, then a cheap proxy with an
uncertainty penalty keeps ``k`` of these (decision D-11). Swappable: the proxy (any Surrogate), or
the whole stage by :class:`KeepAll`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from neuropareto.archive import Archive, Indices
from neuropareto.candidates import Pool
from neuropareto.classifier import RankBelief
from neuropareto.goals import expected_gain
from neuropareto.space import Array
from neuropareto.surrogate import FourierProxy
from neuropareto.surrogate.contract import Fitted, Posterior, Surrogate


class Screening(Protocol):
    """A choice of candidates worth the full surrogate."""

    def shortlist(
        self,
        pool: Pool,
        belief: RankBelief,
        archive: Archive,
        model: Fitted,
        *,
        rng: np.random.Generator,
    ) -> Indices:
        """Rows of ``pool``, best first. ``belief`` is the classifier's about the pool."""
        ...


@dataclass(frozen=True)
class KeepAll:
    """No screening: the full surrogate looks at every candidate (the paper's ablation)."""

    def shortlist(
        self,
        pool: Pool,
        belief: RankBelief,
        archive: Archive,
        model: Fitted,
        *,
        rng: np.random.Generator,
    ) -> Indices:
        """Every row."""
        return np.arange(len(pool))


@dataclass(frozen=True)
class TwoStage:
    """The classifier keeps ``n_screen``, the penalised proxy keeps ``k``.

    Proxy score of a candidate: minus the margin by which mean + penalty * std would have to improve
    to leave the region that the archive dominates (see :func:`margin`), minus the probability that a
    constraint does not hold (certainly infeasible counts as one extent of the front). ``proxy=None``
    lets the round's own surrogate stand in for the proxy, where that is cheap enough. Behind these
    come ``hopeful`` more, by expected gain: what a choice by the mean has no eye for.
    """

    n_screen: int = 1000
    k: int = 150
    penalty: float = 0.5
    hopeful: int = 0
    proxy: Surrogate | None = field(default_factory=FourierProxy)

    def shortlist(
        self,
        pool: Pool,
        belief: RankBelief,
        archive: Archive,
        model: Fitted,
        *,
        rng: np.random.Generator,
    ) -> Indices:
        """At most ``k`` rows, best first, and then at most ``hopeful`` others."""
        kept = np.argsort(-promise(belief), kind="stable")[: self.n_screen]
        proxy = model
        if self.proxy is not None:
            proxy = self.proxy.fit(archive.U, archive.outputs, warm=None, rng=rng)
        believed = proxy.posterior(pool.U[kept])
        m = archive.m
        believed, feasible = objectives(believed, m), feasibility(believed, m)
        pessimistic = believed.mean + self.penalty * np.sqrt(believed.epistemic)
        order = np.argsort(margin(pessimistic, archive) + 1.0 - feasible, kind="stable")
        first = order[: self.k]
        if self.hopeful:
            hope = feasible * expected_gain(believed, archive, np.empty((0, m)), draws=8)
            hope[first] = -1.0
            more = np.argsort(-hope, kind="stable")[: min(self.hopeful, len(order) - len(first))]
            first = np.append(first, more)
        return np.asarray(kept[first])


def promise(belief: RankBelief) -> Array:
    """How good the classifier believes each point to be: minus its expected rank class, (n,)."""
    classes = np.arange(1, belief.probability.shape[1] + 1)
    return np.asarray(-(belief.probability @ classes))


def objectives(believed: Posterior, m: int) -> Posterior:
    """What is believed about the first m outputs."""
    return Posterior(believed.mean[:, :m], believed.epistemic[:, :m], believed.aleatoric[:, :m])


def feasibility(believed: Posterior, m: int) -> Array:
    """The probability that all constraints, the columns after the m objectives, hold; (n,)."""
    spread = np.sqrt(np.maximum(believed.variance[:, m:], 1e-300))
    return np.asarray(ndtr(-believed.mean[:, m:] / spread).prod(axis=1))


def margin(F: Array, archive: Archive) -> Array:
    """By how much each row would have to improve in every objective to be non-dominated, (n,).

    max over the front's points p of min over objectives j of (f_j - p_j) / extent_j: positive for
    dominated rows, negative for rows ahead of the front, continuous in between.
    """
    front = archive.front if len(archive.front_indices) else archive.F
    extent = np.ptp(front, axis=0)
    extent = np.where(extent > 0, extent, np.ptp(archive.F, axis=0))
    extent = np.where(extent > 0, extent, 1.0)
    worst = np.full(len(F), -np.inf)
    for start in range(0, len(front), 64):  # blocks bound the memory, not the number of candidates
        block = front[start : start + 64]
        gaps = ((F[:, None] - block[None]) / extent).min(axis=2)
        worst = np.maximum(worst, gaps.max(axis=1))
    return worst
