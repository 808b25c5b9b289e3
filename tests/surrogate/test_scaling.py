from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto.surrogate.scaling import Scale, check_data


@given(st.integers(2, 30), st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(0, 99))
@settings(deadline=None, max_examples=50)
def test_standardised_values_are_of_order_one_and_invariant(
    n: int, shift: float, stretch: float, seed: int
) -> None:
    F = np.random.default_rng(seed).standard_normal((n, 2))
    Y = Scale.of(F).standardised(F)
    moved = shift + stretch * F
    again = Scale.of(moved).standardised(moved)
    assert np.abs(Y).max() < 15
    assert np.allclose(Y, again, atol=1e-4)


def test_one_wild_value_does_not_flatten_the_others() -> None:
    F = np.random.default_rng(0).standard_normal((50, 1))
    F[3] = 1e9
    Y = Scale.of(F).standardised(F)
    assert 0.3 < np.delete(Y, 3).std() < 3.0
    assert 10.0 < Y[3, 0] < 40.0


def test_the_far_tail_is_compressed_without_a_jump_or_a_change_of_order() -> None:
    F = np.linspace(-200.0, 200.0, 4001)[:, None]
    Y = Scale(np.zeros(1), np.ones(1)).standardised(F)[:, 0]
    steps = np.diff(Y)
    assert (steps > 0).all() and steps.max() < 0.1 + 1e-9
    assert np.array_equal(Y[np.abs(F[:, 0]) <= 10], F[np.abs(F[:, 0]) <= 10, 0])


def test_mostly_equal_values_keep_a_spread() -> None:
    F = np.zeros((20, 1))
    F[:3, 0] = [1.0, 2.0, 3.0]
    assert Scale.of(F).spread[0] > 0.1


def test_constant_objectives_have_unit_spread() -> None:
    for level in (0.0, 5.0, -1e12):
        assert Scale.of(np.full((9, 1), level)).spread[0] == 1.0


@pytest.mark.parametrize(
    ("U", "F", "message"),
    [
        (np.zeros((3, 2)), np.zeros((2, 1)), "shapes"),
        (np.zeros(3), np.zeros((3, 1)), "shapes"),
        (np.zeros((0, 2)), np.zeros((0, 1)), "n >= 1"),
        (np.full((2, 2), np.nan), np.zeros((2, 1)), "drop failed evaluations"),
    ],
)
def test_bad_data_are_refused_with_advice(
    U: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    F: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    message: str,
) -> None:
    with pytest.raises(ValueError, match=message):
        check_data(U, F)
