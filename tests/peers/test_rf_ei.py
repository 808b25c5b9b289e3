from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from neuropareto.archive import Archive
from neuropareto.peers.rf_ei import RFEI, Forest, LocalSearch, costs, expected_improvement
from neuropareto.randomness import Streams
from neuropareto.testing.algorithm import check_algorithm, conflicting, example_archive


def small() -> RFEI:
    return RFEI(random=200, search=LocalSearch(starts=2, steps=3))


def test_the_algorithm_exam() -> None:
    check_algorithm(small())


@settings(deadline=None, max_examples=30)
@given(st.floats(-3, 3), st.floats(0.05, 3), st.floats(-3, 3))
def test_expected_improvement_is_an_expectation(mean: float, sigma: float, best: float) -> None:
    closed = expected_improvement(np.array([mean]), np.array([sigma**2]), best)[0]
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    sampled = np.maximum(best - mean - sigma * nodes, 0.0) @ weights / np.sqrt(2 * np.pi)
    assert closed == pytest.approx(sampled, abs=0.02 * sigma)
    assert closed >= max(best - mean, 0.0) - 1e-12


def test_moments_are_those_of_the_mixture_of_leaves() -> None:
    """Oracle: the costs in each leaf gathered by hand from the bootstrap-free trees."""
    rng = np.random.default_rng(0)
    U, s = rng.random((60, 3)), rng.random(60)
    fitted = Forest(trees=5).fit(U, s, rng=rng)
    V = rng.random((7, 3))
    mean, variance = fitted.moments(V)
    assert np.allclose(mean, fitted.forest.predict(V))
    drawn = fitted.forest.estimators_samples_
    second = np.zeros(7)
    for tree, rows in zip(fitted.forest.estimators_, drawn, strict=True):
        leaf = tree.apply(U[rows].astype(np.float32))
        for i, at in enumerate(tree.apply(V.astype(np.float32))):
            second[i] += np.mean(s[rows][leaf == at] ** 2) / len(drawn)
    assert np.allclose(variance, second - mean**2, atol=1e-9)


def test_neighbours_change_one_variable_each() -> None:
    U = np.random.default_rng(1).random((3, 5))
    around = LocalSearch(neighbours=4).around(U, rng=np.random.default_rng(2))
    assert around.shape == (3, 20, 5) and (around >= 0).all() and (around <= 1).all()
    changed = around != U[:, None]
    assert (changed.sum(axis=2) <= 1).all()
    assert (changed.sum(axis=1) >= 3).all(), "every variable gets its neighbours"


def test_local_search_never_ends_below_its_start() -> None:
    rng = np.random.default_rng(3)
    U = rng.random((80, 4))
    fitted = Forest().fit(U, ((U - 0.3) ** 2).sum(axis=1), rng=rng)
    search = LocalSearch(starts=5, steps=8)
    ends = search.climbed(U, fitted, 0.02, rng=rng)
    starts = np.sort(expected_improvement(*fitted.moments(U), 0.02))[::-1][:5]
    reached = expected_improvement(*fitted.moments(ends), 0.02)
    assert (reached >= starts).all() and (reached > starts).any()


def test_costs_fold_the_objectives_and_put_infeasible_points_last() -> None:
    U = np.eye(3)
    F = np.array([[0.0, 10.0], [5.0, 0.0], [10.0, 5.0]])
    archive = Archive.of(U, F, np.array([[-1.0], [0.0], [2.0]]), failed=np.full((1, 3), 0.5))
    points, s = costs(archive, np.array([0.25, 0.75]), 0.05)
    # f = (0, 1), (0.5, 0), (1, 0.5): 0.75 * 1.05, 0.125 * 1.05, max(0.25, 0.375) + 0.05 * 0.625
    assert s[:2] == pytest.approx([0.7875, 0.13125])
    assert s[2] == pytest.approx(1.0 + 0.7875) and s[3] == s[2]
    assert np.array_equal(points[3], np.full(3, 0.5))


def test_costs_do_not_depend_on_units() -> None:
    archive, w = example_archive(20, 4, 2), np.array([0.4, 0.6])
    scaled = Archive.of(archive.U, archive.F * np.array([1e6, 1e-4]) + np.array([-7.0, 3.0]))
    assert np.allclose(costs(archive, w, 0.05)[1], costs(scaled, w, 0.05)[1])


def test_interleaving_decides_how_many_points_are_uniform() -> None:
    archive = example_archive(30, 6, 2)
    none, pending = Streams(0, 1), np.empty((0, 6))
    always = RFEI(random=50, interleave=1.0).propose(
        archive, 12, pending=pending, memory=None, rng=none
    )
    never = RFEI(random=50, interleave=0.0, search=LocalSearch(starts=2, steps=2)).propose(
        archive, 3, pending=pending, memory=None, rng=none
    )
    assert always.notes["by_lot"] == 12 and never.notes["by_lot"] == 0


def test_its_points_are_far_better_than_random_ones() -> None:
    """What it chooses ranks, among random points of the problem, in the best quarter by rank."""
    archive = example_archive(80, 6, 2)
    spec = RFEI(random=1000, interleave=0.0, search=LocalSearch(starts=5, steps=10))
    chosen = spec.propose(archive, 12, pending=np.empty((0, 6)), memory=None, rng=Streams(0, 1)).U
    random = conflicting(np.random.default_rng(4).random((200, 6)), 2)
    values = conflicting(chosen, 2)
    dominated = (random[None] <= values[:, None]).all(axis=2).mean(axis=1)
    among_random = (random[None] <= random[:, None]).all(axis=2).mean(axis=1)
    assert np.mean(dominated) < 0.5 * np.mean(among_random)


def test_the_oracle_of_the_density() -> None:
    assert expected_improvement(np.zeros(1), np.ones(1), 0.0)[0] == pytest.approx(norm.pdf(0.0))
