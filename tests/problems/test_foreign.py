"""Problems of pymoo and BoTorch by name: values, signs of constraints, sizes, missing libraries."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from neuropareto.problems import problem
from neuropareto.problems.foreign import botorch_space, pymoo_space
from neuropareto.space import Categorical, Integer, Real
from neuropareto.testing.problem import check_problem, example_points, objectives

BOTORCH = ["Penicillin", "VehicleSafety", "WeldedBeam", "DiscBrake", "BraninCurrin", "OSY"]
PYMOO = ["bnh", "welded_beam", "mw7", "zdt5", "kursawe", "osy", "tnk", "dtlz7"]


@pytest.mark.parametrize("name", [f"botorch:{n}" for n in BOTORCH] + [f"pymoo:{n}" for n in PYMOO])
def test_conformance(name: str) -> None:
    made = problem(name)
    check_problem(made)
    assert made.name == name


@pytest.mark.parametrize("name", ["OSY", "BNH", "DiscBrake"])
def test_botorch_values_and_signs(name: str) -> None:
    from botorch.test_functions import multi_objective

    made, theirs = problem(f"botorch:{name}"), getattr(multi_objective, name)()
    X = example_points(made, 200, 0)
    outcome = made(X)
    assert isinstance(outcome, tuple)
    points = torch.tensor(X)
    np.testing.assert_allclose(outcome[0], theirs.evaluate_true(points).numpy())
    np.testing.assert_array_equal(
        (outcome[1] <= 0).all(axis=1), theirs.is_feasible(points).numpy()
    )


@pytest.mark.parametrize(
    ("botorch", "pymoo"), [("OSY", "osy"), ("BNH", "bnh"), ("WeldedBeam", "welded_beam")]
)
def test_both_libraries_agree_on_what_is_feasible(botorch: str, pymoo: str) -> None:
    ours, theirs = problem(f"botorch:{botorch}"), problem(f"pymoo:{pymoo}")
    X = example_points(ours, 500, 1)
    first, second = ours(X), theirs(X)
    assert isinstance(first, tuple) and isinstance(second, tuple)
    np.testing.assert_allclose(first[0], second[0], rtol=1e-9)
    np.testing.assert_array_equal((first[1] <= 0).all(axis=1), (second[1] <= 0).all(axis=1))
    assert (first[1] <= 0).all(axis=1).any()


def test_botorch_reference_points_are_those_of_minimisation() -> None:
    made = problem("botorch:Penicillin")
    assert made.reference_point is not None and made.d == 7 and made.n_objectives == 3
    np.testing.assert_allclose(made.reference_point, [25.935, 57.612, 935.5])
    X = made.space.from_unit(np.random.default_rng(0).random((200, 7)))
    assert (objectives(made, X) < made.reference_point).all(axis=1).any()
    # BoTorch has no reference point for BNH yet, only zeros.
    assert problem("botorch:BNH").reference_point is None


def test_pymoo_values_and_equalities() -> None:
    from pymoo.problems import get_problem

    made, theirs = problem("pymoo:bnh"), get_problem("bnh")
    X = example_points(made, 20, 0)
    outcome = made(X)
    assert isinstance(outcome, tuple)
    F, G = theirs.evaluate(X.copy(), return_values_of=["F", "G"])
    np.testing.assert_allclose(outcome[0], F)
    np.testing.assert_allclose(outcome[1], G)
    with_equalities = problem("pymoo:g5")
    assert with_equalities.n_constraints == 5
    outcome = with_equalities(example_points(with_equalities, 5, 0))
    assert isinstance(outcome, tuple) and outcome[1].shape == (8, 5)


def test_sizes_are_passed_on() -> None:
    assert problem("pymoo:dtlz2", 30, 3).d == 30
    assert problem("pymoo:zdt1", 7).d == 7
    assert problem("botorch:DTLZ2", 10, 3).n_objectives == 3
    with pytest.raises(ValueError, match="needs its size"):
        problem("botorch:DTLZ2")
    with pytest.raises(ValueError, match="has d=7 and no other"):
        problem("botorch:Penicillin", 9)
    with pytest.raises(ValueError, match="has d=2 and no other"):
        problem("pymoo:bnh", 9)
    with pytest.raises(ValueError, match="cannot be made with"):
        problem("botorch:DTLZ2", 2, 5)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="Penicillin"):
        problem("botorch:penicilin")
    with pytest.raises(ValueError, match="pymoo cannot make"):
        problem("pymoo:nonesuch")
    with pytest.raises(ValueError, match="give d and m"):
        problem("pymoo:modact")


@pytest.mark.parametrize(
    ("name", "modules"),
    [
        ("pymoo:zdt1", ["pymoo", "pymoo.problems"]),
        ("botorch:Penicillin", ["botorch", "botorch.test_functions.base"]),
    ],
)
def test_a_missing_library_is_one_sentence(
    name: str, modules: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pip install 'neuropareto\[peers\]'"):
        problem(name)


def test_discrete_variables_are_kept() -> None:
    """Neither library has such a multi-objective problem of fixed size, so two are made up."""
    theirs = SimpleNamespace(xl=np.array([0, 2]), xu=np.array([1, 9]), vtype=int)
    assert pymoo_space("pymoo:x", theirs).variables == (Integer(0, 1), Integer(2, 9))
    with pytest.raises(ValueError, match="no bounds"):
        pymoo_space("pymoo:x", SimpleNamespace(xl=None, xu=None, vtype=float))
    mixed = SimpleNamespace(
        bounds=torch.tensor([[0.0, 1.0, 0.0], [1.0, 5.0, 2.0]]),
        discrete_inds=[1],
        categorical_inds=[2],
    )
    assert botorch_space(mixed).variables == (Real(0, 1), Integer(1, 5), Categorical((0, 1, 2)))
