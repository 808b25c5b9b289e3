"""Constrained DTLZ: values against pymoo, fronts feasible and attained, variants, sizes."""

from __future__ import annotations

import pickle

import moocore
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymoo.problems import get_problem

from neuropareto.problem import Problem
from neuropareto.problems import pareto_set, problem
from neuropareto.problems.constrained_dtlz import NAMES, outside_shell
from neuropareto.problems.structure import find
from neuropareto.problems.variants import VARIANTS
from neuropareto.space import Array
from neuropareto.testing.problem import check_outcome, check_problem, example_points


def outcome(made: Problem, X: Array) -> tuple[Array, Array]:
    both = made(X)
    assert isinstance(both, tuple)
    return both


def front(made: Problem) -> Array:
    assert made.front is not None
    return made.front()


def optimal(made: Problem) -> Array:
    """Points X (p, d) whose images are the points of the front, in the same order."""
    if find(made) is not None:
        return pareto_set(made)
    base = find(problem("dtlz4", made.d, made.n_objectives))
    assert base is not None
    radius = np.linalg.norm(front(made), axis=1, keepdims=True)
    X = np.empty((len(radius), made.d))
    X[:, base.position] = base.positions(front(made) / radius)
    X[:, base.distance] = 0.5 + np.sqrt((radius - 1.0) / len(base.distance))
    return X


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("d", "m"), [(5, 2), (30, 2), (7, 3), (12, 5), (100, 3)])
def test_values_equal_pymoo(name: str, d: int, m: int) -> None:
    made, theirs = problem(name, d, m), get_problem(name.replace("-", ""), n_var=d, n_obj=m)
    rng = np.random.default_rng(d)
    good = optimal(made)[rng.integers(0, len(front(made)), 50)]
    X = np.vstack([rng.random((50, d)), np.clip(good + 0.01 * rng.normal(size=(50, d)), 0, 1)])
    expected = theirs.evaluate(X, return_values_of=["F", "G"])
    for ours, other in zip(outcome(made, X), expected, strict=True):
        assert ours.shape == other.shape
        # A constraint that is nearly active is a small difference of terms of about one.
        size = 1.0 + np.abs(other).max(axis=1, keepdims=True)
        assert np.all(np.abs(ours - other) <= 1e-11 * size)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("m", [2, 3, 5])
def test_front_is_feasible_attained_and_not_dominated(name: str, m: int) -> None:
    made = problem(name, 15, m)
    F, X = front(made), optimal(made)
    assert moocore.is_nondominated(F, keep_weakly=False).all()
    assert X.min() >= 0 and X.max() <= 1
    values, G = outcome(made, X)
    np.testing.assert_allclose(values, F, atol=1e-12)
    assert G.max() <= 1e-9
    assert made.reference_point is not None
    np.testing.assert_allclose(made.reference_point, 1.1 * F.max(axis=0))


@pytest.mark.parametrize("m", [2, 3, 5])
def test_fronts_and_the_fronts_without_constraints(m: int) -> None:
    for name in ("c1-dtlz1", "c1-dtlz3"):
        np.testing.assert_array_equal(front(problem(name, 15, m)), front(problem(name[3:], 15, m)))
    whole, pieces = front(problem("dtlz2", 15, m)), front(problem("c2-dtlz2", 15, m))
    assert {tuple(row) for row in pieces} < {tuple(row) for row in whole}
    assert len(pieces) > 0.3 * len(whole)


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_front_of_c3_lies_on_an_active_constraint(m: int) -> None:
    F = front(problem("c3-dtlz4", 15, m))
    j = np.argmax(F, axis=1)
    largest = F[np.arange(len(F)), j]
    np.testing.assert_allclose((F**2).sum(axis=1) - 0.75 * largest**2, 1.0, atol=1e-12)
    assert (np.linalg.norm(F, axis=1) > 1.0).all()


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), m=st.sampled_from([2, 3]))
def test_no_feasible_point_beats_the_front(name: str, seed: int, m: int) -> None:
    made = problem(name, 8, m)
    rng = np.random.default_rng(seed)
    X = optimal(made)[rng.integers(0, len(front(made)), 20)]
    X = np.clip(X + rng.choice([0, 1e-3, 0.1], 20)[:, None] * rng.normal(size=X.shape), 0, 1)
    F, G = outcome(made, X)
    F = F[(G <= 0).all(axis=1)]
    assert not (F[:, None] < front(made)[None] - 1e-9).all(axis=2).any()


