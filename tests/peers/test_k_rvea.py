from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from neuropareto import Optimizer
from neuropareto.peers import rvea
from neuropareto.peers.dace import Kriging, _basis, _Data, correlation, means
from neuropareto.peers.infill import best_of_each, clusters, front_extent, novel
from neuropareto.peers.k_rvea import KRVEA, Candidates, diverse, managed, one_a_cluster
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.testing.algorithm import check_algorithm, conflicting, example_archive

SMALL = KRVEA(vectors=10, generations=3, kriging=Kriging(iterations=5))


def test_the_algorithm_exam() -> None:
    check_algorithm(SMALL)


def test_it_proposes_any_number_of_points_and_never_a_known_one() -> None:
    archive = example_archive(30, 4, 2)
    for q in (1, 7, 50):
        U = SMALL.propose(archive, q, pending=np.empty((0, 4)), memory=None, rng=Streams(0, 1)).U
        assert U.shape == (q, 4)
        assert len(novel(U, archive.U)) == q


# -- angle-penalised distance and vectors


def test_apd_is_the_hand_computed_one() -> None:
    """Three vectors at 0, 45 and 90 degrees: gamma is 45 degrees for each."""
    V = np.array([[1.0, 0.0], [math.sqrt(0.5), math.sqrt(0.5)], [0.0, 1.0]])
    F = np.array([[5.0, 7.0], [8.0, 7.0], [7.0, 9.0], [5.0, 9.0]])  # ideal point (5, 7)
    apd, part = rvea.angle_penalised(F, V, 0.25)
    # Translated: (0, 0), (3, 0), (2, 2), (0, 2): angles 0 to the vectors 0, 1 and 2.
    assert part[1:].tolist() == [0, 1, 2]
    assert np.allclose(apd, [0.0, 3.0, math.sqrt(8.0), 2.0])
    tilted = np.array([[5.0, 7.0], [5.0 + math.cos(0.1), 7.0 + math.sin(0.1)]])
    apd, part = rvea.angle_penalised(tilted, V, 0.25)
    assert part[1] == 0
    assert apd[1] == pytest.approx(1.0 + 2 * 0.25 * 0.1 / (math.pi / 4))


def test_the_best_of_each_part_survives() -> None:
    value, part = np.array([3.0, 1.0, 2.0, 5.0]), np.array([4, 4, 0, 7])
    assert best_of_each(value, part).tolist() == [2, 1, 3]


def test_vectors_adapt_to_the_ranges_and_keep_unit_length() -> None:
    V0 = rvea.unit_vectors(11, 2)
    F = np.array([[0.0, 30.0], [1.0, 0.0], [0.5, 10.0]])
    V = rvea.adapted(V0, F)
    expected = V0 * np.array([1.0, 30.0])
    assert np.allclose(V, expected / np.linalg.norm(expected, axis=1)[:, None])
    assert np.array_equal(rvea.adapted(V0, np.ones((3, 2))), V0)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(2, 5), st.floats(1e-3, 1e3))
def test_adapted_vectors_follow_the_units(seed: int, m: int, unit: float) -> None:
    rng = np.random.default_rng(seed)
    F, V0 = rng.random((30, m)), rvea.unit_vectors(20, m)
    scaled = F * np.r_[unit, np.ones(m - 1)]
    extents = np.ptp(F, axis=0), np.ptp(scaled, axis=0)
    ratio = rvea.adapted(V0, scaled) / extents[1] / (rvea.adapted(V0, F) / extents[0])
    assert np.allclose(ratio, ratio[:, :1])  # both are V0, up to the length of each row


def test_active_vectors_are_those_with_members() -> None:
    V = np.array([[1.0, 0.0], [math.sqrt(0.5), math.sqrt(0.5)], [0.0, 1.0]])
    F = np.array([[2.0, 3.0], [3.0, 3.0], [2.1, 4.0]]) + 100.0
    assert set(rvea.active(F[1:], V)) == {0, 2}


# -- the choice of points


def test_the_switch_rule() -> None:
    assert diverse(2, 50, 0.05)  # 2 <= 2.5
    assert not diverse(3, 50, 0.05)
    assert diverse(-20, 50, 0.05)


