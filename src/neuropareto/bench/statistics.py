"""The statistics of comparisons, as the field prints them.

Notation: n runs, k algorithms, t tasks. Marks beside an algorithm say how it compares with ours by
the Wilcoxon rank-sum test at alpha = 0.05: "+" significantly better than ours, "-" significantly
worse, "=" neither. Paper: section "Experimental Configuration" (rank-sum) and "Static versus Learned
Acquisition" (paired signed-rank). Smaller values are better throughout; turn others round first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from neuropareto.space import Array

ALPHA = 0.05


@dataclass(frozen=True)
class Spread:
    """Median, mean, standard deviation, quartiles and standard error of n values."""

    n: int
    median: float
    mean: float
    std: float
    lower: float
    upper: float

    @classmethod
    def of(cls, values: Array) -> Spread:
        """The spread of values (n,); all NaN for none, a standard deviation of NaN for one."""
        n = len(values)
        if not n:
            nan = float("nan")
            return cls(0, nan, nan, nan, nan, nan)
        lower, median, upper = (float(q) for q in np.quantile(values, [0.25, 0.5, 0.75]))
        std = float(np.std(values, ddof=1)) if n > 1 else float("nan")
        return cls(n, median, float(np.mean(values)), std, lower, upper)

    @property
    def iqr(self) -> float:
        """The distance between the quartiles."""
        return self.upper - self.lower

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.std / float(np.sqrt(self.n)) if self.n else float("nan")


def rank_sum(a: Array, b: Array) -> float:
    """Two-sided p-value of the Wilcoxon rank-sum (Mann-Whitney) test for samples a and b.

    Exact for small samples without ties, else the normal approximation with corrections for ties
    and continuity. Equal constant samples give 1. Raises ValueError for an empty sample.
    """
    if not len(a) or not len(b):
        raise ValueError(f"A rank-sum test needs two samples, got {len(a)} and {len(b)} values.")
    if np.ptp(np.concatenate([a, b])) == 0:
        return 1.0
    return float(stats.mannwhitneyu(a, b, alternative="two-sided").pvalue)


def signed_rank(a: Array, b: Array) -> float:
    """Two-sided p-value of the Wilcoxon signed-rank test for paired samples a and b.

    Equal pairs are left out; 1 if all are equal. Raises ValueError unless the lengths agree.
    """
    if len(a) != len(b) or not len(a):
        raise ValueError(f"A signed-rank test needs pairs, got {len(a)} and {len(b)} values.")
    difference = np.asarray(a) - np.asarray(b)
    difference = difference[difference != 0]
    if not len(difference):
        return 1.0
    return float(stats.wilcoxon(difference).pvalue)


def mark(other: Array, ours: Array, alpha: float = ALPHA) -> str:
    """How ``other`` compares with ``ours``: "+" better, "-" worse, "=" no significant difference."""
    return verdict(rank_sum(other, ours), other, ours, alpha)


def verdict(p: float, other: Array, ours: Array, alpha: float = ALPHA) -> str:
    """The mark that belongs to a p-value, which may have been corrected."""
    if p >= alpha:
        return "="
    return "+" if a12(other, ours) > 0.5 else "-"


def least_p(n: int, m: int) -> float:
    """The smallest p-value that a rank-sum test of n against m runs can give.

    With fewer than four runs each it is above 0.05, so no mark but "=" can occur.
    """
    return rank_sum(np.arange(n, dtype=np.float64), np.arange(n, n + m, dtype=np.float64))


def holm(p: Array) -> Array:
    """Holm's step-down correction: adjusted p-values in the given order, (k,).

    adjusted_(i) = max over j <= i of min(1, (k - j + 1) p_(j)), p_(1) <= p_(2) <= ...
    """
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    factors = len(p) - np.arange(len(p))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * p[order]))
    return adjusted


def a12(a: Array, b: Array) -> float:
    """Vargha and Delaney's effect size: the chance that a run of a is better (smaller) than of b.

    A12 = (#(a_i < b_j) + #(a_i = b_j) / 2) / (n m). 0.5 means no difference; 0.56, 0.64 and 0.71 are
    called small, medium and large.
    """
    if not len(a) or not len(b):
        raise ValueError(f"An effect size needs two samples, got {len(a)} and {len(b)} values.")
    difference = np.asarray(a)[:, None] - np.asarray(b)[None, :]
    return float(np.mean((difference < 0) + 0.5 * (difference == 0)))


@dataclass(frozen=True)
class Friedman:
    """Mean ranks of k algorithms over t tasks, the test's p-value, and Nemenyi's distance.

    Two algorithms differ significantly if their mean ranks differ by more than ``critical``.
    """

    names: tuple[str, ...]
    ranks: Array
    tasks: int
    p: float
    critical: float

    def groups(self) -> list[tuple[int, int]]:
        """Maximal runs of algorithms, in order of rank, that do not differ: (first, last) places."""
        order = np.sort(self.ranks)
        found: list[tuple[int, int]] = []
        for first in range(len(order)):
            last = int(np.searchsorted(order, order[first] + self.critical, side="right")) - 1
            if last > first and (not found or last > found[-1][1]):
                found.append((first, last))
        return found


def friedman(values: Array, names: tuple[str, ...], alpha: float = ALPHA) -> Friedman:
    """Friedman's test on ``values`` (t, k): one row a task, one column an algorithm, small is good.

    Ties share their mean rank. Nemenyi's critical difference is q sqrt(k (k + 1) / (6 t)), with q the
    upper alpha point of the studentised range of k, infinite degrees of freedom, over sqrt(2).
    Raises ValueError for fewer than two algorithms or a missing value.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != len(names) or len(names) < 2 or not len(values):
        raise ValueError(
            f"Friedman's test needs one row a task and one column for each of at least two "
            f"algorithms, got shape {values.shape} and {len(names)} names."
        )
    if not np.isfinite(values).all():
        raise ValueError("Friedman's test needs a value of every algorithm on every task.")
    t, k = values.shape
    ranked = stats.rankdata(values, axis=1)
    means = ranked.mean(axis=0)
    ties = sum(
        float(np.sum(counts**3 - counts))
        for counts in (np.unique(row, return_counts=True)[1] for row in ranked)
    )
    correction = 1.0 - ties / (t * k * (k**2 - 1))
    p = 1.0
    if correction > 0:
        statistic = 12.0 * t / (k * (k + 1)) * np.sum((means - (k + 1) / 2) ** 2) / correction
        p = float(stats.chi2.sf(statistic, k - 1))
    q = float(stats.studentized_range.ppf(1 - alpha, k, np.inf)) / np.sqrt(2)
    return Friedman(names, means, t, p, float(q * np.sqrt(k * (k + 1) / (6 * t))))


def geometric_mean(values: Array) -> float:
    """exp of the mean logarithm of positive values; NaN for none."""
    if not len(values):
        return float("nan")
    return float(np.exp(np.mean(np.log(values))))
