"""DTLZ: values against pymoo, fronts attained, nadir and reference points, sizes."""

from __future__ import annotations

import moocore
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymoo.problems import get_problem

from neuropareto.problems import pareto_set, problem
from neuropareto.problems.dtlz import NAMES, nadir
from neuropareto.space import Array
from neuropareto.testing.problem import objectives


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("d", "m"), [(2, 2), (7, 3), (30, 2), (12, 5), (100, 3)])
def test_values_equal_pymoo(name: str, d: int, m: int) -> None:
    X = np.random.default_rng(d).random((50, d))
    expected = get_problem(name, n_var=d, n_obj=m).evaluate(X)
    largest = np.abs(expected).max(axis=1, keepdims=True)
    assert np.all(np.abs(problem(name, d, m)(X) - expected) <= 1e-12 * largest)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("m", [2, 3, 5])
def test_front_is_attained_and_not_dominated(name: str, m: int) -> None:
    made = problem(name, 15, m)
    assert made.front is not None and made.reference_point is not None
    F = made.front()
    assert 8_000 <= len(F) <= 10_000
    assert moocore.is_nondominated(F, keep_weakly=False).all()
    X = pareto_set(made)
    assert X.min() >= 0 and X.max() <= 1
    np.testing.assert_allclose(made(X), F, atol=1e-12)
    np.testing.assert_allclose(F.max(axis=0), nadir(name, m), atol=1e-12)
    np.testing.assert_allclose(made.reference_point, 1.1 * nadir(name, m))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), m=st.sampled_from([2, 3]))
def test_no_point_beats_the_front(name: str, seed: int, m: int) -> None:
    made = problem(name, 8, m)
    assert made.front is not None
    rng = np.random.default_rng(seed)
    X = pareto_set(made)[rng.integers(0, 9_000, 20)]
    X = np.clip(X + rng.choice([0, 1e-3, 0.1], 20)[:, None] * rng.normal(size=X.shape), 0, 1)
    values, front = objectives(made, X), made.front()
    beaten = (values[:, None] < front[None] - 1e-9).all(axis=2)
    assert not beaten.any()


def closed_form_fronts(name: str, F: Array) -> Array:
    """Zero exactly on the front of DTLZ1-6."""
    distance: Array = F.sum(axis=1) - 0.5 if name == "dtlz1" else (F**2).sum(axis=1) - 1.0
    return distance


@pytest.mark.parametrize("name", NAMES[:6])
@pytest.mark.parametrize("m", [2, 3, 4])
def test_fronts_lie_on_plane_and_sphere(name: str, m: int) -> None:
    front = problem(name, 20, m).front
    assert front is not None
    np.testing.assert_allclose(closed_form_fronts(name, front()), 0.0, atol=1e-12)


def test_dtlz7_pieces_are_those_of_the_literature() -> None:
    front = problem("dtlz7", 20, 2).front
    assert front is not None
    f1 = front()[:, 0]
    widest = np.argmax(np.diff(f1))
    np.testing.assert_allclose([f1[0], f1[widest], f1[-1]], [0.0, 0.251412, 0.859401], atol=1e-4)
    np.testing.assert_allclose(f1[widest + 1], 0.631627, atol=2e-4)


def test_dtlz5_is_dtlz2_for_two_objectives() -> None:
    X = np.random.default_rng(0).random((20, 10))
    np.testing.assert_allclose(problem("dtlz5", 10, 2)(X), problem("dtlz2", 10, 2)(X))


def test_random_search_reaches_what_was_measured_elsewhere() -> None:
    """IGD of 300 random points at d = 30, mean of 3 seeds, against an independent measurement."""
    measured = {"dtlz1": 776, "dtlz2": 1.45, "dtlz3": 2116, "dtlz6": 25.0, "dtlz7": 6.17}
    for name, expected in measured.items():
        made = problem(name, 30, 2)
        assert made.front is not None
        distances = []
        for seed in range(3):
            rng = np.random.default_rng(seed)
            F = made(made.space.latin_hypercube(300, rng=rng))
            distances.append(moocore.igd(F, made.front()))
        assert np.mean(distances) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(("d", "m"), [(1, 2), (2, 3), (0, 2), (5, 1), (5, 0), (-3, 2)])
def test_impossible_sizes_are_refused(d: int, m: int) -> None:
    with pytest.raises(ValueError, match=r"integer [dm] >= "):
        problem("dtlz2", d, m)


def test_sizes_must_be_whole() -> None:
    with pytest.raises(ValueError, match="integer d"):
        problem("dtlz2", 2.5, 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="integer m"):
        problem("dtlz2", 5, True)
    assert problem("dtlz2", int(np.int64(7)), 2).d == 7
