from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from neuropareto.archive import Archive
from neuropareto.candidates import Pool, RankConditioned, Several, SurrogateDescent, directions
from neuropareto.classifier import RankBelief
from neuropareto.space import Array
from neuropareto.surrogate.contract import Posterior
from neuropareto.testing.algorithm import conflicting, example_archive


def sure(labels: npt.NDArray[Any], k: int = 5) -> RankBelief:
    probability = np.eye(k)[labels.astype(int) - 1]
    return RankBelief(probability, np.zeros(len(labels)), np.ones(len(labels), dtype=np.int64))


class Truth:
    """A surrogate that knows the test function exactly."""

    warm: dict[str, Array] = {}  # noqa: RUF012
    notes: dict[str, object] = {}  # noqa: RUF012

    def __init__(self, m: int) -> None:
        self.m = m

    def posterior(self, U: Array) -> Posterior:
        F = conflicting(U, self.m)
        return Posterior(F, np.zeros_like(F), np.zeros_like(F))

    def samples(self, U: Array, n: int, *, rng: np.random.Generator) -> Array:
        return np.repeat(conflicting(U, self.m)[None], n, axis=0)

    def mean_gradient(self, U: Array) -> Array:
        targets = np.linspace(0.2, 0.8, self.m)
        return np.asarray(2 * (U[:, None, :] - targets[:, None]) / U.shape[1])


@pytest.mark.parametrize(("n", "d", "m"), [(40, 6, 2), (25, 30, 3), (4, 1, 2)])
def test_pools_have_the_asked_size_and_stay_in_the_cube(n: int, d: int, m: int) -> None:
    archive = example_archive(n, d, m)
    generator = Several((RankConditioned(size=203), SurrogateDescent(starts=12, steps=6)))
    belief = sure(archive.labels(5))
    pool = generator.generate(archive, belief, Truth(m), rng=np.random.default_rng(0))
    assert len(pool) == 203 + 36 and pool.U.shape == (len(pool), d)
    assert pool.U.min() >= 0 and pool.U.max() <= 1
    again = generator.generate(archive, belief, Truth(m), rng=np.random.default_rng(0))
    assert np.array_equal(pool.U, again.U)


def test_small_archives_breed_uniformly() -> None:
    archive = example_archive(3, 4, 2)
    belief = sure(np.ones(3))
    pool = RankConditioned(size=10).generate(
        archive, belief, Truth(2), rng=np.random.default_rng(0)
    )
    assert set(pool.operator) == {"uniform"}
    none = SurrogateDescent().generate(archive, belief, Truth(2), rng=np.random.default_rng(0))
    assert len(none) == 0


def test_operators_follow_the_predicted_stratum_of_the_parent() -> None:
    """Mutations refine points that the classifier believes to be on top, and only these."""
    d = 40
    top, low = np.full((10, d), 0.3), np.full((10, d), 0.9)
    archive = Archive.of(np.concatenate([top, low]), np.random.default_rng(0).random((20, 2)))
    belief = sure(np.r_[np.full(10, 1), np.full(10, 5)])
    pool = RankConditioned(size=400).generate(
        archive, belief, Truth(2), rng=np.random.default_rng(1)
    )
    mutated = pool.U[pool.operator == "mutation"]
    assert (np.abs(mutated - 0.3) < 1e-12).mean() > 0.8
    long = pool.U[pool.operator == "long"]
    kept, moved = np.isclose(long, 0.9), np.isclose(long, 0.9 + 0.9 * (0.3 - 0.9))
    assert (kept | moved).mean() > 0.95, "long moves go from the low points towards the top ones"
    assert 0.6 < moved.mean() < 0.8


def test_no_operator_favours_a_place_of_the_cube() -> None:
    """With parents spread evenly, offspring are even: no excess at centre, faces or corners."""
    rng = np.random.default_rng(5)
    U = rng.random((4000, 3))
    archive = Archive.of(U, rng.random((4000, 2)))
    pool = RankConditioned(size=20_000).generate(
        archive, sure(rng.integers(1, 6, 4000).astype(float)), Truth(2), rng=rng
    )
    for operator in np.unique(pool.operator):
        share = np.histogram(pool.U[pool.operator == operator], bins=10, range=(0, 1))[0]
        share = share / share.sum()
        assert share.max() < 0.14 and share.min() > 0.04, (operator, share)
    assert ((pool.U == 0) | (pool.U == 1)).mean() < 0.01


@pytest.mark.parametrize("m", [2, 3, 5])
def test_descent_finds_points_ahead_of_the_archive(m: int) -> None:
    archive = example_archive(60, 20, m)
    pool = SurrogateDescent().generate(
        archive, sure(archive.labels(5)), Truth(m), rng=np.random.default_rng(0)
    )
    F = conflicting(pool.U, m)
    assert F.min(axis=0).max() < archive.F.min(axis=0).min()
    for j in range(m):  # the corner directions lead to the best of each objective alone
        assert F[:, j].min() < 0.25 * archive.F[:, j].min()


def test_directions_look_into_gaps_of_the_front() -> None:
    t = np.r_[np.linspace(0.0, 0.3, 10), np.linspace(1.2, np.pi / 2, 10)]
    F = np.stack([1 - np.cos(t), 1 - np.sin(t)], axis=1)
    archive = Archive.of(np.random.default_rng(0).random((20, 2)), F)
    W = directions(archive, 20, rng=np.random.default_rng(0))
    assert W.shape == (20, 2) and np.allclose(W.sum(axis=1), 1)
    gap_first = W[2]
    assert 0.25 < gap_first[0] < 0.75, "the widest gap is in the middle"


def test_copies_and_known_points_leave_the_pool() -> None:
    U = np.array([[0.1, 0.2], [0.3, 0.3], [0.1, 0.2], [0.9, 0.9], [0.5, 0.5]])
    pool = Pool(U, np.array(["a", "b", "c", "d", "e"]))
    left = pool.apart_from(np.array([[0.9, 0.9], [0.0, 0.0]]))
    assert left.U.tolist() == U[[0, 1, 4]].tolist() and left.operator.tolist() == ["a", "b", "e"]
    assert pool.apart_from(U) is pool, "a small space that is used up"
