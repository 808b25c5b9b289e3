from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from neuropareto import pareto
from neuropareto.archive import Archive
from neuropareto.peers.cdm_psl import CDMPSL, Switch, augmented, stage_volume
from neuropareto.peers.lcb import Bounds, entropy_weights, fitted
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.testing.algorithm import check_algorithm, conflicting, example_archive

QUICK = CDMPSL(
    epochs=40, free=40, guided=20, network_epochs=2, network_pairs=64, gp_iterations=5, steps=8
)


def test_the_algorithm_exam() -> None:
    check_algorithm(QUICK)


def test_the_published_settings() -> None:
    spec = CDMPSL()
    assert (spec.batch, spec.kappa, spec.steps, spec.epochs) == (5, 0.1, 25, 4000)


def test_more_points_than_candidates_are_still_found() -> None:
    archive = example_archive(20, 4, 2)
    few = CDMPSL(epochs=5, free=6, guided=3, network_epochs=1, network_pairs=32, gp_iterations=2)
    found = few.propose(archive, 50, pending=np.empty((0, 4)), memory=None, rng=Streams(0, 1))
    assert found.U.shape == (50, 4) and len(np.unique(found.U, axis=0)) == 50


def test_entropy_weights_by_hand() -> None:
    """Shares (0, 1/4, 3/4) and (0, 0, 1): E = (0.5623 / ln 3, 0), the weights follow."""
    values = np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 9.0]])
    entropy = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75)) / np.log(3.0)
    expected = np.array([1.0 - entropy, 1.0]) / (2.0 - entropy)
    assert np.allclose(entropy_weights(values), expected)


def test_entropy_weights_without_information() -> None:
    assert np.allclose(entropy_weights(np.ones((4, 3))), 1.0 / 3.0)
    assert entropy_weights(np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 2.5]]))[0] == pytest.approx(0)


@settings(deadline=None, max_examples=30)
@given(n=st.integers(2, 20), m=st.integers(1, 4), seed=st.integers(0, 99))
def test_entropy_weights_ignore_units(n: int, m: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(n, m))
    weights = entropy_weights(values)
    assert weights.sum() == pytest.approx(1.0) and (weights >= 0).all()
    assert np.allclose(weights, entropy_weights(values * 1e4 - 300.0), atol=1e-6)


def two_objectives(U: Array) -> Array:
    F = np.stack([(U**2).sum(axis=1), np.sin(3.0 * U[:, 0]) - U[:, 1]], axis=1)
    return np.asarray((F - F.mean(axis=0)) / F.std(axis=0))


def scikit_learns(bounds: Bounds, U: Array, z: Array, j: int) -> GaussianProcessRegressor:
    """scikit-learn's process of objective j with our hyper-parameters."""
    h = {name: value[j].exp().numpy() for name, value in bounds.hyper.items()}
    kernel = ConstantKernel(h["log_variance"]) * Matern(h["log_lengthscale"], nu=2.5)
    jitter = 1e-8 * float(h["log_variance"] + h["log_constant"])
    kernel = kernel + ConstantKernel(h["log_constant"])
    return GaussianProcessRegressor(kernel, alpha=jitter, optimizer=None).fit(U, z)


def test_the_bounds_equal_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    U, V = rng.random((30, 3)), rng.random((20, 3))
    Z = two_objectives(U)
    bounds = fitted(U, Z, kappa=0.1, iterations=30, warm=None)
    for j in range(2):
        mean, std = scikit_learns(bounds, U, Z[:, j], j).predict(V, return_std=True)
        assert np.allclose(bounds.values(V)[:, j], mean - 0.1 * std, atol=1e-4)


def test_the_fit_raises_the_likelihood_and_starts_warm() -> None:
    U = np.random.default_rng(0).random((30, 3))
    Z = two_objectives(U)

    def evidence(bounds: Bounds) -> float:
        models = (scikit_learns(bounds, U, Z[:, j], j) for j in range(2))
        return sum(float(model.log_marginal_likelihood()) for model in models)

    short = fitted(U, Z, kappa=0.1, iterations=1, warm=None)
    long = fitted(U, Z, kappa=0.1, iterations=60, warm=None)
    again = fitted(U, Z, kappa=0.1, iterations=1, warm=long.warm)
    assert evidence(short) + 1.0 < evidence(long) < evidence(again) + 1e-3


