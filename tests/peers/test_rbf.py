from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto.peers.rbf import bumps, interpolant


@settings(deadline=None, max_examples=25)
@given(n=st.integers(1, 40), d=st.integers(2, 12), seed=st.integers(0, 999))
def test_it_interpolates_exactly(n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    U, F = rng.random((n, d)), rng.normal(size=(n, 3))
    assert np.allclose(interpolant(U, F)(U), F, atol=1e-5)


def test_a_bump_is_one_half_at_the_spread() -> None:
    exponents = bumps(np.array([[0.0, 0.0], [0.3, 0.4]]), np.zeros((1, 2)), 0.5)
    assert np.allclose(np.exp(exponents[:, 0]), [1.0, 0.5])


def test_the_spread_is_the_published_one() -> None:
    U = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    assert interpolant(U, np.ones((3, 1))).spread == pytest.approx(np.sqrt(2.0) / np.sqrt(6.0))


def test_repeated_points_are_averaged() -> None:
    U = np.array([[0.2, 0.2], [0.2, 0.2], [0.9, 0.7]])
    model = interpolant(U, np.array([[1.0], [3.0], [5.0]]))
    assert np.allclose(model(U[1:]), [[2.0], [5.0]])


def test_it_generalises_on_a_smooth_function() -> None:
    rng = np.random.default_rng(0)
    U, V = rng.random((150, 3)), rng.random((100, 3)) * 0.8 + 0.1

    def f(X: np.typing.NDArray[np.float64]) -> np.typing.NDArray[np.float64]:
        return np.stack([(X**2).sum(axis=1), np.sin(3.0 * X[:, 0]) + X[:, 1]], axis=1)

    error = ((interpolant(U, f(U))(V) - f(V)) ** 2).mean(axis=0) / f(V).var(axis=0)
    assert (error < 0.02).all(), error
