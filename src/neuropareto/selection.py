"""Selection: the surrogate's hypervolume estimate, the composite score, a batch of q.

Paper: Algorithm 1 line 11: the score blends the classifier's information gain u, the surrogate's
hypervolume estimate s, and both outputs of the acquisition network. Weights and batch rule are
not given; ours are decision D-12. Notation: n shortlisted candidates, m objectives, q chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from neuropareto import pareto
from neuropareto.acquisition.contract import Signals, Utility
from neuropareto.archive import Archive, Indices
from neuropareto.classifier import RankBelief
from neuropareto.goals import expected_gain, reference_beyond
from neuropareto.screening import feasibility, margin, objectives
from neuropareto.space import Array
from neuropareto.surrogate.contract import Posterior


class Estimate(Protocol):
    """The surrogate's own estimate of each candidate's hypervolume gain."""

    def gain(self, posterior: Posterior, archive: Archive, *, rng: np.random.Generator) -> Array:
        """Expected gain over the present front, (n,); see :func:`reference_beyond`."""
        ...


@dataclass(frozen=True)
class MeanGain:
    """The gain if the surrogate's mean were the truth."""

    def gain(self, posterior: Posterior, archive: Archive, *, rng: np.random.Generator) -> Array:
        """HVI of the mean."""
        reference = reference_beyond(archive, posterior.mean)
        return pareto.improvement(posterior.mean, archive.front, reference)


