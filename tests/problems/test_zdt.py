"""ZDT: values against pymoo, fronts attained, reference points, sizes."""

from __future__ import annotations

import moocore
import numpy as np
import pytest
from pymoo.problems import get_problem

from neuropareto.problems import pareto_set, problem
from neuropareto.problems.zdt import NAMES, nadir
from neuropareto.testing.problem import objectives


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("d", [2, 10, 30, 100])
def test_values_equal_pymoo(name: str, d: int) -> None:
    made = problem(name, d)
    X = made.space.from_unit(np.random.default_rng(d).random((50, d)))
    oracle = get_problem(name, n_var=d)
    expected = oracle.evaluate(X)
    np.testing.assert_allclose(made(X), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(made.space.lower, oracle.xl)
    np.testing.assert_array_equal(made.space.upper, oracle.xu)


@pytest.mark.parametrize("name", NAMES)
def test_front_is_attained_and_not_dominated(name: str) -> None:
    made = problem(name, 12)
    assert made.front is not None and made.reference_point is not None
    F = made.front()
    assert F.shape == (10_000, 2)
    assert moocore.is_nondominated(F, keep_weakly=False).all()
    X = pareto_set(made)
    assert (made.space.lower <= X).all() and (made.space.upper >= X).all()
    np.testing.assert_allclose(made(X), F, atol=1e-12)
    np.testing.assert_allclose(made.reference_point, 1.1 * nadir(name))
    np.testing.assert_allclose(F.max(axis=0), nadir(name), atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_front_covers_that_of_pymoo(name: str) -> None:
    front = problem(name, 12).front
    assert front is not None
    theirs = get_problem(name, n_var=12).pareto_front()
    assert moocore.igd(front(), theirs) < 5e-4
    # pymoo's front of ZDT3 has 20 points a piece: a coarse net, but no piece may be missing.
    assert moocore.igd(theirs, front()) < 2e-2


def test_zdt6_starts_at_the_smallest_first_objective() -> None:
    made = problem("zdt6", 5)
    assert made.front is not None
    X = np.zeros((200_001, 5))
    X[:, 0] = np.linspace(0, 1, len(X))
    smallest = objectives(made, X)[:, 0].min()
    assert smallest - 1e-8 <= made.front()[0, 0] <= smallest


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="zdt1 has m=2 and no other"):
        problem("zdt1", 10, 3)
    with pytest.raises(ValueError, match="integer d >= 2"):
        problem("zdt4", 1)
