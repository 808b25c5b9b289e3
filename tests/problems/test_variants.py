"""Variants: the front unchanged and attained inside the box; each moves what it says it moves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto.problem import Problem
from neuropareto.problems import (
    Structure,
    declare,
    mirrored,
    pareto_set,
    permuted,
    problem,
    rotated,
    shifted,
    translated,
)
from neuropareto.problems.dtlz import NAMES as DTLZ
from neuropareto.problems.structure import find
from neuropareto.problems.variants import VARIANTS
from neuropareto.problems.zdt import NAMES as ZDT
from neuropareto.space import Array, Categorical, Real, Space
from neuropareto.testing.problem import check_problem, objectives

BASES = [(name, 2) for name in (*DTLZ, *ZDT)] + [("dtlz1", 3), ("dtlz5", 3), ("dtlz7", 4)]


def check_same_front(base: Problem, variant: Problem) -> None:
    assert variant.front == base.front
    np.testing.assert_array_equal(variant.reference_point, base.reference_point)
    assert base.front is not None
    X = pareto_set(variant)
    assert (variant.space.lower <= X).all() and (variant.space.upper >= X).all()
    np.testing.assert_allclose(objectives(variant, X), base.front(), atol=1e-8)


@pytest.mark.parametrize("kind", VARIANTS)
@pytest.mark.parametrize(("name", "m"), BASES)
def test_front_is_unchanged_and_attained(name: str, m: int, kind: str) -> None:
    base = problem(name, 12, m)
    for seed in (0, 1):
        variant = problem(name, 12, m, variant=kind, seed=seed)
        check_same_front(base, variant)
        check_problem(variant)


@pytest.mark.parametrize("kind", ["shifted", "mirrored", "permuted"])
def test_wfg4_variants(kind: str) -> None:
    check_same_front(problem("wfg4", 12), problem("wfg4", 12, variant=kind))


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(["dtlz3", "dtlz6", "zdt4", "zdt6", "sparse-position"]),
    kinds=st.lists(st.sampled_from(sorted(VARIANTS)), min_size=2, max_size=3),
    seed=st.integers(0, 10_000),
)
def test_variants_of_variants(name: str, kinds: list[str], seed: int) -> None:
    base = variant = problem(name, 14)
    for kind in kinds:
        variant = VARIANTS[kind](variant, seed)
    assert base.front is not None
    U = np.random.default_rng(seed).random((10, 14))
    values = objectives(variant, variant.space.from_unit(U))
    assert np.isfinite(values).all()
    assert not (values[:, None] < base.front()[None] - 1e-9).all(axis=2).any()
    # Rounding in a chain of maps is raised to the power 0.1 or 0.25 by DTLZ6 and ZDT6.
    slack = {"dtlz6": 0.7, "zdt6": 0.05}.get(name, 1e-8)
    np.testing.assert_allclose(objectives(variant, pareto_set(variant)), base.front(), atol=slack)


def test_shift_moves_every_optimum_to_its_own_place() -> None:
    variant = shifted(problem("dtlz2", 40, 2), 5)
    structure = find(variant)
    assert structure is not None
    assert structure.optimum.min() >= 0.15 and structure.optimum.max() <= 0.85
    assert len(np.unique(structure.optimum)) == 39
    other = find(shifted(problem("dtlz2", 40, 2), 6))
    assert other is not None and not np.allclose(other.optimum, structure.optimum)


@pytest.mark.parametrize("name", ["dtlz2", "zdt1", "dtlz7", "zdt4"])
def test_shift_is_a_monotone_stretch_on_both_sides(name: str) -> None:
    """Along one distance variable the objective falls to the optimum and rises after it."""
    variant = shifted(problem(name, 6), 2)
    structure = find(variant)
    assert structure is not None
    X = np.repeat(pareto_set(variant)[5000:5001], 401, axis=0)
    lower, upper = variant.space.lower[3], variant.space.upper[3]
    X[:, 3] = np.linspace(lower, upper, 401)
    f2 = objectives(variant, X)[:, 1]
    place = structure.optimum[list(structure.distance).index(3)]
    assert np.argmin(f2) == pytest.approx(400 * place, abs=1)
    if name != "zdt4":
        steps = np.diff(f2)
        low = int(400 * place)
        assert (steps[: low - 1] < 0).all() and (steps[low + 2 :] > 0).all()
        ends = np.abs(f2[[0, -1]] - f2.min())
        assert ends.min() > 0.9 * ends.max()  # both ends of the box are equally far away


def test_translation_keeps_the_shape() -> None:
    """Moving one variable and its optimum together changes nothing."""
    base = problem("dtlz3", 8, 2)
    variant = translated(base, 1)
    structure = find(variant)
    assert structure is not None
    rng = np.random.default_rng(0)
    steps = rng.uniform(-0.14, 0.14, (30, 7))
    X = np.full((30, 8), 0.3)
    Z = X.copy()
    X[:, 1:], Z[:, 1:] = 0.5 + steps, structure.optimum + steps
    np.testing.assert_allclose(objectives(variant, Z), objectives(base, X), rtol=1e-9)


def test_rotation_mixes_all_distance_variables() -> None:
    base = problem("dtlz2", 10, 2)
    variant = rotated(base, 3)
    structure = find(variant)
    assert structure is not None

    def g(Z: Array) -> Array:
        X = np.full((len(Z), 10), 0.5)
        X[:, 1:] = Z
        radius: Array = np.linalg.norm(objectives(variant, X), axis=1)
        return radius - 1.0

    # g = (z - c)' H (z - c): recover H from second differences and look at its spectrum.
    c, step = structure.optimum, 0.1
    E = step * np.eye(9)
    H = np.array(
        [[g((c + E[i] + E[j])[None])[0] - g((c + E[i])[None])[0] - g((c + E[j])[None])[0]
          for j in range(9)] for i in range(9)]
    ) / (2 * step**2)  # fmt: skip
    spectrum = np.linalg.eigvalsh(H)
    assert spectrum.max() / spectrum.min() == pytest.approx(np.exp(2.3), rel=1e-6)
    assert spectrum.mean() == pytest.approx(1.0, rel=1e-6)
    off_diagonal = H - np.diag(np.diag(H))
    assert (np.abs(off_diagonal).max(axis=1) > 0.05).all()


@pytest.mark.parametrize("name", ["zdt3", "re23", "truss", "cre24"])
def test_mirrored_twice_is_the_problem_itself(name: str) -> None:
    base = problem(name)
    twice = mirrored(mirrored(base, 4), 4)
    X = base.space.from_unit(np.random.default_rng(0).random((6, base.d)))
    np.testing.assert_allclose(objectives(twice, X), objectives(base, X), rtol=1e-9)
    once = objectives(mirrored(base, 4), X)
    assert not np.allclose(once, objectives(base, X))
    check_problem(mirrored(base, 4))


def test_permuted_reorders_variables_and_bounds() -> None:
    base = problem("wfg9", 10)
    variant = permuted(base, 2)
    assert sorted(variant.space.upper) == sorted(base.space.upper)
    assert not np.array_equal(variant.space.upper, base.space.upper)
    X = base.space.from_unit(np.random.default_rng(0).random((6, 10)))
    order = np.array([list(base.space.upper).index(u) for u in variant.space.upper])
    np.testing.assert_array_equal(objectives(variant, X[:, order]), objectives(base, X))


def test_problems_without_structure_are_refused_with_a_way_out() -> None:
    for kind in ("shifted", "translated", "rotated"):
        with pytest.raises(ValueError, match="does not tell"):
            problem("rover", variant=kind)
    with pytest.raises(ValueError, match="use shifted instead"):
        problem("wfg4", variant="rotated")
    with pytest.raises(ValueError, match="does not tell"):
        pareto_set(problem("wfg9"))
    with pytest.raises(ValueError, match="integer seed"):
        shifted(problem("dtlz2"), -1)


def plane(X: Array) -> Array:
    return np.column_stack([X[:, 0] + X[:, 1] ** 2, 1 - X[:, 0] + X[:, 1] ** 2])


def test_own_problems_can_declare_their_structure() -> None:
    own = Problem("own", Space.of([(0, 1), (-1, 1)]), 2, plane)
    structure = Structure(
        position=np.array([0]),
        distance=np.array([1]),
        optimum=np.array([0.5]),
        positions=lambda F: F[:, :1],
        beyond=True,
    )
    declare(own, structure)
    variant = rotated(own, 0)
    moved = find(variant)
    assert moved is not None and moved.optimum[0] != 0.5
    with pytest.raises(ValueError, match="not known"):
        pareto_set(variant)


def test_scales_that_cannot_be_moved_are_refused() -> None:
    for variable in (Real(0.1, 1, log=True), Categorical(("a", "b"))):
        odd = Problem("odd", Space((Real(0, 1), variable)), 2, plane)
        declare(
            odd,
            Structure(
                np.array([0]), np.array([1]), np.array([0.5]), lambda F: F[:, :1], beyond=True
            ),
        )
        with pytest.raises(ValueError, match="linear scale"):
            shifted(odd, 0)
        with pytest.raises(ValueError, match="linear scale"):
            mirrored(odd, 0)