@dataclass(frozen=True)
class ExpectedGain:
    """The expected gain under the epistemic uncertainty, over ``samples`` antithetic draws.

    The same standard normal draws serve all candidates, so that differences between candidates
    are not drowned in the noise of the draws.
    """

    samples: int = 16

    def gain(self, posterior: Posterior, archive: Archive, *, rng: np.random.Generator) -> Array:
        """E[HVI] with independent objectives."""
        n, m = posterior.mean.shape
        half = rng.standard_normal((max(1, self.samples // 2), 1, m))
        draws = np.concatenate([half, -half])
        F = posterior.mean + np.sqrt(posterior.epistemic) * draws
        reference = reference_beyond(archive, posterior.mean)
        gains = pareto.improvement(F.reshape(-1, m), archive.front, reference)
        return np.asarray(gains.reshape(len(draws), n).mean(axis=0))


class Selection(Protocol):
    """A choice of q candidates."""

    def choose(
        self,
        signals: Signals,
        utility: Utility,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        feasibility: Array,
    ) -> Indices:
        """Rows of q different candidates.

        ``pending`` (p, m) are the surrogate's means at points under evaluation, ``feasibility``
        (n,) the probability that a candidate meets the constraints.
        """
        ...


@dataclass(frozen=True)
class Composite:
    """A weighted sum of four signals, each over its largest magnitude in the shortlist, greedily for q.

    score = w_s s + w_hv s_HV + w_div s_div + w_u u, times the probability of feasibility. After
    each choice the chosen mean joins the front (pending means are there from the beginning), s is
    recomputed, and the other terms shrink in the same proportion, so that the members of a batch
    do not repeat each other.
    """

    estimate: float = 1.0
    hypervolume: float = 0.5
    diversity: float = 0.1
    information: float = 0.1

    def choose(
        self,
        signals: Signals,
        utility: Utility,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        feasibility: Array,
    ) -> Indices:
        """The greedy choice; candidates without any gain are ordered by their margin to the front."""
        reference = reference_beyond(archive, signals.mean)
        side = (
            self.hypervolume * scaled(utility.hypervolume)
            + self.diversity * scaled(utility.diversity)
            + self.information * scaled(signals.information)
        )
        alone = pareto.improvement(signals.mean, archive.front, reference)
        near = 1e-3 * scaled(-margin(signals.mean, archive))
        front = np.concatenate([archive.front, pending])
        chosen: list[int] = []
        free = np.ones(len(signals), dtype=np.bool_)
        for _ in range(min(q, len(signals))):
            left = pareto.improvement(signals.mean, front, reference)
            share = np.where(alone > 0, left / np.where(alone > 0, alone, 1.0), 1.0)
            own = self.estimate * scaled(signals.estimate)
            score = feasibility * ((own + side) * np.clip(share, 0.0, 1.0) + near)
            best = int(np.argmax(np.where(free, score, -np.inf)))
            chosen.append(best)
            free[best] = False
            front = np.concatenate([front, signals.mean[best : best + 1]])
        return np.array(chosen, dtype=np.int64)


@dataclass(frozen=True)
class Daring:
    """The choice of ``inner``, but a ``share`` of it by the expected gain instead.

    A choice that follows the mean never learns that the mean is wrong where it promises nothing. A
    daring candidate has the largest gain over the front, the pending points and the rest of the batch,
    averaged over ``draws`` (a power of two) normal quantiles of its objectives: where the surrogate is
    sure that is the gain of its mean, and where it is not, it counts what may be there. The inner
    choice sees the ``first`` candidates only, those kept for their means. While the search gets on,
    nobody dares: see :func:`stalled`. Decision D-70.
    """

    inner: Selection = Composite()
    first: int = 250
    share: float = 0.1
    patience: float = 0.01
    draws: int = 32

    def choose(
        self,
        signals: Signals,
        utility: Utility,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        feasibility: Array,
    ) -> Indices:
        """The inner choice with its last rows replaced; which rounds do it where q is small, too."""
        k = max(q, self.first)
        known, worth = signals.first(k), Utility(utility.hypervolume[:k], utility.diversity[:k])
        rows = self.inner.choose(
            known, worth, archive, q, pending=pending, feasibility=feasibility[:k]
        )
        if not stalled(archive, self.patience):
            return rows
        n = len(archive) + len(pending)
        daring = int((n + len(rows)) * self.share + 1e-9) - int(n * self.share + 1e-9)
        rows = rows[: len(rows) - daring]
        free = np.ones(len(signals), dtype=np.bool_)
        free[rows] = False
        believed = Posterior(signals.mean, signals.epistemic, signals.aleatoric)
        for _ in range(daring):
            taken = np.concatenate([pending, signals.mean[rows]])
            gain = feasibility * expected_gain(believed, archive, taken, self.draws)
            best = int(np.argmax(np.where(free, gain, -1.0)))
            rows, free[best] = np.append(rows, best), False
        return rows


@dataclass(frozen=True)
class Planned:
    """Of a whole batch of ``plan`` points that ``inner`` would choose, the q whose turn it is.

    The members of a batch differ, because each counts what the others gain. Points proposed one by one
    do not: each is the greediest, and where a model is wrong in one place the search never leaves it.
    So a small batch is a part of a larger one, planned anew each time: every plan / q th member, in
    turn, such that ``plan`` evaluations in a row take one from each place of the plan. Points
    under evaluation are members already. With q of at least ``plan`` nothing changes. Decision D-90.
    """

    inner: Selection = Daring()
    plan: int = 10

    def choose(
        self,
        signals: Signals,
        utility: Utility,
        archive: Archive,
        q: int,
        *,
        pending: Array,
        feasibility: Array,
    ) -> Indices:
        """q rows of the plan; all of it where it is no longer."""
        rows = self.inner.choose(
            signals,
            utility,
            archive,
            max(q, self.plan - len(pending)),
            pending=pending,
            feasibility=feasibility,
        )
        if len(rows) <= q:
            return rows
        return rows[turns(len(archive) + len(archive.failed) + len(pending), q, len(rows))]


def turns(n: int, q: int, size: int) -> Indices:
    """The q of ``size`` places whose turn it is after n evaluations, as far apart as can be."""
    steps = (np.arange(size + 1) * q + n % size) // size
    return np.flatnonzero(np.diff(steps) > 0)


def stalled(archive: Archive, least: float, last: int = 20) -> bool:
    """Whether the ``last`` evaluations brought less than a share ``least`` of the hypervolume.

    In the box of all that was evaluated, so that a front which has shrunk to a sliver does not count
    its own small steps as progress.
    """
    feasible = archive.F[archive.violation == 0]
    worst = archive.F.max(axis=0)
    now = pareto.hypervolume(feasible, worst)
    then = pareto.hypervolume(archive.F[:-last][archive.violation[:-last] == 0], worst)
    return bool(now - then <= least * now)


def split(posterior: Posterior, n: int, m: int) -> tuple[Posterior, Array, Array]:
    """Take a posterior of shortlist and pending points, objectives and constraints, apart.

    Its first n rows are the shortlist, its first m columns the objectives. Returns the objectives
    of the shortlist, the probability (n,) that all its constraints hold (1 if there are none), and
    the mean objectives of the pending points.
    """
    whole = objectives(posterior, m)
    short = Posterior(whole.mean[:n], whole.epistemic[:n], whole.aleatoric[:n])
    return short, feasibility(posterior, m)[:n], whole.mean[n:]


def gathered(
    posterior: Posterior,
    belief: RankBelief,
    short: Indices,
    estimate: Array,
    window: tuple[float, float],
) -> Signals:
    """Everything that is known about the shortlist before it is evaluated.

    ``belief`` is about the whole pool, ``short`` are the rows of it that the others speak about.
    """
    return Signals(
        mean=posterior.mean,
        epistemic=posterior.epistemic,
        aleatoric=posterior.aleatoric,
        probability=belief.probability[short],
        information=belief.epistemic[short],
        estimate=estimate,
        window_mean=window[0],
        window_std=window[1],
    )


def scaled(values: Array) -> Array:
    """``values`` over their largest magnitude, within [-1, 1]; all 0 if they are 0."""
    largest = np.abs(values).max(initial=0.0)
    return values / largest if largest > 0 else np.zeros(len(values))
