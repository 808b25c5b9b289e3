"""Adaptive pass counts against the printed formula; information gain against its bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto.dropout import AdaptiveDropout, NoDropout, disagreement, information_gain


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.floats(0.0, 1e12), min_size=1, max_size=20),
    st.integers(2, 12),
    st.integers(0, 40),
    st.floats(1e-6, 1.0),
)
def test_pass_counts_equal_the_formula(
    variances: list[float], s0: int, extra: int, tau: float
) -> None:
    s_max = s0 + extra
    counts = AdaptiveDropout(s0=s0, s_max=s_max, tau=tau).passes(np.array(variances))
    expected = [s0 if v <= tau else min(s_max, s0 * math.ceil(v / tau)) for v in variances]
    assert counts.tolist() == expected


def test_pass_counts_by_hand() -> None:
    rule = AdaptiveDropout(s0=8, s_max=32, tau=0.02)
    assert rule.passes(np.array([0.0, 0.02, 0.021, 0.05, 0.07, 10.0, np.inf])).tolist() == [
        8,
        8,
        16,
        24,
        32,
        32,
        32,
    ]
    assert NoDropout().passes(np.array([0.0, 9.0])).tolist() == [1, 1]


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 6), st.integers(1, 12), st.integers(2, 7), st.integers(0, 2**31))
def test_information_gain_is_between_nothing_and_everything(
    n: int, s: int, k: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(k, 0.3), size=(n, s))
    gain = information_gain(P)
    assert (gain >= 0).all()
    assert (gain <= math.log(min(s, k)) + 1e-9).all()
    equal = np.repeat(P[:, :1], s, axis=1)
    assert information_gain(equal) == pytest.approx(0.0, abs=1e-12)


def test_information_gain_of_certain_passes_that_contradict_each_other() -> None:
    P = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    assert information_gain(P) == pytest.approx(math.log(2))


def test_information_gain_is_the_mean_divergence_from_the_mean() -> None:
    P = np.random.default_rng(0).dirichlet(np.ones(4), size=(5, 6))
    mean = P.mean(axis=1, keepdims=True)
    assert information_gain(P) == pytest.approx((P * np.log(P / mean)).sum(axis=2).mean(axis=1))


def test_disagreement_is_the_largest_sample_variance_of_a_class() -> None:
    P = np.array([[[0.2, 0.3, 0.5], [0.4, 0.3, 0.3]], [[0.1, 0.1, 0.8], [0.1, 0.1, 0.8]]])
    assert disagreement(P) == pytest.approx([0.02, 0.0])
