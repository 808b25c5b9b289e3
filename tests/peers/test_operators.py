from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from neuropareto.peers.operators import de_current, platemo_sbx
from neuropareto.space import Array

ETA = 20.0


def crossed(n: int, d: int, p_pair: float = 1.0) -> tuple[Array, Array]:
    """Spread factors |beta| and signs read off children of parents so close that nothing is clipped."""
    A, B = np.full((n, d), 0.501), np.full((n, d), 0.499)
    children = platemo_sbx(
        np.concatenate([A, B]), rng=np.random.default_rng(1), p_pair=p_pair, mutations=0.0
    )
    np.testing.assert_allclose(children[:n] + children[n:], 1.0, atol=1e-12)
    beta = (children[:n] - 0.5) / 0.001
    return np.abs(beta), np.sign(beta)


def distribution(beta: Array) -> Array:
    """P(|beta| <= b): b^(eta+1) / 2 up to one, 1 - b^-(eta+1) / 2 above."""
    power = ETA + 1.0
    return np.where(beta <= 1.0, 0.5 * beta**power, 1.0 - 0.5 * np.maximum(beta, 1.0) ** -power)


def test_half_of_the_variables_are_copied_and_the_rest_follow_the_published_spread() -> None:
    beta, sign = crossed(400, 50)
    copied = np.abs(beta - 1.0) < 1e-9
    assert abs(copied.mean() - 0.5) < 0.015
    assert (sign[copied] > 0).all(), "a copied variable stays with its own parent"
    assert abs((sign[~copied] > 0).mean() - 0.5) < 0.02
    assert kstest(beta[~copied], distribution).pvalue > 1e-3


def test_a_pair_is_copied_whole_with_the_remaining_probability() -> None:
    beta, _ = crossed(2000, 20, p_pair=0.7)
    whole = (np.abs(beta - 1.0) < 1e-9).all(axis=1)
    assert abs(whole.mean() - 0.3) < 0.04


def test_mates_stand_in_the_two_halves_and_an_odd_parent_has_no_child() -> None:
    parents = np.array([[0.1], [0.2], [0.5], [0.6], [0.9]])
    children = platemo_sbx(parents, rng=np.random.default_rng(0), p_pair=0.0, mutations=0.0)
    np.testing.assert_allclose(children, parents[:4])


def test_children_that_leave_the_cube_stop_at_its_face() -> None:
    parents = np.concatenate([np.zeros((500, 4)), np.ones((500, 4))])
    children = platemo_sbx(parents, rng=np.random.default_rng(0), mutations=0.0)
    assert children.min() == 0.0 and children.max() == 1.0
    outside = np.isin(children, [0.0, 1.0]).mean()
    assert abs(outside - 0.75) < 0.03, "copies, one half, and the spreads above one, one quarter"


@pytest.mark.parametrize("CR", [1.0, 0.3])
def test_the_differential_step(CR: float) -> None:
    rng = np.random.default_rng(2)
    A, B, C = 0.4 + 0.2 * rng.random((3, 300, 40))
    child = de_current(A, B, C, rng=rng, CR=CR, F=0.7, mutations=0.0)
    step = np.isclose(child, A + 0.7 * (B - C), atol=1e-12)
    assert abs(step.mean() - CR) < 0.02
    np.testing.assert_allclose(child[~step], A[~step])


def test_the_differential_step_is_clipped_before_it_mutates() -> None:
    A, B, C = np.full((50, 3), 0.9), np.ones((50, 3)), np.zeros((50, 3))
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(de_current(A, B, C, rng=rng, mutations=0.0), 1.0)
    assert (de_current(A, B, C, rng=rng, mutations=3.0) < 1.0).any()


def test_one_variable_a_child_mutates_on_average() -> None:
    X = np.full((4000, 25), 0.5)
    rng = np.random.default_rng(4)
    for children in (platemo_sbx(X, rng=rng), de_current(X, X, X, rng=rng)):
        assert abs((children != 0.5).sum(axis=1).mean() - 1.0) < 0.08


@settings(deadline=None, max_examples=30)
@given(n=st.integers(0, 9), d=st.integers(1, 6), seed=st.integers(0, 999))
def test_children_lie_in_the_cube_and_repeat_with_the_seed(n: int, d: int, seed: int) -> None:
    X = np.random.default_rng(seed).random((n, d))
    first, second = (platemo_sbx(X, rng=np.random.default_rng(seed)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.shape == (2 * (n // 2), d)
    steps = de_current(X, X[::-1], np.roll(X, 1), rng=np.random.default_rng(seed), F=2.0)
    for children in (first, steps):
        assert ((children >= 0.0) & (children <= 1.0)).all()
