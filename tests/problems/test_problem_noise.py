"""Noise: its size, its independence of order and batches, its repeatability."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import stats

from neuropareto.problems import noisy, pareto_set, problem
from neuropareto.space import Array
from neuropareto.testing.problem import check_front, check_outcome, example_points, objectives


def louder_to_the_right(U: Array) -> Array:
    return np.column_stack([0.01 + U[:, 0], 0.02 * np.ones(len(U))])


def test_noise_is_normal_with_the_asked_deviation() -> None:
    base = problem("dtlz2", 5, 2)
    X = np.random.default_rng(0).random((4000, 5))
    E = objectives(noisy(base, [0.1, 2.0], 3), X) - objectives(base, X)
    np.testing.assert_allclose(E.std(axis=0), [0.1, 2.0], rtol=0.05)
    for column, std in zip(E.T, (0.1, 2.0), strict=True):
        assert stats.kstest(column / std, "norm").pvalue > 1e-3
    assert abs(stats.pearsonr(E[:, 0], E[:, 1])[0]) < 0.06


def test_noise_may_depend_on_the_input() -> None:
    base = problem("zdt4", 5)
    X = base.space.from_unit(np.random.default_rng(0).random((4000, 5)))
    E = objectives(noisy(base, louder_to_the_right, 0), X) - objectives(base, X)
    right = X[:, 0] > 0.8
    assert E[right, 0].std() == pytest.approx(0.91, rel=0.15)
    assert E[X[:, 0] < 0.2, 0].std() == pytest.approx(0.12, rel=0.25)
    assert E[:, 1].std() == pytest.approx(0.02, rel=0.1)


def test_evaluating_again_gives_another_value_within_and_across_calls() -> None:
    X = np.repeat(np.random.default_rng(0).random((1, 5)), 6, axis=0)
    made = noisy(problem("dtlz2", 5, 2), 0.1, 0)
    together = objectives(made, X)
    again = objectives(made, X)
    assert len(np.unique(np.vstack([together, again])[:, 0])) == 12


def test_values_do_not_depend_on_order_batches_or_other_points() -> None:
    base = problem("dtlz2", 5, 2)
    X = np.random.default_rng(0).random((10, 5))
    together = objectives(noisy(base, 0.1, 4), X)
    alone = noisy(base, 0.1, 4)
    for i in reversed(range(10)):
        np.testing.assert_array_equal(objectives(alone, X[i : i + 1])[0], together[i])
    assert not np.allclose(objectives(noisy(base, 0.1, 5), X), together)


def test_a_copy_for_another_process_repeats_the_series() -> None:
    made = noisy(problem("zdt1", 5), 0.1, 1)
    X = np.random.default_rng(0).random((3, 5))
    first = objectives(made, X)
    copy = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(objectives(copy, X), first)
    assert not np.array_equal(objectives(made, X), first)


def test_constraints_stay_exact_and_zero_noise_is_none() -> None:
    base = problem("cre21")
    X = example_points(base, 10, 0)
    made = noisy(base, 0.1, 0)
    check_outcome(made, X)
    noise_free, exact = made(X), base(X)
    assert isinstance(noise_free, tuple) and isinstance(exact, tuple)
    np.testing.assert_array_equal(noise_free[1], exact[1])
    np.testing.assert_array_equal(objectives(noisy(base, 0.0, 0), X), exact[0])


def test_front_and_structure_are_those_without_noise() -> None:
    base = problem("dtlz2", 5, 2)
    made = noisy(base, 0.1, 0)
    assert made.front is base.front
    np.testing.assert_array_equal(pareto_set(made), pareto_set(base))
    check_front(made, example_points(made, 5, 0))


@pytest.mark.parametrize("std", [-1.0, [0.1, 0.2, 0.3], float("nan"), [0.1, -0.1]])
def test_impossible_deviations_are_refused(std: float | list[float]) -> None:
    with pytest.raises(ValueError, match="noise std must be"):
        noisy(problem("dtlz2", 5, 2), std, 0)


def test_a_noise_function_of_the_wrong_shape_is_refused() -> None:
    made = noisy(problem("dtlz2", 5, 2), lambda U: U, 0)
    with pytest.raises(ValueError, match=r"shape \(3, 2\)"):
        made(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="seed"):
        noisy(problem("dtlz2", 5, 2), 0.1, -1)
