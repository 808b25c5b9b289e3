"""WFG4 and WFG9: values against pymoo, fronts attained, sizes."""

from __future__ import annotations

import moocore
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymoo.problems import get_problem

from neuropareto.problems import pareto_set, problem
from neuropareto.problems.wfg import NAMES, r_nonsep, wfg9_pareto_set


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("d", "m"), [(5, 2), (24, 2), (24, 3), (60, 5)])
def test_values_equal_pymoo(name: str, d: int, m: int) -> None:
    made = problem(name, d, m)
    X = made.space.from_unit(np.random.default_rng(d).random((50, d)))
    expected = get_problem(name, n_var=d, n_obj=m, k=4).evaluate(X.copy())
    np.testing.assert_allclose(made(X), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("m", [2, 3, 5])
def test_front_is_attained_and_not_dominated(name: str, m: int) -> None:
    made = problem(name, 24, m)
    assert made.front is not None and made.reference_point is not None
    F = made.front()
    assert moocore.is_nondominated(F, keep_weakly=False).all()
    X = pareto_set(made) if name == "wfg4" else wfg9_pareto_set(24, m)
    assert (made.space.lower <= X).all() and (made.space.upper >= X).all()
    np.testing.assert_allclose(made(X), F, atol=1e-9)
    np.testing.assert_allclose(made.reference_point, 1.1 * F.max(axis=0))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_sorted_form_of_r_nonsep_is_the_double_sum(width: int, seed: int) -> None:
    Y = np.random.default_rng(seed).random((4, width))
    half = np.ceil(width / 2)
    pairs = np.abs(Y[:, :, None] - Y[:, None, :]).sum(axis=(1, 2))
    expected = (Y.sum(axis=1) + pairs) / (half * (1 + 2 * width - 2 * half))
    np.testing.assert_allclose(r_nonsep(Y), expected, atol=1e-12)


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="choose m = 2, 3 or 5"):
        problem("wfg4", 20, 4)
    with pytest.raises(ValueError, match="integer d >= 5"):
        problem("wfg9", 4)
