from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto import pareto
from neuropareto.peers.radial import projected, radial_selection


def test_the_projection_by_hand() -> None:
    corners = projected(np.eye(3) + 1e-6)
    np.testing.assert_allclose(corners, [[1.0, 0.5], [0.0, 1.0], [0.0, 0.0]], atol=1e-5)
    line = projected(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.75, 0.25]]))
    np.testing.assert_allclose(line, [[1.0, 0.0], [0.5, 0.0], [0.0, 0.0], [0.75, 0.0]])


def test_earlier_fronts_are_kept_whole_and_the_middle_of_the_last_comes_first() -> None:
    x = np.linspace(0.0, 1.0, 11)
    last = np.stack([x, 1.0 - x], axis=1)
    F = np.concatenate([[[-0.5, 1.5], [1.5, -0.5], [-0.2, -0.2]], last])
    ranks = np.r_[1, 1, 1, np.full(11, 2)].astype(np.int64)
    assert radial_selection(F, ranks, 4).tolist() == [0, 1, 2, 8]


def test_few_of_many_are_spread_over_all_directions() -> None:
    """Ninety points crowd in one corner of the front; the selection still reaches both ends."""
    x = np.r_[np.linspace(0.0, 0.05, 90), np.linspace(0.1, 1.0, 10)]
    F = np.stack([x, 1.0 - x], axis=1)
    chosen = radial_selection(F, pareto.ranks(F), 6)
    assert len(chosen) == 6
    assert F[chosen, 0].min() < 0.06 and F[chosen, 0].max() > 0.95
    assert (F[chosen, 0] > 0.08).sum() >= 4
    assert np.diff(np.sort(F[chosen, 0])).min() > 0.05


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 40),
    m=st.integers(1, 5),
    k=st.integers(1, 45),
    levels=st.integers(1, 30),
    seed=st.integers(0, 9999),
)
def test_selection_keeps_better_fronts_and_knows_no_units(
    n: int, m: int, k: int, levels: int, seed: int
) -> None:
    F = np.random.default_rng(seed).integers(0, levels, (n, m)) / levels
    ranks = pareto.ranks(F)
    chosen = radial_selection(F, ranks, k)
    assert len(set(chosen.tolist())) == len(chosen) == min(n, k)
    rest = np.setdiff1d(np.arange(n), chosen)
    if len(rest):
        assert ranks[chosen].max() <= ranks[rest].min()
    scale = 2.0 ** np.arange(20, 20 + m)  # powers of two change no bit of a normalised value
    np.testing.assert_array_equal(radial_selection(F * scale, ranks, k), chosen)
