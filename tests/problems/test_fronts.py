"""Point sets: lattices, grids, disconnected intervals, the cache."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto.problems.fronts import Front, grid, improving_intervals, simplex_lattice, spread
from neuropareto.space import Array


@settings(max_examples=30, deadline=None)
@given(n=st.integers(20, 3000), m=st.integers(2, 8))
def test_lattice_weights_are_distinct_and_sum_to_one(n: int, m: int) -> None:
    W = simplex_lattice(n, m)
    assert W.shape[1] == m and len(W) <= n
    np.testing.assert_allclose(W.sum(axis=1), 1.0)
    assert W.min() >= -1e-12
    assert len(np.unique(np.round(W, 9), axis=0)) == len(W)


def test_lattice_sizes_are_those_of_the_field() -> None:
    assert len(simplex_lattice(10_000, 2)) == 10_000
    assert len(simplex_lattice(10_000, 3)) == math.comb(141, 2)
    # 50 weights: 50, 45 and, with an inner layer, 50 for 2, 3 and 5 objectives.
    assert [len(simplex_lattice(50, m)) for m in (2, 3, 5)] == [50, 45, 50]
    assert [len(simplex_lattice(100, m)) for m in (2, 3, 5)] == [100, 91, 85]


def test_grid_fills_the_cube() -> None:
    G = grid(10_000, 2)
    assert G.shape == (10_000, 2) and G.min() == 0 and G.max() == 1
    assert grid(7, 1).shape == (7, 1)


def falling_waves(x: Array) -> Array:
    return -x - 0.2 * np.sin(6 * np.pi * x)


def test_improving_intervals_hold_exactly_the_records() -> None:
    intervals = improving_intervals(
        falling_waves, lambda x: -1.0 - 1.2 * math.pi * math.cos(6 * math.pi * x)
    )
    x = np.linspace(0, 1, 5_000)
    y = falling_waves(x)
    record = np.r_[True, y[1:] < np.minimum.accumulate(y)[:-1]]
    inside = np.any([(start <= x) & (end >= x) for start, end in intervals], axis=0)
    assert (record != inside).sum() <= 2 * len(intervals)
    for (_, end), (start, _) in pairwise(intervals):
        assert falling_waves(np.array(start)) == pytest.approx(falling_waves(np.array(end)))


def test_spread_is_even_over_the_union() -> None:
    intervals = [(0.0, 0.2), (0.5, 0.8)]
    x = spread(intervals, np.linspace(0, 1, 501))
    steps = np.diff(x)
    assert np.sort(steps)[-1] == pytest.approx(0.3 + 0.001, abs=2e-3)
    assert np.sort(steps)[:-1] == pytest.approx(0.001, abs=1e-9)
    assert x[0] == 0.0 and x[-1] == pytest.approx(0.8)


def line(n: int) -> Array:
    t = np.linspace(0, 1, n)
    return np.column_stack([t, 1 - t])


def test_fronts_are_made_once_and_read_only() -> None:
    F = Front(line, (5,))()
    assert F is Front(line, (5,))() and not F.flags.writeable
    assert F.shape == (5, 2)
