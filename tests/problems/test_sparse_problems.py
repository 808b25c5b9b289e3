"""Sparse and chain problems: definition, inactive variables, fronts by an independent optimiser."""

from __future__ import annotations

import moocore
import numpy as np
import pytest
from scipy.optimize import minimize

from neuropareto.problems import pareto_set, problem
from neuropareto.problems.sparse import NAMES, Quadratics, quadratic_pareto_set
from neuropareto.space import Array


def values(name: str, X: Array, seed: int = 0) -> Array:
    F = problem(name, X.shape[1], seed=seed)(X)
    assert isinstance(F, np.ndarray)
    return F


@pytest.mark.parametrize("name", NAMES)
def test_seed_picks_the_instance(name: str) -> None:
    X = np.random.default_rng(0).random((5, 40))
    np.testing.assert_array_equal(values(name, X, 3), values(name, X, 3))
    assert not np.allclose(values(name, X, 3), values(name, X, 4))


@pytest.mark.parametrize(("name", "active"), [("sparse-quadratic", 10), ("sparse-position", 11)])
def test_all_but_a_few_variables_are_without_effect(name: str, active: int) -> None:
    rng = np.random.default_rng(1)
    base = rng.random((1, 60))
    moved = np.repeat(base, 60, axis=0)
    np.fill_diagonal(moved, rng.random(60))
    # One row alone and sixty together may be multiplied in another order, on some processors.
    effect = np.abs(values(name, moved) - values(name, base)).max(axis=1) > 1e-12
    assert effect.sum() == active


def test_sparse_quadratic_is_two_rotated_bowls() -> None:
    """Same draws in the same order as the definition: choice, optima, then one rotation each."""
    d, seed = 50, 7
    rng = np.random.default_rng(5000 + seed)
    chosen = rng.choice(d, 10, replace=False)
    optima = rng.uniform(0.15, 0.85, (2, 10))
    X = np.random.default_rng(0).random((6, d))
    expected = []
    for optimum in optima:
        Q = np.linalg.qr(rng.normal(size=(10, 10)))[0]
        along = (X[:, chosen] - optimum) @ Q
        expected.append(4 * (np.exp(np.linspace(-1.2, 1.2, 10)) * along**2).sum(axis=1))
    np.testing.assert_allclose(values("sparse-quadratic", X, seed), np.transpose(expected))


def test_chain_couples_neighbours_only() -> None:
    """Mixed second differences vanish but for neighbours in the hidden order."""
    d = 12
    order = np.random.default_rng(7000).permutation(d)
    corners = np.full((d, d, 4, d), 0.5)
    for i in range(d):
        for j in range(d):
            for k, (a, b) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
                corners[i, j, k, order[i]] += 0.1 * a
                corners[i, j, k, order[j]] += 0.1 * b
    F = values("chain", corners.reshape(-1, d)).reshape(d, d, 4, 2)
    mixed = F[:, :, 3] - F[:, :, 1] - F[:, :, 2] + F[:, :, 0]
    apart = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    assert np.abs(mixed[apart > 1]).max() < 1e-12
    assert np.abs(mixed[apart == 1]).min() > 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_front_is_attained_and_not_dominated(name: str) -> None:
    made = problem(name, 60, seed=2)
    assert made.front is not None and made.reference_point is not None
    F = made.front()
    assert moocore.is_nondominated(F, keep_weakly=False).all()
    X = pareto_set(made) if name == "sparse-position" else quadratic_pareto_set(name, 60, 2)
    assert X.min() >= 0 and X.max() <= 1
    np.testing.assert_allclose(made(X), F, atol=1e-12)
    np.testing.assert_allclose(made.reference_point, 1.1 * F.max(axis=0), rtol=1e-3)


def test_all_variables_of_the_coupled_quadratic_act_together() -> None:
    objective = problem("coupled-quadratic", 12, seed=3).objective
    assert isinstance(objective, Quadratics)
    for A in objective.matrices:
        np.testing.assert_allclose(np.linalg.eigvalsh(A), np.geomspace(1.0, 30.0, 12))
        coupling = np.abs(A - np.diag(np.diag(A))).sum(axis=1) / np.diag(A)
        assert coupling.min() > 0.3
    other = problem("coupled-quadratic", 12, seed=4).objective
    assert isinstance(other, Quadratics) and not np.allclose(other.optima, objective.optima)


@pytest.mark.parametrize(
    ("name", "seed"), [("sparse-quadratic", 0), ("chain", 1), ("coupled-quadratic", 2)]
)
def test_weighted_sums_have_no_better_minimum(name: str, seed: int) -> None:
    objective = problem(name, 20, seed=seed).objective
    assert isinstance(objective, Quadratics)
    check_compromises(objective, np.array([0.02, 0.3, 0.8]))


def test_minimum_on_the_edge_of_the_box() -> None:
    """In this instance some weighted sums have their free minimum outside the box."""
    objective = problem("sparse-quadratic", 200, seed=60).objective
    assert isinstance(objective, Quadratics)
    weights = 1 / (1 + np.exp(-np.linspace(-8, 8, 41)))
    edge = (objective.compromises(weights) < 1e-9).any(axis=1) | (
        objective.compromises(weights) > 1 - 1e-9
    ).any(axis=1)
    assert edge.any()
    check_compromises(objective, weights[edge][:3])


def check_compromises(objective: Quadratics, weights: Array) -> None:
    best = objective.compromises(weights)
    assert best.min() >= 0 and best.max() <= 1
    for w, point in zip(weights, best, strict=True):
        share = np.array([w, 1 - w])

        def weighted(s: Array, share: Array = share) -> float:
            return float(objective.at(s[None])[0] @ share)

        found = minimize(weighted, np.full(len(point), 0.5), bounds=[(0, 1)] * len(point))
        assert weighted(point) <= found.fun + 1e-7


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="d >= 10"):
        problem("sparse-quadratic", 9)
    with pytest.raises(ValueError, match="m=2 and no other"):
        problem("chain", 50, 3)
    with pytest.raises(ValueError, match="seed"):
        problem("chain", 50, seed=-1)