def test_one_best_candidate_a_cluster_of_vectors() -> None:
    V = rvea.unit_vectors(50, 2)
    part = np.array([0, 1, 2, 47, 48, 49])  # two tight bundles of directions
    score = np.array([3.0, 1.0, 2.0, 6.0, 5.0, 4.0])
    found = one_a_cluster(
        Candidates(np.zeros((6, 2)), part, score), V, 2, np.random.default_rng(0)
    )
    assert sorted(found.tolist()) == [1, 5]


def test_convergence_takes_the_least_apd_and_uncertainty_the_largest_variance() -> None:
    archive = example_archive(30, 3, 2)
    models = [Kriging(iterations=5).fit(archive.U, y, theta=None) for y in archive.F.T]
    V, U = rvea.unit_vectors(10, 2), np.random.default_rng(1).random((40, 3))
    near = Candidates.of(U, models, V, True)
    assert np.array_equal(near.score, rvea.angle_penalised(means(models, U), V, 1.0)[0])
    unsure = Candidates.of(U, models, V, False)
    variance = np.mean([m.variance(U) for m in models], axis=0)
    assert np.array_equal(unsure.best_first[0], U[variance.argmax()])


# -- the training archive


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.integers(10, 40), st.integers(1, 8), st.integers(5, 30))
def test_new_points_stay_in_a_training_set_of_bounded_size(
    seed: int, n: int, n_new: int, most: int
) -> None:
    rng = np.random.default_rng(seed)
    U = rng.random((n + n_new, 3))
    F, old, new = conflicting(U, 2), np.arange(n), np.arange(n, n + n_new)
    rows = managed(U, F, old, new, rvea.unit_vectors(20, 2), most, rng=rng)
    assert len(rows) == len(np.unique(rows)) <= most
    assert np.isin(new[-most:], rows).all()
    if n + n_new <= most:
        assert len(rows) == n + n_new


def test_the_old_points_kept_represent_the_objective_space() -> None:
    """Three tight groups of old points and three places: one of each group stays."""
    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 3.0], [1.5, 1.5], [3.0, 0.0]], [20, 3, 2], axis=0)
    F = np.concatenate([centres + 0.01 * rng.random((25, 2)), [[2.0, 2.0]]])
    U = rng.random((26, 4))
    V = rvea.unit_vectors(3, 2)
    rows = managed(U, F, np.arange(25), np.array([25]), V, 4, rng=rng)
    group = np.repeat([0, 1, 2, 3], [20, 3, 2, 1])[rows]
    assert group.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("vectors", "always"), [(40, False), (3, True)])
def test_directions_are_clustered_where_many_are_populated(vectors: int, always: bool) -> None:
    """A far point is a cluster of its own among objectives, but not among directions."""
    angle = np.linspace(0.0, np.pi / 2, 40)
    F = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    F = np.concatenate([F, [[50.0, 50.0]], [[0.0, 1.0]]])
    U, V = np.random.default_rng(0).random((42, 2)), rvea.unit_vectors(vectors, 2)
    stays = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rows = managed(U, F, np.arange(41), np.array([41]), V, 5, rng=rng)
        assert len(rows) == 5 and 41 in rows
        stays.append(40 in rows)
    assert all(stays) == always