def test_the_guide_points_uphill() -> None:
    rng = np.random.default_rng(0)
    U = rng.random((40, 4))
    bounds = fitted(U, two_objectives(U), kappa=0.1, iterations=20, warm=None)
    x = rng.random((15, 4)).astype(np.float32)
    g = bounds.weighted_gradient(x)
    assert np.allclose(np.linalg.norm(g, axis=1), 1.0, atol=1e-5)
    weights = entropy_weights(bounds.values(x.astype(np.float64)))
    up, down = (bounds.values(x + s * 1e-3 * g) @ weights for s in (1.0, -1.0))
    assert (up > down).all()


def test_augmentation_makes_six_rows_of_one() -> None:
    elite = np.random.default_rng(0).random((8, 3)) * 0.6 + 0.2
    rows = augmented(elite, np.random.default_rng(1))
    assert rows.shape == (48, 3) and np.array_equal(rows[:8], elite)
    assert np.abs(rows[8:16] - elite).max() <= 0.05
    between = rows[16:40]
    assert (between >= elite.min(axis=0)).all() and (between <= elite.max(axis=0)).all()


def test_the_operator_switch() -> None:
    spec, switch = CDMPSL(), Switch(seen=100)
    turns = []
    for volume in (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        switch = switch.told(volume, spec)
        turns.append(switch.diffusion)
    # Three volumes and two more rounds of patience, then a stall hands over; three rounds later back.
    assert turns == [True, True, True, True, False, False, False, True]


def test_progress_keeps_the_operator() -> None:
    spec, switch = CDMPSL(), Switch(seen=100)
    for i in range(10):
        switch = switch.told(1.2**i, spec)
    assert switch.diffusion and switch.since == spec.patience
    last = np.mean(switch.volumes[-2:])
    assert not switch.told(1.049 * float(last), spec).diffusion
    assert switch.told(1.051 * float(last), spec).diffusion


def test_the_switch_goes_through_memory() -> None:
    switch = Switch(False, 1, 40, (1.0, 2.5))
    assert Switch.of(switch.memory) == switch
    assert Switch.of(None) == Switch()


def test_a_round_counts_only_when_something_arrived() -> None:
    archive, spec = example_archive(20, 3, 2), CDMPSL()
    started = Switch().after(archive, spec)
    assert started == Switch(seen=20)
    assert started.after(archive, spec) is started
    U = np.full((2, 3), [[0.5], [0.4]])
    grown = archive.extended(U, conflicting(U, 2))
    told = started.after(grown, spec)
    assert told.seen == 22 and told.volumes == (stage_volume(grown.front),)


def test_the_stage_volume_does_not_depend_on_units() -> None:
    x = np.linspace(0.0, 1.0, 41)
    front = np.stack([x, 1.0 - np.sqrt(x)], axis=1)
    reference = 1.1 * np.quantile(front, 0.95, axis=0)
    assert stage_volume(front) == pytest.approx(pareto.hypervolume(front, reference))
    assert stage_volume(front * [10.0, 3.0] - 7.0) == pytest.approx(30.0 * stage_volume(front))


def test_a_stalled_run_uses_both_operators() -> None:
    rng = np.random.default_rng(0)
    U = rng.random((30, 3))
    archive, memory, used = Archive.of(U, conflicting(U, 2)), None, []
    for round in range(8):
        proposal = QUICK.propose(
            archive, 1, pending=np.empty((0, 3)), memory=memory, rng=Streams(0, round)
        )
        memory = proposal.memory
        used.append(proposal.notes["operator"])
        worse = np.full((1, 2), 10.0)  # never an improvement, so the hypervolume stands still
        archive = archive.extended(proposal.U, worse)
    assert used[0] == "diffusion" and "sbx" in used
