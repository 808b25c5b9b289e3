from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto.space import Array, Categorical, Integer, Real, Space, numbers

finite = st.floats(-1e9, 1e9, allow_nan=False, allow_infinity=False)


@st.composite
def variables(draw: st.DrawFn) -> Real | Integer | Categorical:
    kind = draw(st.sampled_from(["real", "log", "integer", "log-integer", "categorical"]))
    if kind == "real":
        low = draw(finite)
        return Real(low, low + draw(st.floats(1e-3, 1e9)))
    if kind == "log":
        low = draw(st.floats(1e-9, 1e3))
        return Real(low, low * draw(st.floats(1.5, 1e9)), log=True)
    if kind == "integer":
        low = draw(st.integers(-(10**6), 10**6))
        return Integer(low, low + draw(st.integers(1, 10**6)))
    if kind == "log-integer":
        low = draw(st.integers(1, 1000))
        return Integer(low, low + draw(st.integers(1, 10**5)), log=True)
    return Categorical(tuple(f"c{i}" for i in range(draw(st.integers(2, 30)))))


@given(st.lists(variables(), min_size=1, max_size=6), st.integers(0, 2**31))
@settings(deadline=None, max_examples=200)
def test_points_from_the_cube_round_trip_exactly(
    given_variables: list[Real | Integer | Categorical], seed: int
) -> None:
    space = Space(tuple(given_variables))
    U = np.random.default_rng(seed).random((8, space.d))
    U[0], U[1] = 0.0, 1.0
    X = space.from_unit(U)
    assert (space.lower <= X).all() and (space.upper >= X).all()
    assert np.array_equal(X[0], space.lower) and np.array_equal(X[1], space.upper)
    back = space.to_unit(X)
    assert (back >= 0).all() and (back <= 1).all()
    assert np.array_equal(space.from_unit(back), X)
    assert np.array_equal(space.check_points(X), X)


def test_real_variables_keep_their_place_in_the_cube() -> None:
    space = Space.of([(0, 10), (-1, 1)])
    assert np.allclose(space.to_unit(np.array([[2.5, 0.0]])), [[0.25, 0.5]], atol=1e-15)


def test_every_integer_and_choice_gets_the_same_share_of_the_cube() -> None:
    space = Space((Integer(3, 7), Categorical(("a", "b", "c"))))
    U = (np.arange(3000)[:, None] + 0.5) / 3000 * np.ones(2)
    X = space.from_unit(U)
    assert np.unique(X[:, 0], return_counts=True)[1].tolist() == [600] * 5
    assert np.unique(X[:, 1], return_counts=True)[1].tolist() == [1000] * 3


def test_log_variables_are_uniform_in_the_logarithm() -> None:
    space = Space((Real(1e-4, 1e4, log=True),))
    assert space.from_unit(np.array([[0.5]]))[0, 0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "form",
    [
        [(0, 1), (0, 5), (-2, 3)],
        np.array([[0, 1], [0, 5], [-2, 3.0]]),
        ([0, 0, -2], [1, 5, 3]),
        (np.array([0, 0, -2]), np.array([1, 5, 3])),
        {"a": (0, 1), "b": Real(0, 5), "c": (-2.0, 3.0)},
        [Real(0, 1), Real(0, 5), (-2, 3)],
        ((0, 1), (0, 5), (-2, 3)),
    ],
)
def test_accepted_forms(form: object) -> None:
    space = Space.of(form)  # type: ignore[arg-type]
    assert space.lower.tolist() == [0, 0, -2] and space.upper.tolist() == [1, 5, 3]


def test_two_variables_as_pairs_and_as_vectors() -> None:
    assert Space.of([(0, 1), (2, 5)]).upper.tolist() == [1, 5]
    assert Space.of(((0, 1), (2, 5))).upper.tolist() == [1, 5]
    assert Space.of(([0, 1], [2, 5])).upper.tolist() == [2, 5]
    assert Space.of((np.zeros(2), np.ones(2))).upper.tolist() == [1, 1]


