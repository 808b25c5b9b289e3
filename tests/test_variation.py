from __future__ import annotations

import numpy as np
import pytest

from neuropareto.variation import differential, polynomial_mutation, sbx

pymoo_sbx = pytest.importorskip("pymoo.operators.crossover.sbx")
pymoo_pm = pytest.importorskip("pymoo.operators.mutation.pm")


def quantiles(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.quantile(values, [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99]))


@pytest.mark.parametrize(("a", "b"), [(0.2, 0.7), (0.05, 0.95), (0.4, 0.45)])
def test_sbx_has_the_distribution_of_pymoos(a: float, b: float) -> None:
    n = 40_000
    A, B = np.full((n, 1), a), np.full((n, 1), b)
    ours = np.concatenate(
        sbx(A, B, eta=15, p_pair=1.0, p_variable=1.0, rng=np.random.default_rng(0))
    )
    theirs = pymoo_sbx.cross_sbx(
        np.stack([A, B]), np.zeros(1), np.ones(1), np.full((n, 1), 15.0), np.ones((n, 1)),
        np.full((n, 1), 0.5), random_state=np.random.default_rng(1),
    )  # fmt: skip
    assert np.allclose(quantiles(ours), quantiles(theirs), atol=0.01)


@pytest.mark.parametrize("at", [0.02, 0.5, 0.9])
def test_mutation_has_the_distribution_of_pymoos(at: float) -> None:
    n = 40_000
    U = np.full((n, 1), at)
    ours = polynomial_mutation(U, eta=20, p_variable=1.0, rng=np.random.default_rng(0))
    theirs = pymoo_pm.mut_pm(
        U, np.zeros(1), np.ones(1), np.full(n, 20.0), np.ones(n), at_least_once=False,
        random_state=np.random.default_rng(1),
    )  # fmt: skip
    assert np.allclose(quantiles(ours), quantiles(theirs), atol=0.005)


def test_probabilities_zero_leave_the_parents_alone() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.random((20, 6)), rng.random((20, 6))
    first, second = sbx(A, B, eta=15, p_pair=0.0, p_variable=1.0, rng=rng)
    assert np.array_equal(first, A) and np.array_equal(second, B)
    assert np.array_equal(polynomial_mutation(A, eta=20, p_variable=0.0, rng=rng), A)
    assert np.array_equal(differential(A, B, B, weight=0.5, p_variable=1.0, rng=rng), A)


def test_children_stay_in_the_cube_and_off_its_faces() -> None:
    rng = np.random.default_rng(3)
    A, B, C = (rng.random((5000, 4)) for _ in range(3))
    moved = differential(A, B, C, weight=0.9, p_variable=1.0, rng=rng)
    assert moved.min() > 0 and moved.max() < 1, "a differential move must not pile up on a face"
    for child in sbx(A, B, eta=2, p_pair=1.0, p_variable=1.0, rng=rng):
        assert child.min() >= 0 and child.max() <= 1
        assert np.mean((child == 0) | (child == 1)) < 1e-3


def test_a_row_probability_broadcasts() -> None:
    U = np.full((1000, 5), 0.5)
    p = np.zeros((1000, 1))
    p[::2] = 1.0
    moved = polynomial_mutation(U, eta=20, p_variable=p, rng=np.random.default_rng(0))
    assert (moved[1::2] == 0.5).all() and (moved[::2] != 0.5).all()