def test_copies_leave_the_training_set() -> None:
    U = np.repeat(np.random.default_rng(0).random((5, 3)), 2, axis=0)
    rows = managed(
        U, conflicting(U, 2), np.arange(8), np.arange(8, 10), rvea.unit_vectors(5, 2), 100,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert len(rows) == 5 and 9 in rows


def test_the_training_set_stays_bounded_during_a_run() -> None:
    o = Optimizer([(0, 1)] * 3, 2, KRVEA(10, 10, 2, training=12), seed=0, n_initial=12)
    for _ in range(3):
        batch = o.ask(5)
        o.tell(batch, conflicting(batch.X, 2))
    o.ask(5)
    assert o.memory is not None
    rows = o.memory["training"]
    assert len(rows) <= 12 and np.isin(np.arange(len(o.archive) - 5, len(o.archive)), rows).all()


def test_clusters_are_never_more_than_the_distinct_rows() -> None:
    labels = clusters(np.repeat(np.eye(2), 5, axis=0), 7, np.random.default_rng(0))
    assert len(np.unique(labels)) == 2


def test_the_front_gives_the_scale_unless_it_is_one_point() -> None:
    F = np.array([[0.0, 2.0], [1.0, 1.0], [9.0, 9.0]])
    assert front_extent(F).tolist() == [1.0, 1.0]
    assert front_extent(np.array([[0.0, 0.0], [3.0, 4.0]])).tolist() == [3.0, 4.0]
    assert front_extent(np.ones((3, 2))).tolist() == [1.0, 1.0]


# -- Kriging


def test_kriging_with_a_constant_trend_is_scikit_learns_at_the_same_theta() -> None:
    rng = np.random.default_rng(0)
    U, T = rng.random((40, 3)), rng.random((20, 3))
    y = np.sin(4 * U[:, 0]) + U[:, 1] ** 2
    model = Kriging(nugget=1e-8).fit(U, y, theta=None)
    X, Z = (U - U.mean(0)) / U.std(0), (T - U.mean(0)) / U.std(0)
    theirs = GaussianProcessRegressor(
        RBF(1 / np.sqrt(2 * model.theta)), alpha=1e-8, optimizer=None
    )
    # Ordinary Kriging is simple Kriging of the residual from the generalised mean.
    C = correlation(X, X, model.theta) + 1e-8 * np.eye(40)
    weight = np.linalg.solve(C, np.ones(40))
    centre = weight @ y / weight.sum()
    expected = centre + theirs.fit(X, y - centre).predict(Z)
    assert np.allclose(model.mean(T), expected, atol=1e-6)
    assert np.allclose(model.mean(U), y, atol=1e-3)


@pytest.mark.parametrize("degree", [0, 1])
def test_the_variance_is_that_of_universal_kriging(degree: int) -> None:
    """Against the textbook formula with explicit inverses, at a fixed theta."""
    rng = np.random.default_rng(degree)
    U, T = rng.random((30, 3)), rng.random((10, 3))
    y = np.sin(4 * U[:, 0]) + U[:, 1] ** 2
    model = Kriging(degree=degree, nugget=1e-3, iterations=0).fit(U, y, theta=np.full(3, 0.3))
    X, Z = (U - U.mean(0)) / U.std(0), (T - U.mean(0)) / U.std(0)
    B, inverse = (
        _basis(X, degree),
        np.linalg.inv(correlation(X, X, model.theta) + 1e-3 * np.eye(30)),
    )
    r, information = correlation(Z, X, model.theta), np.linalg.inv(B.T @ inverse @ B)
    beta = information @ B.T @ inverse @ y
    process = (y - B @ beta) @ inverse @ (y - B @ beta) / 30
    gap = r @ inverse @ B - _basis(Z, degree)
    mse = 1 - ((r @ inverse) * r).sum(1) + ((gap @ information) * gap).sum(1)
    assert np.allclose(model.variance(T), process * mse)
    assert np.allclose(model.mean(T), _basis(Z, degree) @ beta + r @ inverse @ (y - B @ beta))


@pytest.mark.parametrize("degree", [0, 1])
def test_the_likelihoods_gradient_is_its_derivative(degree: int) -> None:
    rng = np.random.default_rng(degree)
    X, y = rng.normal(size=(15, 4)), rng.normal(size=15)
    data = _Data(X, y, _basis(X, degree), 1e-3, -2.0, 3.0)
    start = rng.normal(size=4) - 1.0

    def value(p: Array) -> float:
        return data.loss(p)[0]

    def slope(p: Array) -> Array:
        return data.loss(p)[1]

    assert check_grad(value, slope, start) < 1e-4


def test_a_linear_trend_extrapolates_a_plane() -> None:
    rng = np.random.default_rng(0)
    U, T = 0.5 * rng.random((20, 2)), 0.5 + 0.5 * rng.random((10, 2))
    weights = np.array([2.0, -3.0])
    model = Kriging(degree=1).fit(U, U @ weights, theta=np.full(2, 50.0))
    assert np.allclose(model.mean(T), T @ weights, atol=1e-6)