def test_names_and_dictionaries() -> None:
    space = Space.of({"rate": (0, 1), "wells": Integer(1, 4), "kind": Categorical(("a", "b"))})
    assert space.names == ("rate", "wells", "kind")
    point = space.as_dict(np.array([0.5, 2.0, 1.0]))
    assert point == {"rate": 0.5, "wells": 2, "kind": "b"}
    assert np.array_equal(space.from_dict(point), [0.5, 2.0, 1.0])
    assert Space.of([(0, 1)] * 2).names == ("x1", "x2")
    assert Space.of([Real(0, 1, name="x2"), Real(0, 1)]).names == ("x2", "x2_")


def test_latin_hypercube_puts_one_point_in_every_slice() -> None:
    design = Space.of([(0, 1)] * 7).latin_hypercube(40, rng=np.random.default_rng(1))
    assert design.shape == (40, 7)
    for column in design.T:
        assert sorted(np.floor(column * 40).astype(int)) == list(range(40))


def test_snapping_is_idempotent() -> None:
    space = Space((Integer(0, 9), Real(0, 1)))
    U = np.random.default_rng(0).random((50, 2))
    once = space.snap(U)
    assert np.array_equal(space.snap(once), once)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ([(0, 1), (1, 0)], "x2 are reversed"),
        ([(0, 1), (2, 2)], "x2 are equal"),
        ([(0, math.nan)], "x1 must be finite"),
        ([(0, math.inf)], "x1 must be finite"),
        ({"rate": (3, 1)}, "'rate' are reversed"),
        ([("a", "b")], "must be real numbers"),
        ([(0, 1j)], "must be real numbers"),
        ([(0, 1), (2,)], "ragged"),
        (np.zeros((3, 3)), "got shape"),
        ([], "Bounds must be d pairs"),
        (3.0, "A space must be bounds"),
        ("ab", "A space must be bounds"),
        ([Real(-1, 1, log=True)], "lower bound > 0"),
        ([Integer(0.5, 3)], "must be whole"),  # type: ignore[arg-type]
        ([Categorical(("a",))], "two choices that read differently"),
        ([Categorical(("a", "a"))], "two choices that read differently"),
        ([Real(0, 1, name="a"), Real(0, 1, name="a")], "'a' occurs twice"),
        ([Real(0, 1, name="a\nb")], "printable"),
        ([Real(-1.7e308, 1.7e308)], "overflows"),
        ({"a": (1, 2, 3)}, r"must be \(lower, upper\)"),
        ([Real("0", 1)], "must be numbers"),  # type: ignore[arg-type]
        ([Real(None, 1)], "must be numbers"),  # type: ignore[arg-type]
        ([Categorical(("1", 1))], "two choices that read differently"),
        ([Real(0, 1, name=5)], "must be a text"),  # type: ignore[arg-type]
        ({1: (0, 1)}, "must be a text"),
        ([Integer(0, 2**60)], r"within 2\*\*53"),
    ],
)
def test_bad_bounds_get_a_clear_error(form: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Space.of(form)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ([[0.5]], r"shape \(n, 2\)"),
        ([[0.5, 9.0]], "'x2' must lie in"),
        ([[math.nan, 1.0]], "'x1' must lie in"),
        ([["a", "b"]], "real numbers"),
        ([[0.5, 1.5]], "be whole"),
    ],
)
def test_bad_points_get_a_clear_error(points: list[list[float]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Space((Real(0, 1), Integer(0, 5))).check_points(points)


def test_numbers_that_are_too_large_for_a_machine_word_are_numbers() -> None:
    given: Any = [10**20, Fraction(1, 2)]
    assert numbers(given, "Values").tolist() == [1e20, 0.5]


def test_what_does_not_become_an_array_is_refused() -> None:
    class Attached:
        def __array__(self, dtype: object = None, copy: object = None) -> Array:
            raise RuntimeError("call detach first")

    with pytest.raises(ValueError, match=r"Values must be .* got Attached .*detach"):
        numbers(Attached(), "Values")


def test_bad_dictionaries_get_a_clear_error() -> None:
    space = Space.of({"a": (0, 1), "b": Categorical(("u", "v"))})
    with pytest.raises(ValueError, match="'b' is missing"):
        space.from_dict({"a": 0.5})
    with pytest.raises(ValueError, match="must be one of"):
        space.from_dict({"a": 0.5, "b": "w"})


def test_bounds_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Space.of([(0, 1)]).lower[0] = 3
