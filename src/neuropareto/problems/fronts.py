"""True Pareto fronts as point sets, in the conventions of PlatEMO (about 10,000 points each).

Notation: p points, m objectives. Points are spread evenly over the weight simplex or over the
first objective, not over arc length, because that is what published IGD values were computed
with. A :class:`Front` is a picklable function without arguments whose points are made once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import brentq

from neuropareto.space import Array

POINTS = 10_000


@dataclass(frozen=True)
class Front:
    """``make(*arguments)`` as a function without arguments, made once and read-only; (p, m)."""

    make: Callable[..., Array]
    arguments: tuple[Any, ...] = ()

    def __call__(self) -> Array:
        """The points of the front, (p, m)."""
        return _made(self.make, self.arguments)


@lru_cache(maxsize=128)
def _made(make: Callable[..., Array], arguments: tuple[Any, ...]) -> Array:
    points = np.ascontiguousarray(make(*arguments), dtype=np.float64)
    points.setflags(write=False)
    return points


def simplex_lattice(n: int, m: int) -> Array:
    """At most n weights >= 0 with sum one, all multiples of 1/h for the largest h; (p, m).

    With h < m all points but the middle lie on the edges, so a second, inner layer is added as in
    PlatEMO: a coarser lattice shrunk by one half towards the centre.
    """
    h = _fineness(n, m)
    outer = _lattice(h, m)
    if h >= m:
        return outer
    inner = _fineness(n - len(outer), m)
    if inner == 0:
        return outer
    return np.vstack([outer, _lattice(inner, m) / 2 + 1 / (2 * m)])


def _fineness(n: int, m: int) -> int:
    h = 0
    while math.comb(h + m, m - 1) <= n:
        h += 1
    return h


def _lattice(h: int, m: int) -> Array:
    # Stars and bars: the m - 1 positions of the bars are a combination of h + m - 1 places.
    bars = np.array(list(combinations(range(h + m - 1), m - 1)), dtype=np.float64)
    ends = np.full((len(bars), 1), float(h + m - 1))
    return np.diff(np.hstack([-np.ones_like(ends), bars, ends])) / h - 1 / h


def grid(n: int, axes: int) -> Array:
    """A full grid of at least n points on [0, 1]^axes; (p, axes)."""
    side = math.ceil(round(n ** (1 / axes), 9))
    mesh = np.meshgrid(*[np.linspace(0.0, 1.0, side)] * axes, indexing="ij")
    return np.stack(mesh, axis=-1).reshape(-1, axes)


def improving_intervals(
    value: Callable[[Array], Array], slope: Callable[[float], float]
) -> list[tuple[float, float]]:
    """The intervals of [0, 1] on which a smooth ``value`` is below all values to its left.

    They carry the disconnected fronts of DTLZ7 and ZDT3. Each ends at a local minimum (a root of
    ``slope``) and each but the first starts where the value of the previous end is met again.
    """
    x = np.linspace(0.0, 1.0, 20_001)
    y = value(x)
    record = np.r_[True, y[1:] < np.minimum.accumulate(y)[:-1]]
    edges = np.flatnonzero(np.diff(np.r_[0, record.astype(np.int8), 0]))
    intervals: list[tuple[float, float]] = []
    for first, stop in zip(edges[::2], edges[1::2], strict=True):
        last = stop - 1
        end = 1.0 if last == len(x) - 1 else brentq(slope, x[last - 1], x[last + 1], xtol=1e-15)
        start = 0.0
        if intervals:
            level = float(value(np.array(intervals[-1][1])))
            start = brentq(
                lambda t, level=level: float(value(np.array(t))) - level,
                x[first - 1],
                x[first],
                xtol=1e-15,
            )
        intervals.append((start, end))
    return intervals


def spread(intervals: list[tuple[float, float]], t: Array) -> Array:
    """t in [0, 1] laid out over the union of intervals in order, at constant density."""
    widths = np.array([end - start for start, end in intervals])
    knots = np.r_[0.0, np.cumsum(widths)] * (1.0 / widths.sum())
    knots[-1] = 1.0
    # A point that falls on a knot belongs to the interval that ends there: the next one starts
    # with a point that is only as good as that end, hence dominated by it.
    which = np.clip(np.searchsorted(knots, t, side="left") - 1, 0, len(intervals) - 1)
    starts = np.array([start for start, _ in intervals])[which]
    ends = np.array([end for _, end in intervals])[which]
    laid: Array = np.minimum(starts + (t - knots[which]) * widths.sum(), ends)
    return laid