def test_the_shell_of_c1_dtlz3_has_the_published_radii() -> None:
    for m, radius in {2: 9.0, 3: 9.0, 5: 12.5, 8: 12.5, 10: 15.0, 15: 15.0}.items():
        F = (
            np.full((4, m), 1 / np.sqrt(m))
            * np.array([3.9, 4.1, radius - 0.1, radius + 0.1])[:, None]
        )
        np.testing.assert_array_equal(outside_shell(F)[:, 0] <= 0, [True, False, False, True])


def test_constraints_are_counted() -> None:
    assert [problem(name, m=3).n_constraints for name in NAMES] == [1, 1, 1, 3]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("m", [3, 5])
def test_conformance(name: str, m: int) -> None:
    check_problem(problem(name, 12, m))


@pytest.mark.parametrize("name", ["c1-dtlz1", "c1-dtlz3", "c2-dtlz2"])
@pytest.mark.parametrize("kind", VARIANTS)
def test_variants_keep_the_front(name: str, kind: str) -> None:
    base, variant = problem(name, 12, 3), problem(name, 12, 3, variant=kind, seed=1)
    assert variant.front == base.front and variant.n_constraints == base.n_constraints
    X = pareto_set(variant)
    assert X.min() >= 0 and X.max() <= 1
    F, G = outcome(variant, X)
    np.testing.assert_allclose(F, front(base), atol=1e-8)
    assert G.max() <= 1e-8
    check_problem(variant)


def test_c3_has_no_fixed_optimum_to_move() -> None:
    for kind in ("shifted", "translated", "rotated"):
        with pytest.raises(ValueError, match="does not tell"):
            problem("c3-dtlz4", variant=kind)
    for kind in ("mirrored", "permuted"):
        check_outcome(made := problem("c3-dtlz4", 12, 3, variant=kind), example_points(made, 5, 0))


def test_sizes() -> None:
    assert problem("C2-DTLZ2").name == "c2-dtlz2" and problem("c2-dtlz2").d == 30
    assert problem("c1-dtlz1", m=40).d == 40 and problem("c3-dtlz4", m=40).d == 43
    assert problem("c1-dtlz3", 2, 2).d == 2
    with pytest.raises(ValueError, match="c1-dtlz1 needs an integer d >= 3"):
        problem("c1-dtlz1", 2, 3)
    with pytest.raises(ValueError, match="c2-dtlz2 needs an integer m >= 2"):
        problem("c2-dtlz2", 5, 1)


def test_c3_needs_distance_variables_enough_to_reach_its_front() -> None:
    made = problem("c3-dtlz4", 5, 2)
    X = optimal(made)
    assert X.max() == 1.0
    np.testing.assert_allclose(outcome(made, X)[0], front(made), atol=1e-12)
    with pytest.raises(ValueError, match="c3-dtlz4 needs an integer d >= 5"):
        problem("c3-dtlz4", 4, 2)


@pytest.mark.parametrize("name", NAMES)
def test_problems_travel_to_other_processes(name: str) -> None:
    made = problem(name)
    copy = pickle.loads(pickle.dumps(made))
    X = example_points(made, 3, 0)
    np.testing.assert_array_equal(outcome(copy, X)[1], outcome(made, X)[1])
    np.testing.assert_array_equal(front(copy), front(made))
